// The same run at full length: 200 kills and stops for each of ten seeds.
import { afterEach, expect, test } from "vitest";
import { type ChaosReport, runChaos } from "./support/chaos.ts";
import { expectNothingLostOrDoubled } from "./support/oracle.ts";
import { seedOfTheDay } from "./support/seed.ts";

let report: ChaosReport | undefined;
afterEach(() => report?.world.end());

const base = seedOfTheDay();

test.for(Array.from({ length: 10 }, (_, n) => base * 100 + n))("seed %i survives 200 kills and stops", async (seed) => {
  report = await runChaos(seed, 200);
  const { answered, stored } = await expectNothingLostOrDoubled(report);
  process.stdout.write(`chaos: ${JSON.stringify({ seed, kinds: report.kinds, answered, stored })}\n`);
  expect(answered).toBeGreaterThan(2_000);
  expect(Object.keys(report.kinds)).toHaveLength(4);
});
