// When a night's work begins, with a clock and a chance of our own.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { nextNightMs, startNightly } from "./nightly.ts";

const hourMs = 3_600_000;
const midnight = Date.UTC(2026, 0, 10);

beforeEach(() => {
  vi.useFakeTimers({ now: midnight });
});
afterEach(() => {
  vi.useRealTimers();
});

test("the next night is today's while it is still to come, and tomorrow's at its own moment and after", () => {
  expect(nextNightMs(midnight, 180, 5_000)).toBe(midnight + 3 * hourMs + 5_000);
  expect(nextNightMs(midnight + 3 * hourMs + 5_000, 180, 5_000)).toBe(midnight + 27 * hourMs + 5_000);
  expect(nextNightMs(midnight + 23 * hourMs, 0, 0)).toBe(midnight + 24 * hourMs);
});

test("it runs once each night within the hour, goes on after a failure, and ends with the broker", async () => {
  const began: number[] = [];
  const failures: unknown[] = [];
  const nightly = startNightly({
    minute: 180,
    nowMs: Date.now,
    random: () => 0.5,
    run: async () => {
      began.push((Date.now() - midnight) / hourMs);
      if (began.length === 1) throw new Error("made to fail");
    },
    onFailure: (error) => failures.push(error),
  });
  await vi.advanceTimersByTimeAsync(3 * 24 * hourMs);
  expect(began).toHaveLength(3);
  for (const [night, hour] of began.entries()) {
    expect(hour - night * 24).toBeGreaterThanOrEqual(3.5);
    expect(hour - night * 24).toBeLessThan(4);
  }
  expect(failures).toEqual([new Error("made to fail")]);
  await nightly.stop();
  await vi.advanceTimersByTimeAsync(3 * 24 * hourMs);
  expect(began).toHaveLength(3);
});

test.each([180, 1430])(
  "it runs once in a night also where the next moment is drawn later in the hour: from minute %i",
  async (minute) => {
    const began: number[] = [];
    const chances = [0.05, 0.95, 0.3, 0.6, 0.999, 0, 0.5, 0.2];
    const nightly = startNightly({
      minute,
      nowMs: Date.now,
      random: () => chances[began.length % chances.length] ?? 0,
      run: async () => void began.push(Math.floor((Date.now() - midnight - minute * 60_000) / (24 * hourMs))),
      onFailure: () => undefined,
    });
    await vi.advanceTimersByTimeAsync(minute * 60_000 + 8 * 24 * hourMs - 1);
    expect(began).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    await nightly.stop();
  },
);

test("a night that takes longer than a day is not begun twice at once", async () => {
  const gate = Promise.withResolvers<void>();
  const run = vi.fn(() => gate.promise);
  const nightly = startNightly({ minute: 0, nowMs: Date.now, random: () => 0, run, onFailure: () => undefined });
  await vi.advanceTimersByTimeAsync(72 * hourMs);
  expect(run).toHaveBeenCalledTimes(1);
  gate.resolve();
  await vi.advanceTimersByTimeAsync(48 * hourMs);
  expect(run.mock.calls.length).toBeGreaterThan(1);
  await nightly.stop();
});
