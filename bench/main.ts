// `npm run bench`: picks scenarios, runs them, shows what came out. Measuring is in method/ and scenarios/; what earlier
// runs left is read back by stored-reports.ts.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { fileSystemOf, keepsFilesInMemory } from "./method/machine.ts";
import { cleanRoundsMin } from "./method/rounds.ts";
import { Closing } from "./processes/closing.ts";
import { renderReport, reportAsJson } from "./report.ts";
import { scenarios } from "./scenarios/all.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenarios/scenario.ts";
import { isFullRun, readStoredReport, reportsFolder, writePage } from "./stored-reports.ts";

const outFolder = join(import.meta.dirname, "out");
const interruptedExitCode = 130;
const fullRoundsMin = 7;
const roundsMax = 1_000;
const rowsMin = 10_000;
const full = { rounds: fullRoundsMin, segmentMs: 2_000, warmUpMs: 2_000, rowsMax: 10_000_000 };
const quick = { rounds: 5, segmentMs: 1_000, warmUpMs: 1_000, rowsMax: 100_000 };

const usage = `Usage: npm run bench -- [--scenario <name>]… [--all] [--quick] [--rounds <n>] [--rows <n>] [--dir <folder>] [--write-docs [--no-run]]

${scenarios.map(({ name, summary, byName }) => `  ${name.padEnd(17)} ${summary}${byName ? " (*)" : ""}`).join("\n")}

  (*)              runs when it is named, or with --all

  --scenario    only this one; may be repeated, and the bare name does as well
  --all         every scenario
  --quick       ${quick.rounds} rounds of ${quick.segmentMs / 1_000} s instead of ${full.rounds} of ${full.segmentMs / 1_000} s; a look, not a claim
  --rounds      more rounds than ${fullRoundsMin}, where many are dropped; fewer than ${cleanRoundsMin} conclude nothing
  --rows        how far growth goes, 10,000 at least; ${full.rowsMax.toLocaleString("en-US")}, or ${quick.rowsMax.toLocaleString("en-US")} with --quick
  --dir         where files are made and flushed; a folder on disk
  --write-docs  stores full runs in bench/reports, and writes docs/performance.md with its drawings from what is there
  --no-run      with --write-docs: writes the page from what is stored, and measures nothing

Examples:
  npm run bench -- --quick
  npm run bench -- broker-accept broker-retry
  npm run bench -- broker-accept --write-docs

Exit code: 0 every bar passed, 1 one was missed or measuring failed, 2 wrong usage, 3 inconclusive.
`;

class UsageError extends Error {}

type Choice = {
  readonly chosen: readonly Scenario[];
  readonly lengths: Pick<RunSettings, "rounds" | "segmentMs" | "warmUpMs" | "rowsMax">;
  readonly dir: string;
  readonly writeDocs: boolean;
};

