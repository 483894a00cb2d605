// Every rule of the orphan check, broken by hand on PostgreSQL, and a large sweep under load.
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { World } from "../conformance-world.ts";
import { describeBreaking } from "../suites/orphans/conformance.ts";
import { describeSweepUnderLoad } from "../suites/sweep-under-load/conformance.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("orphans");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("housekeeping on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());
  let world: World;
  beforeEach(async () => {
    world = await World.start(harness);
  });
  afterEach(() => world.close());

  describe("the orphan check", () => describeBreaking(() => world));
  describe("a large sweep", () => describeSweepUnderLoad(() => world));
});
