// `npm run sim`: reads the words, runs, prints, and answers with an exit code: 0 nothing was found, 1 something was,
// 2 wrong usage.
import process from "node:process";
import { parseArgs } from "node:util";
import { drawPlan } from "./core/draw-plan.ts";
import { hunt, makeSmall, runHoursDefault, type Totals } from "./hunt.ts";
import { keepRegression } from "./regressions.ts";
import { type RunReport, runPlan } from "./run.ts";

const usage = `Runs a whole mesh in one process: real services and stores, simulated clock, network and faults.

  npm run sim -- --seed 42                one run from this seed; the same seed is the same run
  npm run sim -- --seed 42 --hours 6      a shorter one (24 simulated hours unless said)
  npm run sim -- --until fail             fresh seeds until one fails
  npm run sim -- --hours 5000             fresh seeds for so many simulated hours
  npm run sim -- --seed 42 --log          with the last lines of what happened

A failure is made small and printed; found with fresh seeds it is also kept in packages/simulator/regressions.json,
which the tests replay.
  --tries n   how many smaller plans are tried (150)
  --json      one JSON value on the last line
`;

const options = {
  seed: { type: "string" },
  hours: { type: "string" },
  until: { type: "string" },
  tries: { type: "string", default: "150" },
  log: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

type Asked = {
  readonly seed: number | undefined;
  readonly hours: number | undefined;
  readonly tries: number;
  readonly log: boolean;
  readonly json: boolean;
};

class WrongUsage extends Error {}

const say = (text: string) => process.stdout.write(`${text}\n`);

function readWords(argv: readonly string[]): Asked | undefined {
  let values: ReturnType<typeof parse>;
  try {
    values = parse(argv);
  } catch (error) {
    throw new WrongUsage(error instanceof Error ? error.message : String(error));
  }
  if (values.help) return undefined;
  const { until, seed, hours, log, json } = values;
  if (until !== undefined && until !== "fail") throw new WrongUsage("--until takes the word fail.");
  if (seed === undefined && hours === undefined && until === undefined) {
    throw new WrongUsage("Give --seed, --hours or --until fail.");
  }
  const [seedNumber, hoursNumber] = [readNumber(seed, "--seed", 0), readNumber(hours, "--hours", 1)];
  return { seed: seedNumber, hours: hoursNumber, tries: readNumber(values.tries, "--tries", 0) ?? 0, log, json };
}

const parse = (argv: readonly string[]) => parseArgs({ args: [...argv], options }).values;

function readNumber(text: string | undefined, flag: string, least: number): number | undefined {
  if (text === undefined) return undefined;
  const value = /^[0-9]{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least)) throw new WrongUsage(`${flag} takes a whole number from ${least}.`);
  return value;
}

async function run(asked: Asked): Promise<number> {
  const { seed, hours, log, json } = asked;
  if (seed !== undefined) {
    const report = await runPlan(drawPlan(seed, hours ?? runHoursDefault));
    if (log) for (const line of report.lastLines) say(line);
    const failed = await tellFailure(report, hours ?? runHoursDefault, asked, false);
    const { outcomes, faultKinds, lastLines: _, violation, ...facts } = report;
    say(
      json
        ? JSON.stringify({ ...facts, by_kind: byKind({ outcomes, faultKinds }), violation: violation?.message ?? null })
        : `${describe(report)} ${report.digest}`,
    );
    return failed ? 1 : 0;
  }
  const firstSeed = Math.floor(Date.now() / 1_000);
  const { totals, failed } = await hunt({
    firstSeed,
    hours,
    onRun: (report, sum) => say(`${describe(report)}; all in all ${describeTotals(sum)}`),
  });
  const isFailure = failed !== undefined && (await tellFailure(failed, runHoursDefault, asked, true));
  const { outcomes, faultKinds, ...facts } = totals;
  if (json) say(JSON.stringify({ ...facts, by_kind: byKind(totals), failed_seed: failed?.seed ?? null }));
  else say([...listed("", outcomes), ...listed("fault ", faultKinds)].join("\n"));
  return isFailure ? 1 : 0;
}

/** Operations that got an answer, and faults. */
function byKind({ outcomes, faultKinds }: Pick<Totals, "outcomes" | "faultKinds">) {
  const operations: Record<string, number> = {};
  for (const [outcome, count] of outcomes) {
    const [kind = "", word] = outcome.split(" ");
    if (kind === "row" || word === "away" || word === "nothing") continue;
    operations[kind] = (operations[kind] ?? 0) + count;
  }
  return { operations, faults: Object.fromEntries(faultKinds) };
}

function listed(prefix: string, counts: ReadonlyMap<string, number>): string[] {
  return [...counts].sort().map(([what, count]) => `${String(count).padStart(9)}  ${prefix}${what}`);
}

/** True: there was one. */
async function tellFailure(report: RunReport, hours: number, { tries }: Asked, keep: boolean): Promise<boolean> {
  if (report.violation === undefined) return false;
  say(`seed ${report.seed} FAILED: ${report.violation.message}`);
  const small = tries === 0 ? undefined : await makeSmall(drawPlan(report.seed, hours), tries);
  if (small === undefined) return true;
  const { operations, faults } = small.plan;
  say(`made small: ${operations.length} operations, ${faults.length} faults: ${small.said}`);
  for (const step of [...operations, ...faults].sort((a, b) => a.atMs - b.atMs)) say(`  ${JSON.stringify(step)}`);
  if (keep) keepRegression(small);
  return true;
}

const describe = ({ seed, hours, operations, faults, committed, violation }: RunReport) =>
  `seed ${seed}: ${hours.toFixed(0)} h, ${operations} operations, ${faults} faults, ${committed} messages: ${violation === undefined ? "ok" : violation.oracle}`;

const describeTotals = ({ runs, hours, operations, faults }: Totals) =>
  `${runs} runs, ${hours.toFixed(0)} h, ${(operations / hours).toFixed(0)} operations and ${(faults / hours).toFixed(1)} faults per hour`;

try {
  const asked = readWords(process.argv.slice(2));
  if (asked === undefined) say(usage);
  else process.exitCode = await run(asked);
} catch (error) {
  if (!(error instanceof WrongUsage)) throw error;
  process.stderr.write(`${error.message} See --help.\n`);
  process.exitCode = 2;
}
