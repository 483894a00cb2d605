// `npm run chaos` as a user runs it: a short storm over brokers on a PostgreSQL and a Redis of their own (MSG-1 to MSG-6,
// SPC-1, SPC-6, REG-1, REG-9). The same on SQLite, longer and with kills alone, is in chaos.deep.test.ts.

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { ChaosRun } from "./chaos/run.ts";
import { skipUnlessRequired } from "./support/missing-part.ts";
import { seedOfTheDay } from "./support/seed.ts";

const main = fileURLToPath(new URL("./chaos/main.ts", import.meta.url));
const run = (...args: string[]) => spawnSync(process.execPath, [main, ...args], { encoding: "utf8" });

test("a short storm of kills, cuts, restarts and full disks loses and doubles nothing that was answered", (context) => {
  const { status, stdout, stderr } = run(
    "--minutes",
    "0.2",
    "--store",
    "postgres",
    "--json",
    "--seed",
    `${seedOfTheDay()}`,
  );
  if (status === 3) return skipUnlessRequired(context, "no PostgreSQL or Redis here");
  const { ok, runs } = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "{}") as { ok: boolean; runs: ChaosRun[] };
  const [storm] = runs;
  expect({ status, ok, findings: storm?.findings }, stderr).toEqual({ status: 0, ok: true, findings: [] });
  process.stdout.write(`chaos command: ${JSON.stringify({ blows: storm?.blows, answered: storm?.answered })}\n`);
  // A storm that met too little proves too little.
  expect(Object.keys(storm?.blows ?? {}).length).toBeGreaterThanOrEqual(5);
  for (const work of ["messages", "commits", "once", "registrations"]) {
    expect(storm?.answered[work], work).toBeGreaterThan(3);
  }
});

test.for([["--minutes", "0"], ["--minutes", "soon"], ["--seed", "-1"], ["--store", "mysql"], ["--fast"]])(
  "%j is refused with the usage and exit code 2",
  (args) => {
    const { status, stderr } = run(...args);
    expect(status).toBe(2);
    expect(stderr).toContain("Usage: npm run chaos");
  },
);
