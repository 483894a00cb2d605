// A slice of the simulator's runs, from the seed of the day.
import { expect, test } from "vitest";
import { seedOfTheDay } from "../../../tests/support/seed.ts";
import { hunt } from "./hunt.ts";
import { describeFloors } from "./testing/floors.ts";

test("a day's slice of runs finds nothing", async () => {
  const { totals, failed } = await hunt({ firstSeed: seedOfTheDay() * 1_000, hours: 40, runHours: 8 });
  expect(failed?.violation, `seed ${failed?.seed}: npm run sim -- --seed ${failed?.seed} --hours 8`).toBeUndefined();
  expect(describeFloors(totals)).toEqual([]);
});
