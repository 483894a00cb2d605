// A slice of the random schedules on PostgreSQL, from the seed of the day.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOfTheDay } from "../../../../../tests/support/seed.ts";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { missedFloors, runSchedules } from "../../testing/run-schedules.ts";
import { PostgresHarness, PostgresHost } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("schedules");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("schedules on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());

  test("whatever the engine accepts, the naive space accepts (SPC-2, SPC-3)", async () => {
    const host = await PostgresHost.start(harness);
    const tally = await runSchedules({ ...host.runs, count: 60, seed: seedOfTheDay() });
    process.stdout.write(`${JSON.stringify({ ...tally, optimistic: harness.optimistic })}\n`);
    expect(harness.optimistic.written).toBeGreaterThan(10);
    expect(missedFloors(tally, 1 / 60)).toEqual([]);
  });
});
