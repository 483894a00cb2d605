// Every rule of the orphan check, broken on purpose on PostgreSQL, and a large sweep under load.
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { sweepAll } from "../../services/sweep.ts";
import { describeBreaking } from "../suites/orphans.suite.ts";
import { describeSweepUnderLoad } from "../suites/sweep-under-load.suite.ts";
import { dm, send, World } from "../suites/world.ts";
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

  test("a sweep to the end waits for what is being settled just now, and leaves nothing behind it", async () => {
    const [alice, bob] = await world.threeMembers();
    for (const id of ["m1", "m2", "m3"]) await world.accept(alice, send(id, dm(bob)));
    const dayMs = 86_400_000;
    world.nowMs += 2 * dayMs;
    await harness.admin.query("BEGIN; SELECT 1 FROM mesh.delivery_queue WHERE history_id = 2 FOR UPDATE");
    const terms = { nowMs: () => world.nowMs, messageRetentionMs: dayMs, dedupeRetentionMs: undefined };
    const sweeping = sweepAll({ ...terms, store: world.store });
    // Long enough for many steps that come to the second message and no further.
    await sleep(300);
    await harness.admin.query("COMMIT");
    expect(await sweeping).toMatchObject({ messages: 3 });
  });
});
