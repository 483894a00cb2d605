// SIGKILLs and SIGSTOPs of daemons and broker under load, some of them during recovery, from one seed (MSG-1, MSG-2,
// MSG-5). The full count is in chaos.soak.test.ts.
import { afterEach, expect, test } from "vitest";
import { type ChaosReport, runChaos } from "./support/chaos.ts";
import { expectNothingLostOrDoubled } from "./support/oracle.ts";
import { seedOfTheDay } from "./support/seed.ts";

let report: ChaosReport | undefined;
afterEach(() => report?.world.end());

test("nothing that was answered is lost, nothing lands twice and the audit balances through 60 kills and stops", async () => {
  report = await runChaos(seedOfTheDay(), 60);
  const { answered, stored } = await expectNothingLostOrDoubled(report);
  process.stdout.write(
    `chaos: ${JSON.stringify({ victims: report.victims, kinds: report.kinds, answered, stored })}\n`,
  );
  // A run that met too little proves too little.
  expect(answered).toBeGreaterThan(600);
  expect(Math.min(...Object.values(report.victims))).toBeGreaterThanOrEqual(6);
  expect(Object.keys(report.kinds)).toHaveLength(4);
});
