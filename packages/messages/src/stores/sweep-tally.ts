// What one step of housekeeping has removed so far, and whether it has left some for the next. Both stores fill it.
import type { SweepKind, SweepStep } from "../ports/housekeeping.ts";

export class SweepTally {
  readonly #counts = new Map<SweepKind, number>();
  #more = false;

  add(kind: SweepKind, rows: number): void {
    if (rows > 0) this.#counts.set(kind, (this.#counts.get(kind) ?? 0) + rows);
  }

  /** As many as the limit allowed: there may be more of them. */
  addUpTo(kind: SweepKind, rows: number, limit: number): void {
    this.add(kind, rows);
    if (rows >= limit) this.#more = true;
  }

  setMore(): void {
    this.#more = true;
  }

  step(): SweepStep {
    return { counts: Object.fromEntries(this.#counts), more: this.#more };
  }
}
