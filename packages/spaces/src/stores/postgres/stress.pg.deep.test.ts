// Services on PostgreSQL: killed around their commits, and several at once.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { describeConcurrency } from "../suites/concurrency.suite.ts";
import { describeCrashes } from "../suites/crashes.suite.ts";
import { World } from "../suites/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("crashes");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("under stress on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());
  let world: World;
  beforeEach(async () => {
    world = await World.start(harness);
  });
  afterEach(() => world.close());
  describeConcurrency(() => world);
  test("those agents have met optimistic commits that were written, and some that were overtaken", () => {
    const { written, overtaken } = harness.optimistic;
    expect(written).toBeGreaterThan(20);
    expect(overtaken).toBeGreaterThan(5);
  });
  describeCrashes(
    () => world,
    () => database?.url ?? "",
  );
});
