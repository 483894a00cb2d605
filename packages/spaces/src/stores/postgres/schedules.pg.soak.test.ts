// The full count of random schedules on PostgreSQL.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seedOfTheDay } from "../../../../../tests/support/seed.ts";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { missedFloors, runSchedules } from "../../testing/run-schedules.ts";
import { PostgresHarness, PostgresHost } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("soak");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("schedules on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());

  test("whatever the engine accepts in 1,000 schedules, the naive space accepts (SPC-2, SPC-3)", async () => {
    const host = await PostgresHost.start(harness);
    const tally = await runSchedules({ ...host.runs, count: 1_000, seed: seedOfTheDay() });
    process.stdout.write(`${JSON.stringify({ ...tally, optimistic: harness.optimistic })}\n`);
    expect(harness.optimistic.written).toBeGreaterThan(300);
    expect(harness.optimistic.overtaken).toBeGreaterThan(5);
    expect(missedFloors(tally)).toEqual([]);
  });
});
