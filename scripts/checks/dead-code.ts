// The dead-code check: knip over all workspaces, with the entry points that knip.jsonc and the packages' own exports
// name. Unused files, exports and dependencies are problems; so is an export that names no file.
import type { Check, CheckReport } from "./check-report.ts";
import type { KnipAnswer } from "./knip-reporter.ts";
import { describeFailure, runTool } from "./run-tool.ts";

const meanings: Readonly<Record<string, string>> = {
  files: "is used by nothing",
  dependencies: "is a dependency that nothing imports",
  devDependencies: "is a development dependency that nothing uses",
  unlisted: "is imported but not listed in package.json",
  binaries: "is run but not listed in package.json",
  unresolved: "is imported but cannot be found",
  exports: "is exported but used by nothing else",
  types: "is an exported type that nothing else uses",
  duplicates: "is exported twice",
};

async function run(root: string): Promise<CheckReport> {
  const output = await runTool(root, "knip", ["--no-progress", "--reporter", "./scripts/checks/knip-reporter.ts"]);
  if (!output.stdout.startsWith("{")) {
    return { examined: 0, unit: "files", problems: [describeFailure("knip", output)] };
  }
  const answer = JSON.parse(output.stdout) as KnipAnswer;
  const problems = answer.issues.map(({ type, file, line, symbol }) => {
    const location = line === undefined ? file : `${file}:${line}`;
    return type === "files"
      ? `${file} ${meanings[type]}`
      : `${location} ${symbol} ${meanings[type] ?? `is refused: ${type}`}`;
  });
  for (const { file, entry } of answer.missingEntries) problems.push(`${file} lists ${entry}, which does not exist`);
  if (output.exitCode !== 0 && problems.length === 0) problems.push(describeFailure("knip", output));
  return { examined: answer.files, unit: "files", problems };
}

export const deadCodeCheck: Check = {
  name: "dead-code",
  proves: "every file, export and dependency is used, and every listed entry exists",
  run,
};
