// A service on SQLite, killed around its commits.
import { afterAll, afterEach, beforeEach, describe } from "vitest";
import { World } from "../conformance-world.ts";
import { describeCrashes } from "../suites/crashes/conformance.ts";
import { SqliteHarness } from "./testing/sqlite-harness.ts";

describe("crashes on SQLite", () => {
  const harness = new SqliteHarness();
  afterAll(() => harness.removeFiles());
  let world: World;
  beforeEach(async () => {
    world = await World.start(harness);
  });
  afterEach(() => world.close());
  describeCrashes(
    () => world,
    () => harness.path,
  );
});
