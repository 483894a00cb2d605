// 100 SIGKILLs of daemons and broker under load, from one seed (MSG-1, MSG-2, MSG-5).
import { afterEach, expect, test } from "vitest";
import { type ChaosReport, runChaos } from "./support/chaos.ts";
import { expectNothingLostOrDoubled } from "./support/oracle.ts";
import { seedOfTheDay } from "./support/seed.ts";

let report: ChaosReport | undefined;
afterEach(() => report?.world.end());

test("nothing that was answered is lost and nothing lands twice through 100 kills", async () => {
  report = await runChaos(seedOfTheDay(), 100);
  const { answered, stored } = await expectNothingLostOrDoubled(report);
  process.stdout.write(`chaos: ${JSON.stringify({ kills: report.kills, answered, stored })}\n`);
  // A run that met too little proves too little.
  expect(answered).toBeGreaterThan(1_000);
  expect(Object.values(report.kills).every((count) => count >= 15)).toBe(true);
});
