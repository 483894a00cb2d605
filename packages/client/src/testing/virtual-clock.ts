// A clock for tests whose time passes by itself when all tasks wait: sleepers wake in order, as soon as nothing else
// can run. So minutes take no time, and no test depends on how fast it runs.
import type { OnceClock } from "../once/once-clock.ts";

type Sleeper = { readonly atMs: number; readonly wake: () => void };

export class VirtualClock implements OnceClock {
  #nowMs = 0;
  #sleepers: Sleeper[] = [];
  #pumping = false;

  readonly monotonicMs = (): number => this.#nowMs;
  readonly wallMs = (): number => 1_700_000_000_000 + this.#nowMs;

  readonly sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper = { atMs: this.#nowMs + Math.max(0, ms), wake: resolve };
      this.#sleepers.push(sleeper);
      signal?.addEventListener("abort", () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        resolve();
      });
      this.#pump();
    });
  };

  /** Time that passes while tasks are busy. */
  skip(ms: number): void {
    this.#nowMs += ms;
  }

  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    setImmediate(() => {
      this.#pumping = false;
      const next = this.#sleepers.toSorted((left, right) => left.atMs - right.atMs)[0];
      if (next === undefined) return;
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.wake();
      this.#pump();
    });
  }
}
