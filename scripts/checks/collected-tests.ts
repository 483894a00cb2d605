// The collected-tests check: every file that looks like a test runs in exactly one project of vitest.config.ts. A test
// that no project collects never fails, and one that two projects collect pays twice.
import { relative, sep } from "node:path";
import type { Check, CheckReport } from "./check-report.ts";
import { describeFailure, runTool } from "./run-tool.ts";
import { listFiles } from "./source-tree.ts";

interface CollectedFile {
  readonly file: string;
  readonly projectName?: string;
}

/** Broader than what the projects include on purpose: a file with one of these names is meant to run. */
function looksLikeTest(path: string): boolean {
  return /[._](?:test|spec)s?\.[mc]?[jt]sx?$/.test(path) || /(^|\/)__tests__\//.test(path);
}

async function run(root: string): Promise<CheckReport> {
  const output = await runTool(root, "vitest", ["list", "--filesOnly", "--json"]);
  const start = output.stdout.indexOf("[");
  if (output.exitCode !== 0 || start < 0) {
    return { examined: 0, unit: "test files", problems: [describeFailure("vitest", output)] };
  }
  const projects = new Map<string, string[]>();
  for (const { file, projectName } of JSON.parse(output.stdout.slice(start)) as CollectedFile[]) {
    const path = relative(root, file).replaceAll(sep, "/");
    projects.set(path, [...(projects.get(path) ?? []), projectName ?? "?"]);
  }
  const problems: string[] = [];
  for (const path of listFiles(root).filter((each) => looksLikeTest(each))) {
    if (!projects.has(path)) problems.push(`${path}: no project of vitest.config.ts collects it`);
  }
  for (const [path, names] of projects) {
    if (names.length > 1) problems.push(`${path}: collected more than once (${names.join(", ")})`);
  }
  return { examined: projects.size, unit: "test files", problems };
}

export const collectedTestsCheck: Check = {
  name: "collected-tests",
  proves: "every test file runs in exactly one project of vitest.config.ts",
  run,
};
