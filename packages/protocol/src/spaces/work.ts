// How much work a commit causes for the server, counted while it is done, and the limit. A few bytes of a commit can
// cause very much work: a splice moves all items behind it, and a read is compared with every later write. The server
// runs one event loop, so that slow work delays every caller. A unit is about a nanosecond of an ordinary machine.
// Why: docs/decisions/0115.
import { MeshError } from "../errors/errors.ts";

/** The largest cost of one commit. The most expensive commit that is admitted takes less than a tenth of a second. */
export const commitWorkMax = 80_000_000;

/** The largest cost of the commits of one transaction; further commits wait for the next transaction. */
export const transactionWorkMax = 20_000_000;

/** Measured values. Work that is rare in real commits may be counted too high, and never much too low. */
export const workCosts = {
  patch: 3_000,
  /** One key of a path, in a patch, a read or a later write. */
  pathKey: 500,
  /** An item of an array that is copied, or that moves because of a change before it. */
  itemMoved: 1,
  /** A key of a small object that is copied, and a key of one that has become a hash table. */
  keyCopied: 60,
  keyOfLargeCopied: 700,
  keyCompared: 100,
  memberWalked: 20,
  /** A character of a document, or of patches, that is read from the store or written to it. */
  character: 12,
  /** A key of a large document that is read, beyond its characters: an object of many keys is slow to build. */
  keyRead: 220,
  /** A row that is looked up or written. */
  row: 5_000,
  /** A read, for each branch through which it looks. */
  read: 1_000,
  /** A key in the path of a read or of a later write, in an index of the later writes. */
  keyIndexed: 250,
  /** The comparison of a read with one touch of a later write. */
  comparison: 100,
  /** A key of the read's path, which such a comparison may look at to its end. */
  pathKeyCompared: 10,
} as const;

/** The keys of shorter documents cost no more than their characters say. */
const largeDocumentCharacters = 16_384;

/** From this many keys on an object is a hash table. */
export const largeObjectKeys = 128;

export class Work {
  readonly #limit: number;
  readonly #onSpent: ((units: number) => void) | undefined;
  #spent = 0;
  #largeDocumentsRead = 0;

  /** `onSpent` is called with all work, including that of refused commits. */
  constructor(limit = Number.POSITIVE_INFINITY, onSpent?: (units: number) => void) {
    this.#limit = limit;
    this.#onSpent = onSpent;
  }

  get spent(): number {
    return this.#spent;
  }

  /** Throws when the limit is exceeded; the caller then rolls back what was begun. */
  spend(units: number): void {
    this.#spent += units;
    this.#onSpent?.(units);
    if (this.#spent > this.#limit) {
      throw new MeshError("commit_too_expensive", undefined, { work: this.#spent, limit: this.#limit });
    }
  }

  /**
   * A document that is read from its text. The keys of the first large one are free, because a commit that changes one large document
   * is ordinary, and copying its keys costs much already; many large documents in one commit would stop the others.
   */
  spendOnDocument(text: string): void {
    this.spend(text.length * workCosts.character);
    if (text.length > largeDocumentCharacters && this.#largeDocumentsRead++ > 0) {
      this.spend(countKeys(text) * workCosts.keyRead);
    }
  }
}

/** How many keys a JSON text has, or somewhat more where its strings look like keys. */
function countKeys(text: string): number {
  let keys = 0;
  for (let at = text.indexOf('":'); at !== -1; at = text.indexOf('":', at + 2)) keys++;
  return keys;
}

/** The cost of comparing a read of this path with one touch of a later write. */
export function comparisonCost(path: readonly string[]): number {
  return workCosts.comparison + path.length * workCosts.pathKeyCompared;
}

/** The cost of copying an object with this many keys. */
export function copyCost(keys: number): number {
  return keys * (keys > largeObjectKeys ? workCosts.keyOfLargeCopied : workCosts.keyCopied);
}
