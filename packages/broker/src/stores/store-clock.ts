// The time of a store that one broker has alone. Leases, pauses and expiries in it are moments, and a moment only means
// something while time passes evenly: a wall clock that is set back would hold every one of them until it has caught up.
// So this clock goes on with the time that has passed, whatever the wall clock says, and comes back to it gently.
// Why: docs/decisions/0140.
import { underWayMs } from "@claudemesh/messages/claim-time";

export type TimeSources = {
  readonly wallMs: () => number;
  /** Never set, and stands still while the machine sleeps. */
  readonly monotonicMs: () => number;
};

/** While it is ahead of the wall clock it runs slower by this share: leases last a little longer, never for days. */
const slowerBy = 0.1;
/** While it is behind it runs faster by this share: a lease of a minute loses less than a journey over the network. */
const fasterBy = 0.01;

const systemSources: TimeSources = { wallMs: () => Date.now(), monotonicMs: () => performance.now() };

/**
 * `atLeastMs`: the latest moment that the store knows of. Time does not go back behind it, also where the clock was set
 * back while no broker ran. A wall clock that is further ahead than any step takes is followed at once: the machine slept,
 * and that time has passed (MSG-24).
 */
export function createStoreClock(atLeastMs: number, sources: TimeSources = systemSources): () => number {
  let nowMs = Math.max(sources.wallMs(), atLeastMs);
  let readAtMs = sources.monotonicMs();
  return () => {
    const monotonicMs = sources.monotonicMs();
    const passedMs = Math.max(monotonicMs - readAtMs, 0);
    readAtMs = monotonicMs;
    nowMs += passedMs;
    const aheadMs = nowMs - sources.wallMs();
    if (aheadMs >= 0) nowMs -= Math.min(aheadMs, passedMs * slowerBy);
    else if (-aheadMs > underWayMs) nowMs -= aheadMs;
    else nowMs += Math.min(-aheadMs, passedMs * fasterBy);
    return Math.floor(nowMs);
  };
}
