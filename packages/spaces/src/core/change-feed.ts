// The last changes of one space, kept so that whoever watches it need not look at everything after each commit. Knows
// what it does not know: a gap or a past that is too long ago makes the asker look for itself. Pure.

export type SpaceChange = {
  readonly seq: number;
  readonly branch: string;
  readonly entityIds: readonly string[];
};

const changesMax = 2_000;
const idsMax = 50_000;
/** Changes that came before the one they follow. */
const aheadMax = 1_000;

export class ChangeFeed {
  /** Without a gap; the first follows `#fromSeq`. */
  #changes: SpaceChange[] = [];
  readonly #ahead = new Map<number, SpaceChange>();
  #fromSeq: number;
  #ids = 0;

  /** Everything after this seq will be told. */
  constructor(fromSeq: number) {
    this.#fromSeq = fromSeq;
  }

  /** Every change up to here is known, from some point on. */
  get upTo(): number {
    return this.#fromSeq + this.#changes.length;
  }

  /** In any order, and any number of times. */
  add(change: SpaceChange): void {
    if (change.seq <= this.upTo || this.#ahead.size >= aheadMax) return;
    this.#ahead.set(change.seq, change);
    for (let next = this.#ahead.get(this.upTo + 1); next !== undefined; next = this.#ahead.get(this.upTo + 1)) {
      this.#ahead.delete(next.seq);
      this.#changes.push(next);
      this.#ids += next.entityIds.length;
    }
    this.#forgetOldest();
  }

  /** Gives up what is between, because there is too much of it. */
  skipTo(seq: number): void {
    if (seq <= this.upTo) return;
    this.#changes = [];
    this.#ids = 0;
    this.#fromSeq = seq;
    for (const ahead of this.#ahead.keys()) if (ahead <= seq) this.#ahead.delete(ahead);
  }

  /** The entities that the branch itself wrote with afterSeq < seq ≤ upTo; undefined: not known. */
  changedOn(branch: string, afterSeq: number, upTo: number): ReadonlySet<string> | undefined {
    if (afterSeq < this.#fromSeq || upTo > this.upTo) return undefined;
    const changed = new Set<string>();
    for (const change of this.#changes.slice(afterSeq - this.#fromSeq, upTo - this.#fromSeq)) {
      if (change.branch === branch) for (const id of change.entityIds) changed.add(id);
    }
    return changed;
  }

  #forgetOldest(): void {
    let count = 0;
    while (this.#changes.length - count > changesMax || this.#ids > idsMax) {
      this.#ids -= this.#changes[count]?.entityIds.length ?? 0;
      count += 1;
    }
    this.#changes.splice(0, count);
    this.#fromSeq += count;
  }
}
