// Every rule of the orphan check, broken by hand on SQLite, and a large sweep under load.
import { afterAll, afterEach, beforeEach, describe } from "vitest";
import { World } from "../conformance-world.ts";
import { describeBreaking } from "../suites/orphans/conformance.ts";
import { describeSweepUnderLoad } from "../suites/sweep-under-load/conformance.ts";
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
