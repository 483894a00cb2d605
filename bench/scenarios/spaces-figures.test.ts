import { describe, expect, it } from "vitest";
import type { Figures } from "./accept-figures.ts";
import {
  commitRatios,
  commitsSegment,
  contendedSegment,
  historyRatios,
  historySegment,
  rowsSegment,
  sessionCounts,
  spacesTables,
} from "./spaces-figures.ts";

const figures = (perSecond: number): Figures => ({ perSecond, p50Ms: 1, p99Ms: 2 });

function round(rows: number, commits: number, short: number, long: number): ReadonlyMap<string, Figures> {
  return new Map([
    ...sessionCounts.flatMap((sessions): [string, Figures][] => [
      [rowsSegment("sqlite", sessions), figures(rows)],
      [commitsSegment("sqlite", sessions), figures(commits)],
    ]),
    [contendedSegment("sqlite"), figures(10)],
    [historySegment("sqlite", "short"), figures(short)],
    [historySegment("sqlite", "long"), figures(long)],
  ]);
}

describe("the spaces' figures", () => {
  const rounds = [round(10_000, 8_000, 3_000, 2_000), round(1_000, 700, 300, 300)];

  it("compare commits with the rows of their own round", () => {
    expect(commitRatios(rounds, "sqlite", 64)).toEqual([0.8, 0.7]);
  });

  it("say how many times as long a long history takes", () => {
    expect(historyRatios(rounds, "sqlite")).toEqual([1.5, 1]);
  });

  it("stand in tables, one row for each number of sessions", () => {
    const [commits, contended, history] = spacesTables(rounds, ["sqlite"], { short: "100", long: "1,000" });
    expect(commits?.rows.map(([store, sessions]) => [store, sessions])).toEqual([
      ["SQLite", "64"],
      ["SQLite", "1"],
    ]);
    expect(contended?.rows).toHaveLength(1);
    expect(history?.rows[0]?.at(-1)).toBe("1.25 (1.13–1.38)");
  });
});
