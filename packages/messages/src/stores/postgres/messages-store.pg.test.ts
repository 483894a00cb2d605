// PostgreSQL through the messages suites. The limiter has its own, since it does not live in this store; the random
// models run in accept-model.pg.deep.test.ts.
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { messagesSuites } from "../suites/messages.suite.ts";
import { ampleRate, World } from "../suites/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("messages");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("messages on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());

  let world: World;
  beforeEach(async () => {
    world = await World.start(harness, ampleRate);
  });
  afterEach(() => world.close());

  for (const [name, suite] of messagesSuites) describe(name, () => suite(() => world));
});
