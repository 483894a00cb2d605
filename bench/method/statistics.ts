// The few statistics that a report needs: quantiles of what one segment saw, and median with quartiles over rounds.
// What the numbers mean, and which of them count, is decided elsewhere.
import assert from "node:assert/strict";

export type Summary = {
  readonly median: number;
  readonly lowerQuartile: number;
  readonly upperQuartile: number;
  readonly count: number;
};

/** Interpolates linearly between the two nearest values; `sorted` is ascending and not empty. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  assert(sorted.length > 0, "no values have no quantile");
  assert(share >= 0 && share <= 1, "a quantile lies between 0 and 1");
  const rank = (sorted.length - 1) * share;
  const below = Math.floor(rank);
  const lower = sorted[below] ?? Number.NaN;
  const upper = sorted[Math.ceil(rank)] ?? Number.NaN;
  return lower + (upper - lower) * (rank - below);
}

export function summarise(values: readonly number[]): Summary {
  const sorted = [...values].sort((a, b) => a - b);
  return {
    median: quantile(sorted, 0.5),
    lowerQuartile: quantile(sorted, 0.25),
    upperQuartile: quantile(sorted, 0.75),
    count: sorted.length,
  };
}

/** What a path can do at best when its layers share one thread: each takes its own time, and the times add up. */
export function combineRates(perSecond: readonly number[]): number {
  assert(
    perSecond.length > 0 && perSecond.every((rate) => rate > 0),
    "a layer that does nothing per second bounds nothing",
  );
  return 1 / perSecond.reduce((sum, rate) => sum + 1 / rate, 0);
}
