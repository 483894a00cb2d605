// Turns of the event loop for those who would each take a while: one of them has each turn, and whoever has asked for many
// does not keep the others waiting for all of its own.
// Why: docs/decisions/0116.
import type { NextTurn } from "../read-pace.ts";

export class FairTurns {
  readonly #nextTurn: NextTurn;
  /** What waits, by the one who asked, who stands last when it has had a turn. */
  readonly #waiting = new Map<string, Waiting>();
  #isScheduled = false;

  constructor(nextTurn: NextTurn = setImmediate) {
    this.#nextTurn = nextTurn;
  }

  take(owner: string, run: () => void): void {
    const waiting = this.#waiting.get(owner) ?? new Waiting();
    waiting.add(run);
    this.#waiting.set(owner, waiting);
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
    const run = waiting.take();
    this.#waiting.delete(owner);
    if (!waiting.isEmpty) this.#waiting.set(owner, waiting);
    run?.();
  }
}

/** First in, first out, in constant time however many wait. */
class Waiting {
  readonly #runs = new Set<{ readonly run: () => void }>();

  get isEmpty(): boolean {
    return this.#runs.size === 0;
  }

  add(run: () => void): void {
    this.#runs.add({ run });
  }

  take(): (() => void) | undefined {
    const [first] = this.#runs;
    if (first !== undefined) this.#runs.delete(first);
    return first?.run;
  }
}
