// The last changes of one space, kept so that a session that watches it need not look at everything after each commit. The
// answer is "unknown" behind a gap and before the oldest change that is kept: the session then looks for itself. Pure.

export type SpaceChange = {
  readonly seq: number;
  readonly branch: string;
  readonly entityIds: readonly string[];
};

export type ChangedEntities =
  | { readonly type: "known"; readonly ids: ReadonlySet<string> }
  | { readonly type: "unknown" };

const changesMax = 2_000;
const idsMax = 50_000;
/** Changes that arrived before one with a lower seq. */
const aheadMax = 1_000;

export class ChangeFeed {
  /** Without a gap; the first follows `#fromSeq`. */
  #changes: SpaceChange[] = [];
  readonly #ahead = new Map<number, SpaceChange>();
  #fromSeq: number;
  #ids = 0;

  /** `fromSeq`: every change with a higher seq will be added. */
  constructor(fromSeq: number) {
    this.#fromSeq = fromSeq;
  }

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

  /** Drops the changes in between, because there are too many. */
  skipTo(seq: number): void {
    if (seq <= this.upTo) return;
    this.#changes = [];
    this.#ids = 0;
    this.#fromSeq = seq;
    for (const ahead of this.#ahead.keys()) if (ahead <= seq) this.#ahead.delete(ahead);
  }

  /** The entities that the branch itself wrote with afterSeq < seq ≤ upTo. */
  changedOn(branch: string, afterSeq: number, upTo: number): ChangedEntities {
    if (afterSeq < this.#fromSeq || upTo > this.upTo) return { type: "unknown" };
    const changed = new Set<string>();
    for (const change of this.#changes.slice(afterSeq - this.#fromSeq, upTo - this.#fromSeq)) {
      if (change.branch === branch) for (const id of change.entityIds) changed.add(id);
    }
    return { type: "known", ids: changed };
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
