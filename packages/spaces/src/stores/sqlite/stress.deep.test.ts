// Services on SQLite: killed around their commits, and several at once.
import { afterAll, afterEach, beforeEach, describe } from "vitest";
import { describeConcurrency } from "../suites/concurrency.suite.ts";
import { describeCrashes } from "../suites/crashes.suite.ts";
import { World } from "../suites/world.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

describe("under stress on SQLite", () => {
  const harness = new SqliteHarness();
  afterAll(() => harness.removeFiles());
  let world: World;
  beforeEach(async () => {
    world = await World.start(harness);
  });
  afterEach(() => world.close());
  describeConcurrency(() => world);
  describeCrashes(
    () => world,
    () => harness.path,
  );
});
