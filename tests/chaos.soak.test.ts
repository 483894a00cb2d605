// The same run at full length: 1,000 kills over ten seeds.
import { afterEach, expect, test } from "vitest";
import { type ChaosReport, runChaos } from "./support/chaos.ts";
import { expectNothingLostOrDoubled } from "./support/oracle.ts";
import { seedOfTheDay } from "./support/seed.ts";

let report: ChaosReport | undefined;
afterEach(() => report?.world.end());

const base = seedOfTheDay();

test.for(Array.from({ length: 10 }, (_, n) => base * 100 + n))("seed %i survives 100 kills", async (seed) => {
  report = await runChaos(seed, 100);
  const { answered } = await expectNothingLostOrDoubled(report);
  expect(answered).toBeGreaterThan(1_000);
});
