// Every rule of the orphan check, broken by hand on SQLite.
import { afterAll, afterEach, beforeEach, describe } from "vitest";
import { World } from "../conformance-world.ts";
import { describeBreaking } from "../suites/orphans/conformance.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

describe("the orphan check on SQLite", () => {
  const harness = new SqliteHarness();
  afterAll(() => harness.end());
  let world: World;
  beforeEach(async () => {
    world = await World.start(harness);
  });
  afterEach(() => world.close());

  describeBreaking(() => world);
});
