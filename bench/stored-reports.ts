// Reads back what an earlier run wrote to bench/out, so that a page of several scenarios needs no single run of them all.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ScenarioReport } from "./scenarios/scenario.ts";

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
