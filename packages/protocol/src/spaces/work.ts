// How much work a commit makes for the server that decides it, counted while it is done, and its bound. A few bytes of a
// commit can ask for very much: a splice moves what follows it, a read is compared with every later write. The server is
// one event loop, so that what takes long stops everyone. A unit is about a nanosecond of an ordinary machine.
// Why: docs/decisions/0115.
import { MeshError } from "../errors/errors.ts";

/** What one commit may cost. The most expensive commit that is admitted takes less than a tenth of a second. */
export const commitWorkMax = 80_000_000;

/** What the commits of one transaction may cost before the others have to wait for the next one. */
export const transactionWorkMax = 20_000_000;

/** Measured; what is rare in a real commit may be counted as more than it takes, and never as much less. */
export const workCosts = {
  patch: 3_000,
  /** One key of a path, in a patch, a read or a later write. */
  pathKey: 500,
  /** An item of an array that is copied, or that a change before it moves. */
  itemMoved: 1,
  /** A key of a small object that is copied, and of one that has become a hash table. */
  keyCopied: 60,
  keyOfLargeCopied: 700,
  keyCompared: 100,
  memberWalked: 20,
  /** A character of a document, or of patches, that is read from the store or written to it. */
  character: 12,
  /** A row that is looked up or written. */
  row: 5_000,
  /** A read, for each branch that it looks through. */
  read: 1_000,
  /** A key of a read's or a later write's path, in an index of the later writes. */
  keyIndexed: 250,
  /** A read that is compared with one touch of a later write. */
  comparison: 100,
  /** A key of the read's path, which such a comparison may look at to its end. */
  pathKeyCompared: 10,
} as const;

/** From so many keys on an object is a hash table. */
export const largeObjectKeys = 128;

export class Work {
  readonly #limit: number;
  readonly #onSpent: ((units: number) => void) | undefined;
  #spent = 0;

  /** `onSpent` hears of all of it, also of what was refused. */
  constructor(limit = Number.POSITIVE_INFINITY, onSpent?: (units: number) => void) {
    this.#limit = limit;
    this.#onSpent = onSpent;
  }

  get spent(): number {
    return this.#spent;
  }

  /** Throws when it has become too much; what was begun is then left undone. */
  spend(units: number): void {
    this.#spent += units;
    this.#onSpent?.(units);
    if (this.#spent > this.#limit) {
      throw new MeshError("commit_too_expensive", undefined, { work: this.#spent, limit: this.#limit });
    }
  }
}

/** What it costs to compare a read, or a place, of this path with one touch of a later write. */
export function comparisonCost(path: readonly string[]): number {
  return workCosts.comparison + path.length * workCosts.pathKeyCompared;
}

/** What it costs to copy an object with so many keys. */
export function copyCost(keys: number): number {
  return keys * (keys > largeObjectKeys ? workCosts.keyOfLargeCopied : workCosts.keyCopied);
}
