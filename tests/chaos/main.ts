// `npm run chaos`: real daemons and brokers under load while they are killed, stopped, cut off and denied their disk, and
// the servers under them restarted. Prints what it did and the audit; exits 1 when something answered is lost or doubled.
import process from "node:process";
import { parseArgs } from "node:util";
import { type Closing, closeAll, type StoreKind } from "./cluster.ts";
import { type ChaosRun, runOn } from "./run.ts";

const minutesMax = 24 * 60;
const interruptedExitCode = 130;

const usage = `Usage: npm run chaos -- [--minutes <n>] [--seed <n>] [--store sqlite|postgres|both] [--json]

  --minutes  how long blows fall in all, ${minutesMax} at most; both stores share it (5)
  --seed     decides which blows fall on whom, in which order and for how long (a new one for each run)
  --store    one broker on SQLite, two on PostgreSQL with Redis, or one after the other (both)
  --json     one JSON value at the end instead of text

PostgreSQL and Redis are started for the run from local binaries, on ports and in a folder of their own; those of the machine
are left alone. Small disks that can be filled take root. What this machine does not allow is left out, and said.

Exit code: 0 everything answered is there once and the audit balances, 1 it is not so, 2 wrong usage, 3 nothing could be run.
`;

type Choice = {
  readonly minutes: number;
  readonly seed: number;
  readonly stores: readonly StoreKind[];
  readonly json: boolean;
};

class UsageError extends Error {}

function readChoice(): Choice | "help" {
  const { values } = parseCommandLine();
  if (values.help) return "help";
  const minutes = Number(values.minutes ?? 5);
  if (!(minutes > 0 && minutes <= minutesMax)) {
    throw new UsageError(`--minutes takes a number above 0, up to ${minutesMax}.`);
  }
  const seed = values.seed === undefined ? Date.now() % 1_000_000 : Number(values.seed);
  if (!Number.isSafeInteger(seed) || seed < 0) throw new UsageError("--seed takes a whole number, 0 or more.");
  const { store = "both", json = false } = values;
  if (store !== "sqlite" && store !== "postgres" && store !== "both") {
    throw new UsageError("--store takes sqlite, postgres or both.");
  }
  return { minutes, seed, stores: store === "both" ? ["sqlite", "postgres"] : [store], json };
}

function parseCommandLine() {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  try {
    return parseArgs({ options: { minutes: text, seed: text, store: text, json: flag, help: flag } });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function describe(run: ChaosRun): string {
  const counts = (of: Readonly<Record<string, number>>) =>
    Object.entries(of)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ");
  const total = Object.values(run.blows).reduce((sum, count) => sum + count, 0);
  return [
    "",
    `${run.store}: ${total} blows in ${run.seconds} s (${counts(run.blows)})`,
    `answered: ${counts(run.answered)}; ${run.unanswered} messages given up, ${run.uncertain} effects with an uncertain end`,
    ...(run.ended_by_themselves.length > 0 ? [`ended by themselves: ${run.ended_by_themselves.length}`] : []),
    "",
    run.audit,
    "",
    ...(run.findings.length === 0
      ? ["everything answered is there once, and the records balance"]
      : run.findings.map((finding) => `FOUND: ${finding}`)),
  ].join("\n");
}

async function main({ minutes, seed, stores, json }: Choice): Promise<number> {
  const say = json ? () => undefined : (line: string) => process.stdout.write(`${line}\n`);
  const leftOut: string[] = [];
  const leaveOut = (line: string) => {
    leftOut.push(line);
    say(`left out: ${line}`);
  };
  const closing: Closing = [];
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, async () => {
      await closeAll(closing);
      process.exit(interruptedExitCode);
    });
  }
  say(`seed ${seed} (repeat with --seed ${seed})`);
  const runs: ChaosRun[] = [];
  for (const store of stores) {
    say(`\n${store}`);
    const durationMs = (minutes * 60_000) / stores.length;
    const run = await runOn(store, { seed, durationMs, say, leaveOut, closing });
    if (run === undefined) continue;
    runs.push(run);
    say(describe(run));
  }
  const ok = runs.every(({ findings }) => findings.length === 0);
  if (json) process.stdout.write(`${JSON.stringify({ ok: ok && runs.length > 0, seed, left_out: leftOut, runs })}\n`);
  if (runs.length === 0) return 3;
  return ok ? 0 : 1;
}

try {
  const choice = readChoice();
  if (choice === "help") process.stdout.write(usage);
  else process.exit(await main(choice));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${usage}`);
  process.exitCode = 2;
}
