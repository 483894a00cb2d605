// Time as `once` needs it: a clock that is never set, and a sleep that a signal can end early.
import { performance } from "node:perf_hooks";
import { setTimeout as sleepFor } from "node:timers/promises";

export type OnceClock = {
  /** Never goes back, and does not jump when the system's time is set. */
  readonly monotonicMs: () => number;
  /** Milliseconds since 1970, to compare with a broker's `lease_until`. */
  readonly wallMs: () => number;
  /** Resolves after this time, or as soon as the signal is aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
};

/** A longer delay would overflow Node's timers and fire at once. */
const timerMsMax = 2 ** 31 - 1;

export const systemOnceClock: OnceClock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  sleep: async (ms, signal) => {
    if (signal?.aborted) return;
    try {
      await sleepFor(Math.min(Math.max(0, ms), timerMsMax), undefined, { ...(signal === undefined ? {} : { signal }) });
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  },
};
