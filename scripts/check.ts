// `npm run check`: runs every check over the workspace and says what each examined. A check that examined nothing has
// failed, whatever it found. The checks themselves are in scripts/checks/.
import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import type { Check, CheckReport } from "./checks/check-report.ts";
import { collectedTestsCheck } from "./checks/collected-tests.ts";
import { deadCodeCheck } from "./checks/dead-code.ts";
import { decisionsCheck } from "./checks/decisions.ts";
import { importsCheck } from "./checks/imports.ts";
import { lockedPackagesCheck } from "./checks/locked-packages.ts";
import { styleCheck } from "./checks/style.ts";
import { typesCheck } from "./checks/types.ts";
import { wordsCheck } from "./checks/words.ts";

const checks: readonly Check[] = [
  typesCheck,
  styleCheck,
  importsCheck,
  deadCodeCheck,
  collectedTestsCheck,
  wordsCheck,
  lockedPackagesCheck,
  decisionsCheck,
];

const usage = `Usage: npm run check -- [--only <name>]… [--root <folder>]

${checks.map(({ name, proves }) => `  ${name.padEnd(16)} ${proves}`).join("\n")}
`;

async function runCheck(check: Check, root: string): Promise<boolean> {
  const startedAtMs = performance.now();
  const report: CheckReport = await check.run(root);
  const problems = [...report.problems];
  if (report.examined === 0) problems.push("it examined nothing, which proves nothing");
  const seconds = ((performance.now() - startedAtMs) / 1_000).toFixed(1);
  const verdict = problems.length === 0 ? "ok    " : "FAILED";
  const count = problems.length === 0 ? "" : `, ${problems.length} ${problems.length === 1 ? "problem" : "problems"}`;
  console.log(`${verdict} ${check.name.padEnd(16)} ${report.examined} ${report.unit} examined in ${seconds} s${count}`);
  for (const problem of problems) console.log(`         ${problem.replaceAll("\n", "\n         ")}`);
  return problems.length === 0;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { only: { type: "string", multiple: true }, root: { type: "string" }, help: { type: "boolean" } },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const unknown = (values.only ?? []).find((name) => !checks.some((check) => check.name === name));
  if (unknown !== undefined) {
    console.error(`There is no check named ${unknown}.\n\n${usage}`);
    return 2;
  }
  const root = realpathSync(values.root ?? dirname(import.meta.dirname));
  const chosen = checks.filter(({ name }) => values.only === undefined || values.only.includes(name));
  const failed: string[] = [];
  for (const check of chosen) {
    if (!(await runCheck(check, root))) failed.push(check.name);
  }
  console.log(failed.length === 0 ? "All checks passed." : `Refused by: ${failed.join(", ")}.`);
  return failed.length === 0 ? 0 : 1;
}

process.exitCode = await main();
