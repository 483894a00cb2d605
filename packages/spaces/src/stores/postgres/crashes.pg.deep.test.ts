// A service on PostgreSQL, killed around its commits.
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { World } from "../conformance-world.ts";
import { describeCrashes } from "../suites/crashes/conformance.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("crashes");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("crashes on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());
  let world: World;
  beforeEach(async () => {
    world = await World.start(harness);
  });
  afterEach(() => world.close());
  describeCrashes(
    () => world,
    () => database?.url ?? "",
  );
});
