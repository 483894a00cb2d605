// Which brokers serve a store, as the store itself knows it: each writes a row of its own at intervals. The row is a
// lease, the proof that the store takes writes, and the latest moment that the store knows of.

export type BrokerRow = {
  readonly id: string;
  /** Where clients reach it; undefined: only those that were told otherwise do. */
  readonly publicUrl: string | undefined;
};

export type BrokersStore = {
  /** Writes the row, durably when it resolves; so that rejecting means that the store takes no writes. */
  readonly announce: (broker: BrokerRow, nowMs: number, expiresAtMs: number) => Promise<void>;
  /** The row's lease ends. Again, and for a broker that never announced itself, nothing happens. */
  readonly withdraw: (brokerId: string) => Promise<void>;
  /** The public addresses of the brokers whose leases last, sorted, each once and at most `brokersListedMax` of them. */
  readonly listUrls: (nowMs: number) => Promise<readonly string[]>;
  /** The latest moment at which any broker announced itself; 0 where none ever did. */
  readonly lastSeenMs: () => Promise<number>;
};

export const brokersListedMax = 64;

/** Rows of brokers that ended without a word are removed this long after their lease. */
export const brokerRowKeptMs = 86_400_000;
