// What the bodies of one transaction have decided and a store has not written yet. Whoever comes later in the transaction
// sees the space, the sessions and the verdicts as they will be. No I/O.
// Why: docs/decisions/0057.
import type { SessionRow, SpaceRow, VerdictRow } from "../ports/rows.ts";
import type { AcceptedWrites } from "../ports.ts";

/** `verdicts` are those of the accepted commits and of the rejected ones, in the order of their decision. */
export type Decided = { readonly accepted: readonly AcceptedWrites[]; readonly verdicts: readonly VerdictRow[] };

export class HeldWrites {
  #accepted: AcceptedWrites[] = [];
  #verdicts: VerdictRow[] = [];
  /** What the sessions have become here, over what the database said. */
  readonly #moved = new Map<string, Pick<SessionRow, "lastLocalSeq" | "usedAtMs">>();
  #raisedTo: number | undefined;

  /** How many verdicts are held back. */
  get count(): number {
    return this.#verdicts.length;
  }

  accept(writes: AcceptedWrites): void {
    this.#accepted.push(writes);
    this.#raisedTo = writes.commit.seq;
    this.decide(writes.verdict);
  }

  decide(verdict: VerdictRow): void {
    const { sessionId, localSeq, decidedAtMs } = verdict;
    this.#verdicts.push(verdict);
    this.#moved.set(sessionId, { lastLocalSeq: localSeq, usedAtMs: decidedAtMs });
  }

  /** To be written now. What was decided stays known. */
  take(): Decided {
    const decided = { accepted: this.#accepted, verdicts: this.#verdicts };
    this.#accepted = [];
    this.#verdicts = [];
    return decided;
  }

  space(row: SpaceRow): SpaceRow {
    return this.#raisedTo === undefined ? row : { ...row, lastSeq: this.#raisedTo };
  }

  session(row: SessionRow): SessionRow {
    const moved = this.#moved.get(row.sessionId);
    return moved === undefined ? row : { ...row, ...moved };
  }

  /** Undefined: not all of them are held back here. */
  verdictsOf(sessionId: string, localSeqs: readonly number[]): VerdictRow[] | undefined {
    const held = this.#verdicts.filter((row) => row.sessionId === sessionId && localSeqs.includes(row.localSeq));
    return held.length === localSeqs.length ? held : undefined;
  }

  forgetSession(sessionId: string): void {
    this.#moved.delete(sessionId);
  }

  /** What the database says is true again. */
  forgetAll(): void {
    this.#raisedTo = undefined;
    this.#moved.clear();
  }
}
