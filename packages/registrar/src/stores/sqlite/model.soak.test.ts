// The full count of random schedules on SQLite in memory.
import { test } from "vitest";
import { playSchedules } from "../suites/model.suite.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

test("20,000 random schedules answer as the naive model does and keep every invariant", async () => {
  const open = async () => {
    const harness = await SqliteHarness.create(":memory:");
    return { harness, end: () => harness.end() };
  };
  await playSchedules({ count: 20_000, perHarness: 250, open });
});
