// What every peer is to the benchmark: something that takes one message with an identity and answers when it has it.

export type PeerFacts = {
  readonly version: string;
  /** How it was set up, and what it does before it answers. */
  readonly durability: string;
};

export type Peer = PeerFacts & {
  readonly send: (body: Buffer) => Promise<unknown>;
  /** Many at once, where the peer has a call for that. */
  readonly sendBatch?: (bodies: readonly Buffer[]) => Promise<unknown>;
  /** Removes what was made for the run. */
  readonly close: () => Promise<void>;
};

export const peerNames = ["pg-boss", "graphile-worker", "bullmq", "nats", "redis", "rabbitmq"] as const;
export type PeerName = (typeof peerNames)[number];

/** Rows of the table: one message per call, and many at once where the peer has a call for that. */
export const peerTitles: Readonly<Record<PeerName, { readonly send: string; readonly batch?: string }>> = {
  "pg-boss": { send: "pg-boss send", batch: "pg-boss insert, batches" },
  "graphile-worker": { send: "graphile-worker addJob", batch: "graphile-worker addJobs, batches" },
  bullmq: { send: "BullMQ add", batch: "BullMQ addBulk, batches" },
  nats: { send: "NATS JetStream" },
  redis: { send: "Redis streams" },
  rabbitmq: { send: "RabbitMQ quorum queue" },
};
