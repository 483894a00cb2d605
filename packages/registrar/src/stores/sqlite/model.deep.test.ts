// A slice of the random schedules on SQLite in memory; the full count is in model.soak.test.ts.
import { test } from "vitest";
import { playSchedules } from "../suites/model.suite.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

test("random schedules answer as the naive model does and keep every invariant (REG-1 to REG-7)", async () => {
  const open = async () => {
    const harness = await SqliteHarness.create(":memory:");
    return { harness, end: () => harness.end() };
  };
  await playSchedules({ count: 600, perHarness: 250, open });
});
