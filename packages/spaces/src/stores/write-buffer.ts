// What the bodies of one transaction have decided and the store has not written yet. A body that comes later in the transaction
// sees the space, the sessions and the verdicts as they will be.
// Why: docs/decisions/0057.
import { type Flow, ready } from "../ports/flow.ts";
import type { SessionRow, SpaceRow, VerdictRow } from "../ports/rows.ts";
import type { AcceptedWrites, SpaceView } from "../ports.ts";

/** `verdicts` are those of the accepted commits and of the rejected ones, in the order of their decision. */
export type WriteBatch = { readonly accepted: readonly AcceptedWrites[]; readonly verdicts: readonly VerdictRow[] };

export class WriteBuffer {
  #accepted: AcceptedWrites[] = [];
  #verdicts: VerdictRow[] = [];
  /** What the sessions have become here, over what the database said. */
  readonly #moved = new Map<string, Pick<SessionRow, "lastLocalSeq" | "usedAtMs">>();
  #raisedTo: number | undefined;

  /** How many verdicts wait to be written. */
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

  /** To be written now. What was decided stays visible. */
  take(): WriteBatch {
    const batch = { accepted: this.#accepted, verdicts: this.#verdicts };
    this.#accepted = [];
    this.#verdicts = [];
    return batch;
  }

  space(row: SpaceRow): SpaceRow {
    return this.#raisedTo === undefined ? row : { ...row, lastSeq: this.#raisedTo };
  }

  session(row: SessionRow): SessionRow {
    const moved = this.#moved.get(row.sessionId);
    return moved === undefined ? row : { ...row, ...moved };
  }

  /** `findStored` is asked where not all of them are in the buffer. */
  findVerdicts(
    sessionId: string,
    localSeqs: readonly number[],
    findStored: SpaceView["findVerdicts"],
  ): Flow<VerdictRow[]> {
    const buffered = this.#verdicts.filter((row) => row.sessionId === sessionId && localSeqs.includes(row.localSeq));
    return buffered.length === localSeqs.length ? ready(() => buffered) : findStored(sessionId, localSeqs);
  }

  forgetSession(sessionId: string): void {
    this.#moved.delete(sessionId);
  }

  /** After an undo: the rows of the database hold again. */
  forgetAll(): void {
    this.#raisedTo = undefined;
    this.#moved.clear();
  }
}
