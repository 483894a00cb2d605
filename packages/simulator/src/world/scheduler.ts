// Simulated time and the one loop that moves it: the next event runs, everything that it made ready runs to its end,
// then comes the next. Nothing else decides what runs when.
import type { Timer } from "@claudemesh/daemon/testing/ports";

/** Whose event it is. Events of the dead are dropped; those of a sleeper wait. */
export type Owner = {
  readonly alive: boolean;
  /** At or before now: awake. */
  readonly wakesAtMs: number;
};

type Event = {
  atMs: number;
  readonly order: number;
  readonly run: () => void;
  readonly owner: Owner | undefined;
  cancelled: boolean;
};

// Taken before any test can replace it by a trap.
const realImmediate = setImmediate;
/** Promises that are ready, and those that follow from them, are done when the real loop comes round. */
const settled = () => new Promise<void>((resolve) => realImmediate(resolve));

export class Scheduler {
  /** Since the beginning of the run, without leaps. */
  nowMs = 0;
  events = 0;
  readonly #heap: Event[] = [];
  #order = 0;

  at(atMs: number, run: () => void, owner?: Owner): Timer {
    const event: Event = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, run, owner, cancelled: false };
    this.#push(event);
    return {
      cancel: () => {
        event.cancelled = true;
      },
    };
  }

  after(delayMs: number, run: () => void, owner?: Owner): Timer {
    return this.at(this.nowMs + Math.max(0, delayMs), run, owner);
  }

  /** Runs what is due until then. */
  async runUntil(endMs: number): Promise<void> {
    await this.runWhile(() => true, endMs);
    this.nowMs = endMs;
  }

  /** Runs what is due until the condition, looked at before each event, is false. True: it became so in time. */
  async runWhile(goesOn: () => boolean, endMs: number): Promise<boolean> {
    await settled();
    while (goesOn()) {
      const next = this.#heap[0];
      if (next === undefined || next.atMs > endMs) return false;
      this.#pop();
      if (next.cancelled || next.owner?.alive === false) continue;
      this.nowMs = next.atMs;
      if (next.owner !== undefined && next.owner.wakesAtMs > this.nowMs) {
        next.atMs = next.owner.wakesAtMs;
        this.#push(next);
        continue;
      }
      this.events++;
      next.run();
      await settled();
    }
    return true;
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Event;
      if (!isBefore(event, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) break;
      const right = left + 1;
      const child = right < heap.length && isBefore(heap[right] as Event, heap[left] as Event) ? right : left;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
