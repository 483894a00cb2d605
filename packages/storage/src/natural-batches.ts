// Natural batching for stores across a network: while one round trip is on its way, the next one collects whoever
// arrives. No timers: a lone caller waits for nobody, a crowd shares. Knows nothing about what a batch does.
import assert from "node:assert/strict";
import { StorageError } from "./storage-error.ts";

export type NaturalBatchesOptions<Item, Result> = {
  /** One result per item, in their order. A rejection is the end of every item of the batch. */
  readonly run: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly maxBatch: number;
  /** What an item adds to its batch, where batches have a bound beside their number of items. One item always fits. */
  readonly weigh?: (item: Item) => number;
  readonly maxWeight?: number;
  /** Batches under way at once. */
  readonly maxConcurrent: number;
  /**
   * Goes on collecting while each turn of the event loop brings more, up to a full batch: for callers with a socket each,
   * of whom one turn hears a few. The loop is busy with them meanwhile, and a lone caller waits for one empty turn.
   */
  readonly gathersTurns?: boolean;
  /** So many are enough to begin; a full batch unless told. */
  readonly gatherEnough?: number;
  /**
   * Where each of those that may be under way gets so many, they share all that is here, waiting or under way: while one is
   * worked on, another is answered and comes back. Below that, all that waits goes in one, as without it.
   */
  readonly overlapFrom?: () => number;
  /** Items waiting; more are refused as busy. */
  readonly maxQueued?: number;
};

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

export class NaturalBatches<Item, Result> {
  readonly #options: NaturalBatchesOptions<Item, Result>;
  readonly #maxQueued: number;
  #queue: Waiting<Item, Result>[] = [];
  #running = 0;
  #underway = 0;
  #scheduled = false;
  /** How many waited when the last turn ended. */
  #gathered = 0;
  readonly #onTurn = () => this.#runTurn();

  constructor(options: NaturalBatchesOptions<Item, Result>) {
    this.#options = options;
    this.#maxQueued = options.maxQueued ?? 65_536;
  }

  /** Nothing waits and nothing is under way. */
  get idle(): boolean {
    return this.#running === 0 && this.#queue.length === 0;
  }

  /** Whoever comes now is refused as busy. */
  get full(): boolean {
    return this.#queue.length >= this.#maxQueued;
  }

  submit(item: Item): Promise<Result> {
    if (this.full) {
      return Promise.reject(new StorageError("busy", `${this.#maxQueued} requests wait for the store`));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  // Whoever arrives in the same turn of the event loop shares the batch.
  #schedule(): void {
    if (this.#scheduled || this.#running >= this.#options.maxConcurrent) return;
    this.#scheduled = true;
    setImmediate(this.#onTurn);
  }

  #runTurn(): void {
    const { gathersTurns = false, maxBatch, gatherEnough = maxBatch } = this.#options;
    const waiting = this.#queue.length;
    if (gathersTurns && waiting > this.#gathered && waiting < gatherEnough) {
      this.#gathered = waiting;
      setImmediate(this.#onTurn);
      return;
    }
    this.#gathered = 0;
    this.#scheduled = false;
    if (waiting > 0) void this.#runBatch(this.#takeBatch());
    if (this.#queue.length > 0) this.#schedule();
  }

  #takeBatch(): readonly Waiting<Item, Result>[] {
    const { maxBatch, maxConcurrent, weigh = () => 0, maxWeight = 0, overlapFrom = () => maxBatch } = this.#options;
    const waiting = this.#queue.length;
    // More than one batch holds is shared evenly by those that may begin at once.
    const shares = Math.min(maxConcurrent - this.#running, Math.ceil(waiting / maxBatch));
    const here = waiting + this.#underway;
    const overlapping = here < maxConcurrent * overlapFrom() ? maxBatch : Math.ceil(here / maxConcurrent);
    const most = Math.min(maxBatch, Math.ceil(waiting / shares), overlapping);
    let weight = 0;
    let count = 0;
    for (const { item } of this.#queue) {
      weight += weigh(item);
      if (count === most || (count > 0 && weight > maxWeight)) break;
      count += 1;
    }
    return this.#queue.splice(0, count);
  }

  async #runBatch(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    this.#running += 1;
    this.#underway += batch.length;
    try {
      const results = await this.#options.run(batch.map(({ item }) => item));
      assert(results.length === batch.length, "a batch has one result per item");
      for (const [index, result] of results.entries()) batch[index]?.resolve(result);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      this.#running -= 1;
      this.#underway -= batch.length;
      if (this.#queue.length > 0) this.#schedule();
    }
  }
}
