// Lets callers share work: what many ask for at the same time is done in one batch, so that it costs one round trip or one
// transaction instead of many. There are no timers. A caller that is alone waits for one turn of the event loop and no more;
// under load a batch collects what arrives while the one before it is under way.
//
// Items with the same key share a queue, and keys know nothing of each other. A queue is always in one of these states:
//
//   idle       Nothing waits and nothing runs. The queue is forgotten, so that memory does not grow with the number of keys.
//   scheduled  Items wait for the next turn of the event loop, and everything that is submitted until then joins them. With
//              `gathersUpTo`, the turn is put off for as long as each turn brings more, up to that many: callers have a socket
//              each, and one turn of the loop hears only a few of them.
//   running    One batch or more are under way. Items that come meanwhile wait; when a batch ends they are scheduled.
//
// What callers may rely on:
//
//   - Items of one key begin in the order in which they were submitted. With `atOnce: 1` they also end in that order.
//   - A batch begins after each of its items was submitted, so that a read sees everything that was committed by then.
//   - One item always fits. Others join it up to `maxItems`, and up to the weight that a batch may have.
//   - An item is settled once, with its own result or with the error of its batch. Where the error may be the fault of one item
//     (the store refused a value, say), the batch has left nothing behind, and every item is tried again by itself.
//   - More than 65,536 waiting items of one key are refused as busy.
import assert from "node:assert/strict";
import { isRefusal, StorageError } from "./storage-error.ts";

export type BatchRules = {
  /** Items in one batch. */
  readonly maxItems: number;
  /** Batches of one key that may be under way together. */
  readonly atOnce: number;
  /** So many items are enough to begin with, however many each turn brings; 0 begins in the next turn. */
  readonly gathersUpTo: number;
};

/** For the look-ups that precede every request: each caller asks for one row by its key. */
export const lookUps: BatchRules = { maxItems: 1_024, atOnce: 2, gathersUpTo: 256 };
/** For other questions that can be asked together. */
export const questions: BatchRules = { maxItems: 256, atOnce: 2, gathersUpTo: 0 };
/** For transactions that need the same lock: a second one would only wait for it, and might overtake. */
export const transactions: BatchRules = { maxItems: 64, atOnce: 1, gathersUpTo: 0 };

export type BatcherOptions<Item, Result> = {
  /** One result per item, in their order. A rejection has left nothing behind. */
  readonly run: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** One queue for all items where it is absent. */
  readonly keyOf?: (item: Item) => string;
  /** Bounds batches by something else than their number of items. */
  readonly weight?: { readonly of: (item: Item) => number; readonly max: number };
  /** Errors after which each item is tried by itself: refusals of the store and want of room where it is absent. */
  readonly isOneItemsFault?: (error: unknown) => boolean;
};

const maxWaiting = 65_536;

type Waiting<Item, Result> = {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
};

class Queue<Item, Result> {
  readonly key: string;
  waiting: Waiting<Item, Result>[] = [];
  running = 0;
  scheduled = false;
  /** How many waited when the last turn ended. */
  gathered = 0;

  constructor(key: string) {
    this.key = key;
  }
}

export class Batcher<Item, Result> {
  readonly #rules: BatchRules;
  readonly #options: BatcherOptions<Item, Result>;
  readonly #queues = new Map<string, Queue<Item, Result>>();

  constructor(rules: BatchRules, options: BatcherOptions<Item, Result>) {
    this.#rules = rules;
    this.#options = options;
  }

  submit(item: Item): Promise<Result> {
    const queue = this.#queueOf(this.#options.keyOf?.(item) ?? "");
    if (queue.waiting.length >= maxWaiting) {
      return Promise.reject(new StorageError("busy", `${maxWaiting} requests wait for the store`));
    }
    return new Promise((resolve, reject) => {
      queue.waiting.push({ item, resolve, reject });
      this.#schedule(queue);
    });
  }

  #queueOf(key: string): Queue<Item, Result> {
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = new Queue(key);
      this.#queues.set(key, queue);
    }
    return queue;
  }

  #schedule(queue: Queue<Item, Result>): void {
    if (queue.scheduled || queue.running >= this.#rules.atOnce) return;
    queue.scheduled = true;
    setImmediate(() => this.#runTurn(queue));
  }

  #runTurn(queue: Queue<Item, Result>): void {
    const waiting = queue.waiting.length;
    if (waiting > queue.gathered && waiting < this.#rules.gathersUpTo) {
      queue.gathered = waiting;
      setImmediate(() => this.#runTurn(queue));
      return;
    }
    queue.gathered = 0;
    queue.scheduled = false;
    void this.#runBatch(queue, this.#takeBatch(queue));
    if (queue.waiting.length > 0) this.#schedule(queue);
  }

  #takeBatch(queue: Queue<Item, Result>): readonly Waiting<Item, Result>[] {
    const { maxItems, atOnce } = this.#rules;
    const { weight } = this.#options;
    const waiting = queue.waiting.length;
    // What is more than one batch can hold is shared evenly by those that may begin at once.
    const shares = Math.min(atOnce - queue.running, Math.ceil(waiting / maxItems));
    const most = Math.min(maxItems, Math.ceil(waiting / shares));
    if (weight === undefined) return queue.waiting.splice(0, most);
    let sum = 0;
    let count = 0;
    for (const { item } of queue.waiting) {
      sum += weight.of(item);
      if (count === most || (count > 0 && sum > weight.max)) break;
      count += 1;
    }
    return queue.waiting.splice(0, count);
  }

  async #runBatch(queue: Queue<Item, Result>, batch: readonly Waiting<Item, Result>[]): Promise<void> {
    queue.running += 1;
    await this.#settle(batch);
    queue.running -= 1;
    if (queue.waiting.length > 0) this.#schedule(queue);
    else if (queue.running === 0) this.#queues.delete(queue.key);
  }

  async #settle(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    const { run, isOneItemsFault = isRefusalOrFull } = this.#options;
    try {
      const results = await run(batch.map(({ item }) => item));
      assert(results.length === batch.length, "a batch has one result per item");
      for (const [index, result] of results.entries()) batch[index]?.resolve(result);
    } catch (error) {
      if (batch.length > 1 && isOneItemsFault(error)) for (const one of batch) await this.#settle([one]);
      else for (const { reject } of batch) reject(error);
    }
  }
}

/** An item that writes nothing, such as a retry, does not need the room that a full disk lacks. */
export function isRefusalOrFull(error: unknown): boolean {
  return isRefusal(error) || (error instanceof StorageError && error.kind === "disk_full");
}
