// What keeping a store in order needs from it: removing what is older than it has to be, in steps that are short enough
// not to hold up accepts. Any number of brokers may do this at once.

/** What the settings and the clock allow to go. */
export type SweepTerms = {
  readonly nowMs: number;
  /** Messages accepted before this are removed; undefined where none are. */
  readonly messagesBeforeMs: number | undefined;
  /** Where it is false, ids and fences are kept for ever, whatever their rows say. */
  readonly forgetIds: boolean;
  /** Leases that expired before this are forgotten; undefined where none are. */
  readonly leasesBeforeMs: number | undefined;
};

export const sweepKinds = [
  /** Bodies that retention removed. */
  "messages",
  /** Deliveries and messages of queues that no recipient had confirmed when their message was removed. */
  "expired_deliveries",
  "expired_queue_messages",
  "mentions",
  "search_rows",
  /** Ids that may be used again. */
  "dedupe_rows",
  "fences",
  /** Rows that went with the last row that needed them: the message, or the id. */
  "history_rows",
  "deliveries",
  "queue_messages",
  "queue_settlements",
  "queue_leases",
  "rate_counters",
  "presence_leases",
  "limiter_rows",
] as const;

export type SweepKind = (typeof sweepKinds)[number];
/** How many rows went, by kind. A kind that is missing counts as none. */
export type SweepCounts = Readonly<Partial<Record<SweepKind, number>>>;

export type SweepStep = {
  readonly counts: SweepCounts;
  /** There is more to do for this mesh. */
  readonly more: boolean;
};

export type ForgetStep = {
  readonly counts: SweepCounts;
  /** Where the next step goes on. Undefined where this was the last. */
  readonly next: string | undefined;
};

export type HousekeepingStore = {
  /** Ids of meshes, in order, after `after`. */
  readonly meshes: (after: string, limit: number) => Promise<string[]>;
  /**
   * One bounded step for one mesh, in one transaction. A message goes with every row that refers to it but its id and
   * its history row: these stay together until the id may be forgotten, so that a retry is always answered in
   * full. Deliveries that are not confirmed are settled as expired before their message goes. This step forgets
   * fences, but no ids. Where another broker is at work on the mesh, nothing happens.
   */
  readonly sweepMesh: (meshId: string, terms: SweepTerms) => Promise<SweepStep>;
  /**
   * One bounded step of forgetting a mesh's ids, from `after` on; empty: from the beginning. An id never leaves before
   * its `expires_at`, and leaves whole, with its history row where no message needs that. May read every id.
   */
  readonly forgetIds: (meshId: string, after: string, nowMs: number) => Promise<ForgetStep>;
  /**
   * Counts a bounded number of accepted messages by member and hour, for dashboards, each once. False: there was nothing
   * left. Lags behind the accepts, and decides nothing.
   */
  readonly countNext: () => Promise<boolean>;
};
