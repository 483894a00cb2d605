// The daemon's clock: the wall clock at start plus the time that has passed since, so that setting the wall clock
// neither delays a retry nor ages a row. Time spent asleep counts, or a laptop that slept for a week would retry what
// its broker has long forgotten.
import { uptime } from "node:os";
import { performance } from "node:perf_hooks";
import type { Clock, Timer } from "./ports.ts";

export type TimeSources = {
  readonly wallMs: () => number;
  /** Stands still while the machine sleeps, as timers do. */
  readonly monotonicMs: () => number;
  /** Seconds since boot, sleep included; may be coarse. */
  readonly uptimeSeconds: () => number;
  /** Node's own timers where absent. */
  readonly setTimer?: Clock["setTimer"];
};

export type SystemClock = Clock & {
  /** Takes sleep into account; cheap enough for every minute and every reconnect, not for every call. */
  readonly noticeSleep: () => void;
};

/** Smaller differences are the coarseness of the sources. */
const sleepMsMin = 2_000;
/** Longer ones overflow Node's timers and would fire at once. */
const timerMsMax = 2 ** 31 - 1;

const systemSources: TimeSources = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  uptimeSeconds: () => uptime(),
};

export function createSystemClock(sources: TimeSources = systemSources): SystemClock {
  const startMs = sources.wallMs() - sources.monotonicMs();
  const bootMs = sources.uptimeSeconds() * 1000 - sources.monotonicMs();
  let sleptMs = 0;
  return {
    nowMs: () => Math.floor(startMs + sources.monotonicMs() + sleptMs),
    noticeSleep: () => {
      const missedMs = sources.uptimeSeconds() * 1000 - sources.monotonicMs() - bootMs - sleptMs;
      if (missedMs >= sleepMsMin) sleptMs += missedMs;
    },
    setTimer: sources.setTimer ?? setNodeTimer,
  };
}

function setNodeTimer(delayMs: number, callback: () => void): Timer {
  const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), timerMsMax));
  return { cancel: () => clearTimeout(timer) };
}
