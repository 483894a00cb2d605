// What keeping a store in order needs from it: removing what is older than it has to be, in steps that are short enough
// not to hold up accepts. Any number of brokers may do this at once.

/** What the settings and the clock allow to go. */
export type SweepTerms = {
  readonly nowMs: number;
  /** Messages accepted before this go; undefined: none do. */
  readonly messagesBeforeMs: number | undefined;
  /** False: ids and fences are kept for ever, whatever their rows say. */
  readonly forgetIds: boolean;
  /** Leases that ran out before this are forgotten; undefined: none are. */
  readonly leasesBeforeMs: number | undefined;
};

export const sweepKinds = [
  /** Bodies that retention removed. */
  "messages",
  /** Deliveries and messages of queues that nobody had confirmed when their message went. */
  "expired_deliveries",
  "expired_queue_messages",
  "mentions",
  "search_rows",
  /** Ids that may be used again. */
  "dedupe_rows",
  "fences",
  /** What went with the last thing that needed it: the message, or the id. */
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
/** Rows that went, by what they were; those that are not named are none. */
export type SweepCounts = Readonly<Partial<Record<SweepKind, number>>>;

export type SweepStep = {
  readonly counts: SweepCounts;
  /** There is more to do for this mesh. */
  readonly more: boolean;
};

export type ForgetStep = {
  readonly counts: SweepCounts;
  /** Where the next step goes on; undefined: this was the last. */
  readonly next: string | undefined;
};

export type HousekeepingStore = {
  /** Ids of meshes, in order, after `after`. */
  readonly meshes: (after: string, limit: number) => Promise<string[]>;
  /**
   * One bounded step for one mesh, in one transaction. A message goes with everything that speaks of it but its id and
   * its place in history: these stay together until the id may be forgotten, so that a retry is always answered in
   * full. What nobody has confirmed is settled as expired before its message goes. Ids are not among what goes here, but
   * fences are. Where another broker is at work on the mesh nothing happens.
   */
  readonly sweepMesh: (meshId: string, terms: SweepTerms) => Promise<SweepStep>;
  /**
   * One bounded step of forgetting a mesh's ids, from `after` on; empty: from the beginning. An id never leaves before
   * its `expires_at`, and leaves whole, with its place in history where no message needs that. May read every id.
   */
  readonly forgetIds: (meshId: string, after: string, nowMs: number) => Promise<ForgetStep>;
  /**
   * Counts a bounded number of accepted messages by member and hour, for dashboards, each once. False: there was nothing
   * left. Lags behind the accepts, and decides nothing.
   */
  readonly countNext: () => Promise<boolean>;
};
