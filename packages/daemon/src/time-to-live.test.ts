import { describe, expect, it } from "vitest";
import { endAfter } from "./ephemeral.ts";
import { ManualClock } from "./testing/manual-clock.ts";

const hourMs = 3_600_000;

/** A clock whose timers stand still while the machine sleeps. */
class SleepyClock extends ManualClock {
  #sleptMs = 0;
  #noticedMs = 0;
  override readonly nowMs = (): number => this.#awakeMs() + this.#noticedMs;
  readonly #awakeMs: () => number;

  constructor() {
    super();
    const base = new ManualClock();
    this.#awakeMs = base.nowMs;
    this.pass = (ms) => {
      base.advance(ms);
      this.advance(ms);
    };
  }

  pass: (ms: number) => void;
  sleep(ms: number): void {
    this.#sleptMs += ms;
  }
  override readonly noticeSleep = (): void => {
    this.#noticedMs = this.#sleptMs;
  };
}

function count(clock: ManualClock, ttlMs: number) {
  const ends = { count: 0 };
  const timer = endAfter(clock, ttlMs, () => {
    ends.count++;
  });
  return { ends, timer };
}

describe("a time to live", () => {
  it("ends once, when it is over and not before", () => {
    const clock = new ManualClock();
    const { ends } = count(clock, 2 * hourMs);
    clock.advance(2 * hourMs - 1);
    expect(ends.count).toBe(0);
    clock.advance(1);
    expect(ends.count).toBe(1);
    clock.advance(10 * hourMs);
    expect(ends.count).toBe(1);
  });

  it("longer than any timer of the system is one all the same", () => {
    const clock = new ManualClock();
    const { ends } = count(clock, 1_000 * hourMs);
    clock.advance(1_000 * hourMs - 1);
    expect(ends.count).toBe(0);
    clock.advance(1);
    expect(ends.count).toBe(1);
  });

  it("goes on while the machine sleeps", () => {
    const clock = new SleepyClock();
    const { ends } = count(clock, 2 * hourMs);
    clock.pass(hourMs / 2);
    clock.sleep(5 * hourMs);
    expect(ends.count).toBe(0);
    clock.pass(60_000);
    expect(ends.count).toBe(1);
  });

  it("that was called off never ends", () => {
    const clock = new ManualClock();
    const { ends, timer } = count(clock, hourMs);
    timer.cancel();
    clock.advance(2 * hourMs);
    expect(ends.count).toBe(0);
  });
});
