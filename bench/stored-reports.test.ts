import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { drawingsFolder } from "./performance-page.ts";
import { renderReport, reportAsJson } from "./report.ts";
import type { ScenarioReport } from "./scenarios/scenario.ts";
import { isFullRun, makePage, readStoredReport, reportsFolder } from "./stored-reports.ts";
import { exampleReport, exampleTable } from "./testing/example-report.ts";

const docs = join(import.meta.dirname, "../docs");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cmb-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function report(rounds: number): ScenarioReport {
  const figures = new Map([["ours", { perSecond: 9_000 }]]);
  return {
    ...exampleReport,
    outcomes: Array.from({ length: rounds }, (_, at) => ({ round: at + 1, stealShare: 0, clean: true, figures })),
    tables: rounds >= 5 ? [exampleTable] : [],
    bars: [],
  };
}

describe("a report of an earlier run", () => {
  it("reads back as it was written, and renders the same", () => {
    const written = report(7);
    writeFileSync(join(folder, "broker-accept.json"), reportAsJson(written));
    const read = readStoredReport(folder, "broker-accept");
    expect(read).toEqual(written);
    expect(read && renderReport(read)).toBe(renderReport(written));
    expect(readStoredReport(folder, "broker-retry")).toBeUndefined();
  });

  it("stands for its scenario only where rounds and segments were as many and as long as a claim needs", () => {
    const least = { rounds: 7, segmentMs: 2_000 };
    expect(isFullRun(report(7), least)).toBe(true);
    expect(isFullRun(report(5), least)).toBe(false);
    expect(isFullRun({ ...report(7), segmentMs: 1_000 }, least)).toBe(false);
    expect(isFullRun({ ...report(7), tables: [] }, least)).toBe(false);
  });
});

describe("docs/performance.md", () => {
  // Where this fails: `npm run bench -- --write-docs --no-run`.
  it("is what the stored reports say, word for word, with their drawings and no others", () => {
    const { text, drawings } = makePage();
    expect(readFileSync(join(docs, "performance.md"), "utf8")).toBe(text);
    expect(readdirSync(join(docs, drawingsFolder)).sort()).toEqual(drawings.map(({ file }) => file).sort());
    for (const { file, svg } of drawings) expect(readFileSync(join(docs, drawingsFolder, file), "utf8")).toBe(svg);
  });

  it("rests on full runs alone, each under the name of its scenario", () => {
    const files = readdirSync(reportsFolder);
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const stored = readStoredReport(reportsFolder, file.replace(/\.json$/, ""));
      expect(`${stored?.scenario}.json`).toBe(file);
      expect(stored && isFullRun(stored, { rounds: 7, segmentMs: 2_000 }), file).toBe(true);
    }
  });

  it("names what was not measured instead of leaving it out", () => {
    writeFileSync(join(folder, "broker-accept.json"), reportAsJson(report(7)));
    const { text, drawings } = makePage(folder);
    expect(text).toContain("| topic | 9,000 |");
    expect(text).toContain("- broker-retry: ");
    expect(drawings).toEqual([]);
  });
});
