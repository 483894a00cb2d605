import { describe, expect, it } from "vitest";
import { growthCurves, growthRatios, growthSegment, growthSizes, growthTables, growthWorks } from "./growth-figures.ts";

const sizes = growthSizes(100_000);

/** Every tenfold costs half as much again. */
function round(perSecond: number) {
  const figures = growthWorks.flatMap((work) =>
    sizes.map((rows, step) => {
      const one = { perSecond: perSecond / 1.5 ** step, p50Ms: 1, p99Ms: 2 };
      return [growthSegment("sqlite", work, rows), one] as const;
    }),
  );
  return new Map(figures);
}

const rounds = [round(900), round(9_000)];

describe("growth", () => {
  it("goes in steps of ten up to what was asked for", () => {
    expect(sizes).toEqual([1_000, 10_000, 100_000]);
    expect(growthSizes(10_000_000)).toHaveLength(5);
    expect(growthSizes(99_999)).toEqual([1_000, 10_000]);
  });

  it("is the time beside the smallest store of the same round, however fast that round was", () => {
    for (const [step, rows] of sizes.entries()) {
      for (const ratio of growthRatios(rounds, "sqlite", "commit", rows)) expect(ratio).toBeCloseTo(1.5 ** step);
    }
  });

  it("has a row per store and work, and a point per size", () => {
    const [rates, ratios] = growthTables(rounds, ["sqlite"], sizes);
    expect(rates?.rows).toHaveLength(growthWorks.length);
    expect(ratios?.rows[0]?.slice(-1)).toEqual(["2.25 (2.25–2.25)"]);
    const { panels } = growthCurves(rounds, ["sqlite"], sizes);
    expect(panels.map(({ lines }) => lines[0]?.points.map(({ x }) => x))).toEqual(growthWorks.map(() => sizes));
  });
});
