// The end of something that was given a time to live. Time that the machine slept counts.
import type { Timer } from "../ports.ts";
import type { SystemClock } from "../system-clock.ts";

/** Timers stand still while the machine sleeps, so the clock is asked at least this often. */
const lookMs = 60_000;

export function endAfter(clock: SystemClock, ttlMs: number, onEnd: () => void): Timer {
  const endMs = clock.nowMs() + ttlMs;
  let timer: Timer | undefined;
  const look = () => {
    clock.noticeSleep();
    const leftMs = endMs - clock.nowMs();
    if (leftMs <= 0) onEnd();
    else timer = clock.setTimer(Math.min(leftMs, lookMs), look);
  };
  look();
  return { cancel: () => timer?.cancel() };
}
