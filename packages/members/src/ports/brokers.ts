// Which brokers serve a store, as recorded in the store itself: each broker writes a row of its own at intervals. The
// row is a lease, the proof that the store accepts writes, and a record of the latest moment that the store has seen.

export type BrokerRow = {
  readonly id: string;
  /**
   * The address that clients use; undefined: the broker announces none, and only clients configured with its address
   * reach it.
   */
  readonly publicUrl: string | undefined;
};

export type BrokersStore = {
  /** Writes the row, durably when it resolves. A rejection therefore means that the store accepts no writes. */
  readonly announce: (broker: BrokerRow, nowMs: number, expiresAtMs: number) => Promise<void>;
  /** Ends the row's lease. Does nothing when called again, or for a broker that never announced itself. */
  readonly withdraw: (brokerId: string) => Promise<void>;
  /**
   * The public addresses of the brokers whose leases have not ended, sorted, without duplicates, at most
   * `brokersListedMax`.
   */
  readonly listUrls: (nowMs: number) => Promise<readonly string[]>;
  /** The latest moment at which any broker announced itself; 0 where none ever did. */
  readonly lastSeenMs: () => Promise<number>;
};

export const brokersListedMax = 64;

/** A row whose broker ended without withdrawing it is removed this long after its lease. */
export const brokerRowKeptMs = 86_400_000;
