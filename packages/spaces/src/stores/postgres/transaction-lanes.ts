// Which transaction bodies of one space share a transaction on PostgreSQL, and in which order they run: one lane for
// each space, first come, first served, so that commits that a session pipelines are decided in the order it sent them.
import { StorageError } from "@claudemesh/storage/errors";
import { NaturalBatches } from "@claudemesh/storage/natural-batches";
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SpaceRef } from "../../ports/rows.ts";

/** May run several times, and with others before and after it in the same transaction. */
export type TransactionBody<T> = (tx: PostgresTransaction) => Promise<T>;

export type LaneProbe = {
  /** Inside the transaction, after its last statement. A throw rolls back; another try calls it again. */
  readonly beforeCommit: () => void | Promise<void>;
  /** Committed, and nobody has been told. A throw reaches the callers, as a crash would. */
  readonly afterCommit: () => void | Promise<void>;
};

const bodiesPerTransaction = 64;

type Waiting = { readonly body: TransactionBody<unknown>; readonly alone: boolean };
type Lane = NaturalBatches<Waiting, PromiseSettledResult<unknown>>;

export class TransactionLanes {
  readonly #postgres: Postgres;
  readonly #probe: LaneProbe;
  readonly #lanes = new Map<string, Lane>();

  constructor(postgres: Postgres, probe: LaneProbe) {
    this.#postgres = postgres;
    this.#probe = probe;
  }

  /** Resolves after the COMMIT that holds what the body did. */
  async run<T>(space: SpaceRef, body: TransactionBody<T>, alone: boolean): Promise<T> {
    const key = `${space.meshId}/${space.spaceId}`;
    const lane = this.#lanes.get(key) ?? this.#openLane(key);
    try {
      const settled = await lane.submit({ body, alone });
      if (settled.status === "rejected") throw settled.reason;
      return settled.value as T;
    } finally {
      if (lane.idle) this.#lanes.delete(key);
    }
  }

  #openLane(key: string): Lane {
    const lane: Lane = new NaturalBatches({
      // A second transaction would only wait for the space's lock, and overtake where it does not.
      maxConcurrent: 1,
      maxBatch: bodiesPerTransaction,
      // Who must be alone fills a batch, and whoever came before it goes ahead.
      weigh: ({ alone }) => (alone ? 2 : 0),
      maxWeight: 1,
      run: (batch) => this.#runBatch(batch),
    });
    this.#lanes.set(key, lane);
    return lane;
  }

  async #runBatch(batch: readonly Waiting[]): Promise<readonly PromiseSettledResult<unknown>[]> {
    try {
      const values = await this.#transact(batch);
      return values.map((value) => ({ status: "fulfilled", value }));
    } catch (error) {
      if (batch.length === 1 || !isOneBodysFault(error)) throw error;
    }
    // The transaction is rolled back, and only alone does the body at fault leave its neighbours in peace.
    const settled: PromiseSettledResult<unknown>[] = [];
    for (const waiting of batch) {
      const [alone] = await Promise.allSettled([this.#transact([waiting])]);
      settled.push(alone.status === "rejected" ? alone : { status: "fulfilled", value: alone.value[0] });
    }
    return settled;
  }

  async #transact(batch: readonly Waiting[]): Promise<unknown[]> {
    const values = await this.#postgres.transaction(async (tx) => {
      const decided: unknown[] = [];
      for (const { body } of batch) decided.push(await body(tx));
      await this.#probe.beforeCommit();
      return decided;
    });
    await this.#probe.afterCommit();
    return values;
  }
}

/** A bug, or a row or statement that the database refused; everything else would hit the neighbours just as well. */
function isOneBodysFault(error: unknown): boolean {
  return !(error instanceof StorageError) || error.kind === "constraint" || error.kind === "statement";
}
