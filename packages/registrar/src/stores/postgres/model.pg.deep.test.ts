// Random schedules of the registrar on PostgreSQL: a slice.
import { afterAll, describe, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { playSchedules } from "../suites/model.suite.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("registrar_model");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("the registrar on PostgreSQL", () => {
  test("random schedules answer as the naive model does and keep every invariant (REG-1 to REG-7)", async () => {
    const harness = new PostgresHarness(database?.url ?? "");
    await harness.connect();
    const open = async () => ({ harness, end: () => harness.end() });
    await playSchedules({ count: 40, perHarness: 40, open });
  });
});
