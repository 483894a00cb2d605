// Random schedules of several replicas over the real engine: whatever is cut, late or coalesced, they end with what the
// space holds, and no accepted transaction saw anything but a serial state (SPC-2, SPC-3).
import { expect, it } from "vitest";
import { runSchedule, type Tally } from "./support/replica-schedule.ts";
import { seedOfTheDay } from "./support/seed.ts";

const schedules = Number(process.env.CLAUDEMESH_REPLICA_SCHEDULES ?? 200);

it("converges and stays serial, whatever the schedule", async () => {
  const first = seedOfTheDay() * 1_000;
  const tally: Tally = { accepted: 0, rejected: 0, rebuilt: 0, throughPending: 0, cuts: 0 };
  for (let seed = first; seed < first + schedules; seed += 1) {
    try {
      await runSchedule(seed, tally);
    } catch (cause) {
      throw new Error(`schedule ${seed} went wrong`, { cause });
    }
  }
  // A run that never met these cases proves nothing about them.
  expect(tally.accepted).toBeGreaterThan(schedules * 4);
  expect(tally.throughPending).toBeGreaterThan(schedules / 2);
  expect(tally.rebuilt).toBeGreaterThan(schedules / 10);
  expect(tally.rejected).toBeGreaterThan(schedules / 10);
  expect(tally.cuts).toBeGreaterThan(schedules / 2);
});
