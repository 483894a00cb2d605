// The output of a run: a table by section with the reasons of skipped scenarios, then each miss with its evidence; or
// the same as one JSON value.
import type { ScenarioResult } from "./run.ts";
import type { Area, ScenarioInfo } from "./scenario.ts";
import { sectionTitles, sortSections } from "./sections.ts";

type Counts = { readonly passed: number; readonly failed: number; readonly skipped: number };

function count(results: readonly ScenarioResult[]): Counts {
  const of = (outcome: ScenarioResult["outcome"]) => results.filter((each) => each.outcome === outcome).length;
  return { passed: of("passed"), failed: of("failed"), skipped: of("skipped") };
}

function bySection<T extends ScenarioInfo>(results: readonly T[]): { section: string; title: string; own: T[] }[] {
  return sortSections(results.map(({ section }) => section)).map((section) => {
    return { section, title: sectionTitles[section] ?? "", own: results.filter((each) => each.section === section) };
  });
}

export function reportJson(area: Area, results: readonly ScenarioResult[]): object {
  const sections = bySection(results).map(({ section, title, own }) => ({ section, title, ...count(own) }));
  return { area: area.name, ...count(results), sections, scenarios: results };
}

export function reportText(area: Area, results: readonly ScenarioResult[]): string {
  const rows = bySection(results).map(({ section, title, own }) => {
    const { passed, failed, skipped } = count(own);
    return [section, title, String(passed), String(failed), String(skipped)];
  });
  const lines = table([["section", "", "passed", "failed", "skipped"], ...rows]);
  const skipped = results.filter(({ outcome }) => outcome === "skipped");
  if (skipped.length > 0) lines.push("", "Skipped:", ...reasons(skipped));
  for (const { id, says, miss } of results) {
    if (miss === undefined) continue;
    lines.push("", `FAILED ${id}: ${says}`);
    lines.push(...part("expected", miss.expected), ...part("got", miss.got), ...part("request", miss.request));
  }
  const total = count(results);
  lines.push("", `${area.name}: ${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return lines.join("\n");
}

/** One line per reason, with the scenarios that were skipped for it. */
function reasons(skipped: readonly ScenarioResult[]): string[] {
  const byReason = new Map<string, string[]>();
  for (const { id, reason = "" } of skipped) byReason.set(reason, [...(byReason.get(reason) ?? []), id]);
  return [...byReason].map(([reason, ids]) => `  ${reason}: ${ids.join(", ")}`);
}

function part(name: string, text: string): string[] {
  const [first = "", ...rest] = text.split("\n");
  return [`  ${`${name}:`.padEnd(10)}${first}`, ...rest.map((line) => `            ${line}`)];
}

export function listText(scenarios: readonly ScenarioInfo[]): string {
  const lines = bySection(scenarios).flatMap(({ section, title, own }) => [
    `${section}  ${title}`,
    ...own.map(({ id, says }) => `  ${id}: ${says}`),
  ]);
  return lines.join("\n");
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => {
    const cells = row.map((cell, column) =>
      column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
    );
    return cells.join("  ").trimEnd();
  });
}
