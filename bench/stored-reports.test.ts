import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { renderReport, reportAsJson } from "./report.ts";
import type { ScenarioReport } from "./scenarios/scenario.ts";
import { isFullRun, readStoredReport } from "./stored-reports.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cmb-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function report(rounds: number): ScenarioReport {
  const figures = new Map([["ours", { perSecond: 9_000 }]]);
  return {
    scenario: "broker-accept",
    title: "Accepts",
    conditions: ["1 KiB messages"],
    durability: ["one flush per commit"],
    machine: {
      cpu: "Some CPU",
      cores: 2,
      memoryGiB: 4,
      kernel: "Linux 6",
      node: "v24",
      sqlite: "3.53",
      fastify: "5",
      fileSystem: "ext4",
      loadAverageBefore: 0.1,
    },
    segmentMs: 2_000,
    outcomes: Array.from({ length: rounds }, (_, at) => ({ round: at + 1, stealShare: 0, clean: true, figures })),
    tables: rounds >= 5 ? [{ caption: "64", columns: ["sends", "ours"], rows: [["topic", "9,000"]] }] : [],
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
