// Every rule of the orphan check, broken on purpose on SQLite, and a large sweep under load.
import { afterAll, afterEach, beforeEach, describe } from "vitest";
import { describeBreaking } from "../suites/orphans.suite.ts";
import { describeSweepUnderLoad } from "../suites/sweep-under-load.suite.ts";
import { World } from "../suites/world.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

describe("housekeeping on SQLite", () => {
  const harness = new SqliteHarness();
  afterAll(() => harness.end());
  let world: World;
  beforeEach(async () => {
    world = await World.start(harness);
  });
  afterEach(() => world.close());

  describe("the orphan check", () => describeBreaking(() => world));
  describe("a large sweep", () => describeSweepUnderLoad(() => world));
});