function readChoice(): Choice | "help" {
  const { values, positionals } = parseCommandLine();
  if (values.help) return "help";
  const named = [...positionals, ...(values.scenario ?? [])];
  const unknown = named.find((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown !== undefined) throw new UsageError(`There is no scenario named ${unknown}.`);
  const lengths = readLengths(values);
  const noRun = values["no-run"] === true;
  if (values["write-docs"] && !noRun && (values.quick || lengths.rounds < fullRoundsMin)) {
    throw new UsageError(`--write-docs takes a full run: no --quick, and at least ${fullRoundsMin} rounds.`);
  }
  if (noRun && (!values["write-docs"] || named.length > 0)) {
    throw new UsageError("--no-run belongs to --write-docs, and no scenario is named with it.");
  }
  const every = values.all === true || values["write-docs"] === true;
  const isChosen = ({ name, byName }: Scenario) => (named.length === 0 ? every || !byName : named.includes(name));
  const dir = values.dir ?? (existsSync("/var/tmp") ? "/var/tmp" : tmpdir());
  if (!existsSync(dir)) throw new UsageError(`There is no folder ${dir}.`);
  if (keepsFilesInMemory(fileSystemOf(dir))) {
    throw new UsageError(`${dir} is kept in memory, where flushing costs nothing; name a folder on disk with --dir.`);
  }
  return {
    chosen: noRun ? [] : scenarios.filter(isChosen),
    lengths,
    dir,
    writeDocs: values["write-docs"] ?? false,
  };
}

function readLengths(values: { quick?: boolean; rounds?: string; rows?: string }): Choice["lengths"] {
  const lengths = values.quick ? quick : full;
  const { rounds = lengths.rounds, rows = lengths.rowsMax } = values;
  if (!Number.isInteger(Number(rounds)) || Number(rounds) < 1 || Number(rounds) > roundsMax) {
    throw new UsageError(`--rounds takes a whole number from 1 to ${roundsMax}.`);
  }
  if (!Number.isInteger(Number(rows)) || Number(rows) < rowsMin || Number(rows) > full.rowsMax) {
    throw new UsageError(`--rows takes a whole number from ${rowsMin} to ${full.rowsMax}.`);
  }
  return { ...lengths, rounds: Number(rounds), rowsMax: Number(rows) };
}

function parseCommandLine() {
  const flag = { type: "boolean" } as const;
  const text = { type: "string" } as const;
  const scenario = { type: "string", multiple: true } as const;
  const flags = { all: flag, quick: flag, "write-docs": flag, "no-run": flag, help: flag };
  const options = { scenario, ...flags, rounds: text, rows: text, dir: text };
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

async function measure(choice: Choice, closing: Closing): Promise<ScenarioReport[]> {
  mkdirSync(outFolder, { recursive: true });
  const reports: ScenarioReport[] = [];
  for (const scenario of choice.chosen) {
    const folder = mkdtempSync(join(choice.dir, "cmb-"));
    const removeFolder = closing.add(() => rmSync(folder, { recursive: true, force: true }));
    const progress = (line: string) => process.stderr.write(`${scenario.name}: ${line}\n`);
    const report = await scenario.run({ ...choice.lengths, folder, closing, progress });
    await removeFolder();
    writeFileSync(join(outFolder, `${scenario.name}.json`), reportAsJson(report));
    process.stdout.write(`${renderReport(report)}\n`);
    reports.push(report);
  }
  return reports;
}

function concludeExitCode(reports: readonly ScenarioReport[]): number {
  const verdicts = reports.flatMap(({ bars }) => bars.map(({ verdict }) => verdict));
  if (verdicts.includes("miss")) return 1;
  return verdicts.includes("inconclusive") ? 3 : 0;
}

/** A missed bar is written down like a kept one; what concluded nothing is not stored at all. */
function writeDocs(measured: readonly ScenarioReport[]): void {
  const length = { rounds: fullRoundsMin, segmentMs: full.segmentMs };
  mkdirSync(reportsFolder, { recursive: true });
  for (const { name } of scenarios) {
    const report = measured.find(({ scenario }) => scenario === name) ?? readStoredReport(outFolder, name);
    if (report !== undefined && isFullRun(report, length)) {
      writeFileSync(join(reportsFolder, `${name}.json`), reportAsJson(report));
    } else if (measured.some(({ scenario }) => scenario === name)) {
      process.stderr.write(`${name}: this run concluded nothing, and is not stored.\n`);
    }
  }
  writePage(join(import.meta.dirname, "../docs"));
}

function interruption(): Promise<"interrupted"> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve("interrupted"));
  });
}

async function main(): Promise<number> {
  const choice = readChoice();
  if (choice === "help") {
    process.stdout.write(usage);
    return 0;
  }
  const closing = new Closing();
  try {
    const reports = await Promise.race([measure(choice, closing), interruption()]);
    if (reports === "interrupted") return interruptedExitCode;
    const exitCode = concludeExitCode(reports);
    if (choice.writeDocs) writeDocs(reports);
    return exitCode;
  } finally {
    await closing.closeAll();
  }
}

try {
  // What an interrupted run was about to do next is of no interest any more.
  process.exit(await main());
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
