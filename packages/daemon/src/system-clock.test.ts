import { describe, expect, it } from "vitest";
import { createSystemClock } from "./system-clock.ts";

function setUp() {
  const time = { wallMs: 1_800_000_000_000, monotonicMs: 5_000, uptimeSeconds: 100 };
  const clock = createSystemClock({
    wallMs: () => time.wallMs,
    monotonicMs: () => time.monotonicMs,
    uptimeSeconds: () => time.uptimeSeconds,
  });
  const pass = (seconds: number) => {
    time.monotonicMs += seconds * 1_000;
    time.uptimeSeconds += seconds;
  };
  return { time, clock, pass };
}

describe("the daemon's clock", () => {
  it("begins with the wall clock and does not follow its jumps", () => {
    const { clock, time, pass } = setUp();
    expect(clock.nowMs()).toBe(1_800_000_000_000);
    pass(10);
    time.wallMs -= 86_400_000;
    clock.noticeSleep();
    expect(clock.nowMs()).toBe(1_800_000_010_000);
    time.wallMs += 30 * 86_400_000;
    clock.noticeSleep();
    expect(clock.nowMs()).toBe(1_800_000_010_000);
  });

  it("counts the time that the machine slept, once", () => {
    const { clock, time, pass } = setUp();
    pass(10);
    time.uptimeSeconds += 8 * 86_400;
    expect(clock.nowMs()).toBe(1_800_000_010_000);
    clock.noticeSleep();
    clock.noticeSleep();
    expect(clock.nowMs()).toBe(1_800_000_010_000 + 8 * 86_400_000);
  });

  it("takes the coarseness of the system's uptime for no sleep", () => {
    const { clock, time } = setUp();
    time.uptimeSeconds += 1.9;
    clock.noticeSleep();
    expect(clock.nowMs()).toBe(1_800_000_000_000);
  });

  it("waits by the timers that it is given", () => {
    const set: number[] = [];
    const sources = { wallMs: () => 0, monotonicMs: () => 0, uptimeSeconds: () => 0 };
    const clock = createSystemClock({
      ...sources,
      setTimer: (delayMs) => {
        set.push(delayMs);
        return { cancel: () => undefined };
      },
    });
    clock.setTimer(1_500, () => undefined);
    expect(set).toEqual([1_500]);
  });

  it("runs on the real clocks", () => {
    const clock = createSystemClock();
    expect(Math.abs(clock.nowMs() - Date.now())).toBeLessThan(1_000);
  });
});
