// The imports check: the direction rules of .dependency-cruiser.mjs over every source file. It compares what
// dependency-cruiser saw with the tree, since a cruise that parsed nothing finds no fault either.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Check, CheckReport } from "./check-report.ts";
import { describeFailure, runTool, type ToolOutput } from "./run-tool.ts";
import { isJavaScript, isTypeScript, listFiles } from "./source-tree.ts";

type Dependencies = ReadonlyArray<{ readonly module: string; readonly couldNotResolve: boolean }>;

interface Cruise {
  readonly modules: ReadonlyArray<{ readonly source: string; readonly dependencies: Dependencies }>;
  readonly summary: {
    readonly violations: ReadonlyArray<{
      readonly from: string;
      readonly to: string;
      readonly rule: { readonly name: string };
      readonly cycle?: ReadonlyArray<{ readonly name: string }>;
      readonly comment?: string;
    }>;
    readonly ruleSetUsed: { readonly forbidden: ReadonlyArray<{ readonly name?: string; readonly comment?: string }> };
  };
}

/** `import("…").Name` in a type position, which dependency-cruiser sees in some places and misses in others. */
const inlineImportType =
  /\btypeof\s+import\(\s*["'](?:\.|@claudemesh\/)|\bimport\(\s*["'](?:\.|@claudemesh\/)[^"']*["']\s*\)\s*\.\s*(?!then\b|catch\b)\w/;

/** Import and export statements at the start of a line, which is where the formatter puts them. */
const importStatement = /^(?:import|export)\b(?:[^"'`;=]*?\bfrom)?\s*["']([^"']+)["']/gm;

function isUnchecked(specifier: string): boolean {
  return specifier.startsWith(".") || specifier.startsWith("@claudemesh/");
}

function describeViolations(cruise: Cruise): string[] {
  const reasons = new Map(cruise.summary.ruleSetUsed.forbidden.map(({ name, comment }) => [name, comment]));
  return cruise.summary.violations.map(({ from, to, rule, cycle }) => {
    const path = cycle === undefined ? to : cycle.map(({ name }) => name).join(" → ");
    return `${rule.name}: ${from} → ${path} (${reasons.get(rule.name) ?? "no reason given"})`;
  });
}

function readCruise(output: ToolOutput): Cruise | undefined {
  return output.stdout.startsWith("{") ? (JSON.parse(output.stdout) as Cruise) : undefined;
}

/** What the text of a file shows and the cruise did not: then its verdict on that file means nothing. */
function compareWithText(path: string, text: string, seen: Dependencies | undefined): string[] {
  if (seen === undefined) return [`${path}: dependency-cruiser did not read it`];
  const problems: string[] = [];
  if (inlineImportType.test(text)) {
    problems.push(`${path}: names a type through import("…"), which hides the import; write "import type" instead`);
  }
  const specifiers = new Set(seen.map(({ module }) => module));
  for (const [, specifier = ""] of text.matchAll(importStatement)) {
    if (!specifiers.has(specifier.replace(/^node:/, "")) && !specifiers.has(specifier)) {
      problems.push(`${path}: dependency-cruiser missed the import of ${specifier}`);
    }
  }
  return problems;
}

async function run(root: string): Promise<CheckReport> {
  const folders = ["packages", "tests", "bench", "examples", "scripts"].filter((folder) =>
    existsSync(join(root, folder)),
  );
  const args = ["--config", ".dependency-cruiser.mjs", "--output-type", "json", ...folders];
  const output = await runTool(root, "depcruise", args);
  const cruise = readCruise(output);
  if (cruise === undefined) {
    return { examined: 0, unit: "modules", problems: [describeFailure("depcruise", output)] };
  }
  const problems = describeViolations(cruise);
  const seen = new Map(cruise.modules.map(({ source, dependencies }) => [source, dependencies]));
  const sources = listFiles(root).filter((path) => {
    return (isTypeScript(path) || isJavaScript(path)) && folders.some((folder) => path.startsWith(`${folder}/`));
  });
  for (const path of sources) {
    problems.push(...compareWithText(path, readFileSync(join(root, path), "utf8"), seen.get(path)));
  }
  for (const { source, dependencies } of cruise.modules) {
    for (const { module, couldNotResolve } of dependencies) {
      if (couldNotResolve && isUnchecked(module)) problems.push(`${source}: ${module} leads nowhere`);
    }
  }
  return { examined: sources.filter((path) => seen.has(path)).length, unit: "modules", problems };
}

export const importsCheck: Check = {
  name: "imports",
  proves: "imports only point the way that the table in .dependency-cruiser.mjs allows, and never in a circle",
  run,
};
