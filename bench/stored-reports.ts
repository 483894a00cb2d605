// Reads back what earlier runs wrote, and makes the page of it: no single run of all scenarios is needed, and a
// reader who has the reports can make the same page again.
// Why: docs/decisions/0067.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drawingsFolder, type PerformancePage, renderPerformancePage } from "./performance-page.ts";
import { scenarios } from "./scenarios/all.ts";
import type { ScenarioReport } from "./scenarios/scenario.ts";

/** Of full runs, one per scenario; what docs/performance.md claims is in here. */
export const reportsFolder = join(import.meta.dirname, "reports");

/** Undefined: this scenario has not been run here. */
export function readStoredReport(folder: string, scenario: string): ScenarioReport | undefined {
  const path = join(folder, `${scenario}.json`);
  if (!existsSync(path)) return undefined;
  const stored = JSON.parse(readFileSync(path, "utf8")) as ScenarioReport;
  const outcomes = stored.outcomes.map((outcome) => ({
    ...outcome,
    figures: new Map(Object.entries(outcome.figures)),
  }));
  return { ...stored, outcomes };
}

/** As many rounds as a claim needs, each as long, and enough of them clean. */
export function isFullRun(
  { outcomes, segmentMs, tables }: ScenarioReport,
  least: { readonly rounds: number; readonly segmentMs: number },
): boolean {
  return tables.length > 0 && outcomes.length >= least.rounds && segmentMs >= least.segmentMs;
}

/** What the stored reports say, as the page and its drawings. */
export function makePage(folder: string = reportsFolder): PerformancePage {
  const stored = scenarios.map(({ name }) => readStoredReport(folder, name));
  return renderPerformancePage(
    stored.filter((report) => report !== undefined),
    scenarios.filter((_, at) => stored[at] === undefined),
  );
}

/** Drawings that belong to no stored report any more go away. */
export function writePage(docsFolder: string): void {
  const { text, drawings } = makePage();
  const folder = join(docsFolder, drawingsFolder);
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    if (!drawings.some(({ file }) => file === name)) rmSync(join(folder, name));
  }
  for (const { file, svg } of drawings) writeFileSync(join(folder, file), svg);
  writeFileSync(join(docsFolder, "performance.md"), text);
}
