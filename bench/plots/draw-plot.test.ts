import { describe, expect, it } from "vitest";
import { judgeBar } from "../method/bars.ts";
import { summarise } from "../method/statistics.ts";
import type { ScenarioReport } from "../scenarios/scenario.ts";
import { drawReport } from "./draw-plot.ts";
import type { CurvePlot, RangePlot } from "./plot.ts";

const kept = { name: "ours ÷ D", kind: "at_least", limit: 0.75 } as const;
const missed = { name: "start < 2 & small", kind: "at_most", limit: 2 } as const;

const peers: RangePlot = {
  kind: "range",
  name: "peers",
  title: "Messages per second",
  scale: "log",
  digits: 0,
  rows: [
    { label: "ours", value: summarise([20_000, 21_000, 22_000]) },
    { label: "theirs", value: summarise([300, 310, 320]) },
  ],
};

const growth: CurvePlot = {
  kind: "curve",
  name: "curves",
  title: "Growth",
  xLabel: "rows",
  panels: [
    {
      title: "accept",
      lines: ["SQLite", "PostgreSQL"].map((label, at) => ({
        label,
        points: [1_000, 10_000, 100_000].map((x, step) => ({ x, y: summarise([1 + at * 0.1 + step * 0.2]) })),
      })),
    },
  ],
};

function report(change: Partial<ScenarioReport> = {}): ScenarioReport {
  return {
    scenario: "accept",
    title: "Accepts",
    conditions: [],
    durability: [],
    machine: {} as ScenarioReport["machine"],
    segmentMs: 2_000,
    outcomes: [],
    tables: [{ caption: "64 callers", columns: [], rows: [] }],
    bars: [judgeBar(kept, [0.8]), judgeBar(missed, [3])],
    ...change,
  };
}

describe("the drawings of a report", () => {
  it("hold its promises: the number, what is asked, and in words whether it was missed", () => {
    const [drawing] = drawReport(report());
    expect(drawing?.file).toBe("accept-bars.svg");
    expect(drawing?.svg).toContain(">0.80 (≥ 0.75)<");
    expect(drawing?.svg).toContain(">3.00 (missed: ≤ 2)<");
  });

  it("are well-formed whatever a name contains", () => {
    const [drawing] = drawReport(report());
    expect(drawing?.svg).toContain("start &lt; 2 &amp; small");
    expect(drawing?.svg.match(/<(?!\/|svg|title|style|rect|text|line|circle|path)/)).toBeNull();
  });

  it("are the same bytes for the same figures, and are read on a dark page too", () => {
    const drawn = () => drawReport(report({ plots: [peers, growth] })).map(({ svg }) => svg);
    expect(drawn()).toEqual(drawn());
    for (const svg of drawn()) expect(svg).toContain("prefers-color-scheme: dark");
  });

  it("show every number that they draw", () => {
    const [ofPeers, ofGrowth] = drawReport(report({ plots: [peers, growth], bars: [] }));
    for (const number of ["21,000", "310"]) expect(ofPeers?.svg).toContain(`>${number}<`);
    for (const number of ["1.00", "1.20", "1.40", "1.10", "1.30", "1.50", "100,000"]) {
      expect(ofGrowth?.svg).toContain(`>${number}<`);
    }
  });

  it("stay inside their frame", () => {
    for (const { svg } of drawReport(report({ plots: [peers, growth] }))) {
      const [, width = 0, height = 0] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)?.map(Number) ?? [];
      for (const [, x, y] of svg.matchAll(/ x[12]?="([-\d.]+)" y[12]?="([-\d.]+)"/g)) {
        expect(Number(x)).toBeGreaterThanOrEqual(0);
        expect(Number(x)).toBeLessThanOrEqual(width);
        expect(Number(y)).toBeGreaterThanOrEqual(0);
        expect(Number(y)).toBeLessThanOrEqual(height);
      }
    }
  });

  it("are none where nothing was concluded", () => {
    expect(drawReport(report({ tables: [], plots: [peers] }))).toEqual([]);
  });
});
