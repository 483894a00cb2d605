// Runs something once each night, at a moment of its own within the hour from the given minute on, so that brokers side
// by side do not all begin at once. The clock and the chance are given.

export type NightlyOptions = {
  /** After midnight, UTC. */
  readonly minute: number;
  readonly nowMs: () => number;
  /** From 0 to 1, without 1. */
  readonly random: () => number;
  readonly run: () => Promise<void>;
  readonly onFailure: (error: unknown) => void;
};

const minuteMs = 60_000;
const dayMs = 86_400_000;
const spreadMs = 60 * minuteMs;
/** A machine may sleep and a clock may be set: the time is looked at again and again. */
const lookMs = 10 * minuteMs;

/** The next moment after `nowMs`, on its day or the following one. */
export function nextNightMs(nowMs: number, minute: number, jitterMs: number): number {
  const today = Math.floor(nowMs / dayMs) * dayMs + minute * minuteMs + jitterMs;
  return today > nowMs ? today : today + dayMs;
}

export function startNightly(options: NightlyOptions): { readonly stop: () => Promise<void> } {
  const { minute, nowMs, random, run, onFailure } = options;
  const planAfter = (afterMs: number) => {
    const jitterMs = Math.floor(random() * spreadMs);
    const dueAtMs = nextNightMs(afterMs, minute, jitterMs);
    return { dueAtMs, overAtMs: dueAtMs - jitterMs + spreadMs };
  };
  let planned = planAfter(nowMs());
  let running: Promise<void> | undefined;
  const look = () => {
    if (running !== undefined || nowMs() < planned.dueAtMs) return;
    running = run()
      .catch(onFailure)
      .finally(() => {
        running = undefined;
        // Behind this night's hour: a later moment of the same hour would be the same night again.
        planned = planAfter(Math.max(nowMs(), planned.overAtMs));
      });
  };
  const timer = setInterval(look, lookMs);
  return {
    stop: async () => {
      clearInterval(timer);
      await running;
    },
  };
}
