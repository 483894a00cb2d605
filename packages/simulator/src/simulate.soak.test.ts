// The full count: at least 5,000 simulated hours.
import { expect, test } from "vitest";
import { seedOfTheDay } from "../../../tests/support/seed.ts";
import { hunt } from "./hunt.ts";
import { describeFloors, rareOutcomes } from "./testing/floors.ts";

test("5,000 simulated hours find nothing", async () => {
  const { totals, failed } = await hunt({ firstSeed: seedOfTheDay() * 1_000, hours: 5_000 });
  const { runs, hours, operations, faults, committed } = totals;
  const faultKinds = Object.fromEntries(totals.faultKinds);
  process.stdout.write(`${JSON.stringify({ runs, hours, operations, faults, committed, faultKinds })}\n`);
  expect(failed?.violation, `seed ${failed?.seed}: npm run sim -- --seed ${failed?.seed}`).toBeUndefined();
  expect(describeFloors(totals, rareOutcomes)).toEqual([]);
});
