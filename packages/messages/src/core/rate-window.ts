// The windows in which accepted messages are counted for dashboards. The limiter has windows of its own.

const windowMs = 3_600_000;
/** Older counts are of no use to a dashboard. */
const keptMs = 31 * 86_400_000;

export function rateWindowStartMs(acceptedAtMs: number): number {
  return Math.floor(acceptedAtMs / windowMs) * windowMs;
}

/** Counts of windows that began before this may go. */
export function ratesKeptFromMs(nowMs: number): number {
  return rateWindowStartMs(nowMs - keptMs);
}
