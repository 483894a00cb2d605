import { describe, expect, it } from "vitest";
import { judgeBar } from "./method/bars.ts";
import { formatMs, formatRate, formatRatio, formatSummary, renderReport, reportAsJson } from "./report.ts";
import type { ScenarioReport } from "./scenarios/scenario.ts";
import { exampleReport, exampleTable } from "./testing/example-report.ts";

const bar = { name: "ours ÷ D", kind: "at_least", limit: 0.75 } as const;

function report(cleanRounds: number, droppedRounds: number): ScenarioReport {
  const outcome = (clean: boolean) => ({
    round: 1,
    stealShare: clean ? 0.01 : 0.2,
    clean,
    figures: new Map([["ours", { perSecond: 9_000 }]]),
  });
  const conclusive = cleanRounds >= 5;
  return {
    ...exampleReport,
    outcomes: [...Array(cleanRounds).fill(outcome(true)), ...Array(droppedRounds).fill(outcome(false))],
    tables: conclusive ? [exampleTable] : [],
    bars: [judgeBar(bar, conclusive ? [0.7, 0.8, 0.9] : undefined)],
  };
}

describe("a report", () => {
  it("shows tables, the bar with its verdict, durability, versions and how many rounds count", () => {
    const text = renderReport(report(6, 1));
    expect(text).toContain("| sends | ours |\n| --- | --: |\n| topic | 9,000 |");
    expect(text).toContain("pass: ours ÷ D ≥ 0.75; measured 0.80 (0.75–0.85)");
    expect(text).toContain("6 of 7 rounds count; 1 dropped for CPU steal above 8 %");
    for (const fact of [
      "one flush per commit",
      "SQLite 3.53",
      "ext4",
      "Some CPU, 2 cores",
      "load average before the run: 0.10",
    ])
      expect(text).toContain(fact);
  });

  it("says inconclusive and claims no figure when too few rounds are clean", () => {
    const text = renderReport(report(4, 3));
    expect(text).toContain("inconclusive: 4 of 7 rounds count; 3 dropped");
    expect(text).toContain("inconclusive: ours ÷ D ≥ 0.75; measured –");
    expect(text).not.toContain("9,000");
  });

  it("keeps every figure of every round in its file, those of dropped rounds too", () => {
    const { outcomes } = JSON.parse(reportAsJson(report(4, 3))) as { outcomes: { figures: object }[] };
    expect(outcomes).toHaveLength(7);
    expect(outcomes[6]?.figures).toEqual({ ours: { perSecond: 9_000 } });
  });
});

describe("a summary as text", () => {
  const summary = { median: 12_345.6, lowerQuartile: 0.5, upperQuartile: 20_000, count: 5 };

  it("is the median with the quartiles in brackets, and a dash where nothing was measured", () => {
    expect(formatSummary(summary, formatRate)).toBe("12,346 (1–20,000)");
    expect(formatSummary(undefined, formatRatio)).toBe("–");
    expect([0.0421, 1.234].map(formatMs)).toEqual(["0.042", "1.23"]);
  });
});
