// Turns of the event loop for work that takes a while: each turn runs one piece of it, and an owner that has asked for many turns
// does not keep the other owners waiting for all of its own.
// Why: docs/decisions/0116.
import type { NextTurn } from "../read-pace.ts";

/** First in, first out, in constant time however many wait. */
type Waiting = Set<{ readonly run: () => void }>;

export class FairTurns {
  readonly #nextTurn: NextTurn;
  /** By owner. An owner that has had a turn stands last. */
  readonly #waiting = new Map<string, Waiting>();
  #isScheduled = false;

  constructor(nextTurn: NextTurn = setImmediate) {
    this.#nextTurn = nextTurn;
  }

  take(owner: string, run: () => void): void {
    const waiting: Waiting = this.#waiting.get(owner) ?? new Set();
    this.#waiting.set(owner, waiting.add({ run }));
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0) return;
    this.#isScheduled = true;
    this.#nextTurn(() => {
      this.#isScheduled = false;
      this.#runOne();
      this.#schedule();
    });
  }

  #runOne(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [owner, waiting] = next;
    const [first] = waiting;
    this.#waiting.delete(owner);
    if (first !== undefined) waiting.delete(first);
    if (waiting.size > 0) this.#waiting.set(owner, waiting);
    first?.run();
  }
}
