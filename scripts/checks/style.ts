// The style check: Biome's format, lint and size rules as biome.json sets them. A source file that Biome skipped is a
// problem too, so that no ignore pattern can quietly take code out of the rules.
import type { Check, CheckReport } from "./check-report.ts";
import { describeFailure, runTool, type ToolOutput } from "./run-tool.ts";
import { isJavaScript, isTypeScript, listFiles } from "./source-tree.ts";

interface BiomeReport {
  readonly diagnostics: ReadonlyArray<{
    readonly severity: string;
    readonly category: string;
    readonly message: string;
    readonly location: { readonly path: string; readonly start: { readonly line: number; readonly column: number } };
  }>;
}

function readProblems(output: ToolOutput): string[] {
  if (!output.stdout.startsWith("{")) return [describeFailure("biome", output)];
  const report = JSON.parse(output.stdout) as BiomeReport;
  const problems = report.diagnostics
    .filter(({ severity }) => severity !== "information" && severity !== "info" && severity !== "hint")
    .map(({ category, message, location }) => {
      if (category === "format") return `${location.path}: not formatted; run biome check --write`;
      return `${location.path}:${location.start.line}:${location.start.column} ${category}: ${message}`;
    });
  if (output.exitCode !== 0 && problems.length === 0) problems.push(describeFailure("biome", output));
  return problems;
}

/** Biome names the files it processed only in its verbose listing, one per line behind a dash. */
async function listProcessed(root: string): Promise<Set<string>> {
  const { stdout, stderr } = await runTool(root, "biome", ["check", "--verbose", "--max-diagnostics=1", "."]);
  const listing = `${stdout}\n${stderr}`.split("Files processed:")[1]?.split("VERBOSE")[0] ?? "";
  return new Set(Array.from(listing.matchAll(/^\s*- (.+)$/gm), (match) => match[1]?.trim() ?? ""));
}

async function run(root: string): Promise<CheckReport> {
  const args = ["check", "--reporter=json", "--error-on-warnings", "--max-diagnostics=none", "."];
  const problems = readProblems(await runTool(root, "biome", args));
  const processed = await listProcessed(root);
  const sources = listFiles(root).filter((path) => isTypeScript(path) || isJavaScript(path));
  for (const path of sources) {
    if (!processed.has(path)) problems.push(`${path}: Biome does not look at it; "files" of biome.json`);
  }
  return { examined: sources.filter((path) => processed.has(path)).length, unit: "source files", problems };
}

export const styleCheck: Check = {
  name: "style",
  proves: "Biome's format, lint and size rules hold in every source file",
  run,
};
