// Natural batches by key, one line for each that has something under way, and nobody hurt by a neighbour's fault: where the
// store refused a batch for what one item asked, each of them is tried alone.
import { NaturalBatches, type NaturalBatchesOptions } from "./natural-batches.ts";
import { StorageError } from "./storage-error.ts";

export type KeyedBatchesOptions<Item, Result> = Pick<
  NaturalBatchesOptions<Item, Result>,
  "maxBatch" | "maxConcurrent" | "weigh" | "maxWeight"
> & {
  /** One result per item, in their order, all or nothing: a rejection has left nothing behind. */
  readonly run: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Refusals of the store and want of room unless told. */
  readonly isOneItemsFault?: (error: unknown) => boolean;
};

export class KeyedBatches<Item, Result> {
  readonly #options: KeyedBatchesOptions<Item, Result>;
  readonly #lanes = new Map<string, NaturalBatches<Item, PromiseSettledResult<Result>>>();

  constructor(options: KeyedBatchesOptions<Item, Result>) {
    this.#options = options;
  }

  async submit(key: string, item: Item): Promise<Result> {
    const lane = this.#lanes.get(key) ?? this.#openLane(key);
    try {
      const settled = await lane.submit(item);
      if (settled.status === "rejected") throw settled.reason;
      return settled.value;
    } finally {
      if (lane.idle && this.#lanes.get(key) === lane) this.#lanes.delete(key);
    }
  }

  #openLane(key: string): NaturalBatches<Item, PromiseSettledResult<Result>> {
    const { run, isOneItemsFault, ...bounds } = this.#options;
    const lane = new NaturalBatches<Item, PromiseSettledResult<Result>>({
      ...bounds,
      run: (items) => settleEach(items, run, isOneItemsFault),
    });
    this.#lanes.set(key, lane);
    return lane;
  }
}

export async function settleEach<Item, Result>(
  items: readonly Item[],
  run: (items: readonly Item[]) => Promise<readonly Result[]>,
  isOneItemsFault: (error: unknown) => boolean = isRefusalOrFull,
): Promise<PromiseSettledResult<Result>[]> {
  try {
    const results = await run(items);
    return results.map((value) => ({ status: "fulfilled", value }));
  } catch (error) {
    if (items.length === 1 || !isOneItemsFault(error)) throw error;
  }
  const settled: PromiseSettledResult<Result>[] = [];
  for (const item of items) {
    const [alone] = await Promise.allSettled([run([item])]);
    settled.push(alone.status === "rejected" ? alone : { status: "fulfilled", value: alone.value[0] as Result });
  }
  return settled;
}

/** Of what writes nothing, as a retry does, a full disk is no concern. */
function isRefusalOrFull(error: unknown): boolean {
  return isRefusal(error) || (error instanceof StorageError && error.kind === "disk_full");
}

/** The database refused a row or a statement; everything else would hit the neighbours just as well. */
export function isRefusal(error: unknown): boolean {
  return error instanceof StorageError && (error.kind === "constraint" || error.kind === "statement");
}
