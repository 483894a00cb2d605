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

export const peerNames = ["pg-boss", "nats", "redis", "rabbitmq"] as const;
export type PeerName = (typeof peerNames)[number];

export const peerTitles: Readonly<Record<PeerName, string>> = {
  "pg-boss": "pg-boss",
  nats: "NATS JetStream",
  redis: "Redis streams",
  rabbitmq: "RabbitMQ quorum queue",
};
