// The clock of a store that one broker has alone: time that has passed counts, whatever the wall clock says.
import { expect, test } from "vitest";
import { createStoreClock } from "./store-clock.ts";

const dayMs = 86_400_000;
const startMs = 1_700_000_000_000;

function clockAt(atLeastMs = 0) {
  let wallMs = startMs;
  let monotonicMs = 5_000;
  const nowMs = createStoreClock(atLeastMs, { wallMs: () => wallMs, monotonicMs: () => monotonicMs });
  return {
    nowMs,
    pass: (ms: number) => {
      wallMs += ms;
      monotonicMs += ms;
      return nowMs();
    },
    /** An operator sets the clock, or the machine sleeps. */
    set: (byMs: number) => {
      wallMs += byMs;
    },
    wallMs: () => wallMs,
  };
}

test("agrees with a wall clock that is not set", () => {
  const clock = clockAt();
  expect(clock.nowMs()).toBe(startMs);
  expect(clock.pass(1_234)).toBe(startMs + 1_234);
});

test("goes on where the wall clock is set back by two days, and a lease of a minute ends after little more than a minute", () => {
  const clock = clockAt();
  const untilMs = clock.nowMs() + 60_000;
  clock.set(-2 * dayMs);
  expect(clock.nowMs()).toBe(startMs);
  expect(clock.pass(59_999)).toBeLessThan(untilMs);
  expect(clock.pass(7_000)).toBeGreaterThanOrEqual(untilMs);
});

test("comes back to the wall clock by running slower, and never back in time", () => {
  const clock = clockAt();
  clock.set(-1_000);
  let last = clock.nowMs();
  for (let step = 0; step < 200; step++) {
    const now = clock.pass(100);
    expect(now).toBeGreaterThanOrEqual(last);
    last = now;
  }
  expect(last).toBe(clock.wallMs());
});

test("does not end leases early where the wall clock is set ahead by less than a step may take", () => {
  const clock = clockAt();
  const untilMs = clock.nowMs() + 60_000;
  clock.set(299_000);
  expect(clock.pass(59_000)).toBeLessThan(untilMs);
  // It catches up all the same.
  for (let hour = 0; hour < 10; hour++) clock.pass(3_600_000);
  expect(clock.nowMs()).toBe(clock.wallMs());
});

test("follows at once where the machine slept for longer than any step takes", () => {
  const clock = clockAt();
  clock.set(dayMs);
  expect(clock.nowMs()).toBe(startMs + dayMs);
});

test("begins no earlier than the store's own past", () => {
  expect(clockAt(startMs + 2 * dayMs).nowMs()).toBe(startMs + 2 * dayMs);
});
