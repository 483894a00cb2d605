// A clock that moves when a test says so.
import type { Clock, Timer } from "../ports.ts";

export class ManualClock implements Clock {
  #nowMs: number;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];

  constructor(nowMs = 1_800_000_000_000) {
    this.#nowMs = nowMs;
  }

  readonly nowMs = (): number => this.#nowMs;

  readonly setTimer = (delayMs: number, callback: () => void): Timer => {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((each) => each !== timer);
      },
    };
  };

  readonly noticeSleep = (): void => undefined;

  /** Milliseconds until the next timer; undefined where none is set. */
  get nextTimerInMs(): number | undefined {
    const times = this.#timers.map(({ atMs }) => atMs);
    return times.length === 0 ? undefined : Math.min(...times) - this.#nowMs;
  }

  /** Moves on, calling what becomes due in its order. */
  advance(durationMs: number): void {
    const endMs = this.#nowMs + durationMs;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((each) => each !== due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.callback();
    }
    this.#nowMs = endMs;
  }
}
