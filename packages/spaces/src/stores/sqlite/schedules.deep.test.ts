// A slice of the random schedules, on SQLite in memory, from the seed of the day.
import { expect, test } from "vitest";
import { seedOfTheDay } from "../../../../../tests/support/seed.ts";
import { missedFloors, runSchedules } from "../../testing/run-schedules.ts";
import { MemoryHost, scheduleMembers } from "./testing/sqlite-harness.ts";

test("whatever the engine accepts, the naive space accepts (SPC-2, SPC-3)", async () => {
  const host = new MemoryHost();
  const tally = await runSchedules(host.runs({ count: 2_500, seed: seedOfTheDay(), members: scheduleMembers }));
  process.stdout.write(`${JSON.stringify(tally)}\n`);
  expect(missedFloors(tally)).toEqual([]);
});
