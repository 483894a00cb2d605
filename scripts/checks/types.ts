// The types check: the TypeScript compiler over the whole workspace, and over the browser-safe package once more
// without Node's types. A TypeScript file that the compiler was not given is a problem too.
import { relative, sep } from "node:path";
import type { Check, CheckReport } from "./check-report.ts";
import { describeFailure, runTool } from "./run-tool.ts";
import { isTypeScript, listFiles } from "./source-tree.ts";

interface CompilerRun {
  readonly files: ReadonlySet<string>;
  readonly problems: readonly string[];
}

async function compile(root: string, project: string): Promise<CompilerRun> {
  const output = await runTool(root, "tsc", ["-p", project, "--noEmit", "--listFiles", "--pretty", "false"]);
  const files = new Set<string>();
  const problems: string[] = [];
  for (const line of output.stdout.split("\n")) {
    if (/error TS\d+:/.test(line)) problems.push(line);
    else if (line.startsWith(root + sep)) files.add(relative(root, line).replaceAll(sep, "/"));
  }
  if (output.exitCode !== 0 && problems.length === 0) problems.push(describeFailure("tsc", output));
  return { files, problems };
}

async function run(root: string): Promise<CheckReport> {
  const whole = await compile(root, ".");
  const sources = listFiles(root).filter((path) => isTypeScript(path));
  const problems = [...whole.problems];
  for (const path of sources) {
    if (!whole.files.has(path)) problems.push(`${path}: the compiler does not see it; "include" of tsconfig.json`);
  }
  if (sources.some((path) => path.startsWith("packages/protocol/src/"))) {
    const browser = await compile(root, "scripts/tsconfig.browser.json");
    for (const problem of browser.problems) {
      if (!problems.includes(problem)) problems.push(`${problem} (without Node's types: protocol runs in browsers)`);
    }
  }
  return { examined: sources.filter((path) => whole.files.has(path)).length, unit: "files", problems };
}

export const typesCheck: Check = {
  name: "types",
  proves: "every TypeScript file compiles under the strict options, protocol also without Node's types",
  run,
};
