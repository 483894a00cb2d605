// Statements that a connection planned when a queue's tables were all but empty, and uses when they are full: what they read
// then, by the server's own counters. So this file has a database to itself.
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { until } from "../../../../../tests/support/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";
import { QueueRig } from "./testing/queue-rig.ts";

const database = await createTestDatabase("young_queues");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("on a connection that planned while the tables were empty", () => {
  test("a lease and an ack read what they name, and nothing of all that was settled", async () => {
    const url = database?.url ?? "";
    const harness = new PostgresHarness(url);
    await harness.connect();
    onTestFinished(() => harness.end());
    const rig = await QueueRig.start(harness, url);
    /** Two messages are leased, asked for again, left to run out, leased by the next one, and acked. */
    const work = async (name: string) => {
      const ids = await rig.take(name, 2);
      expect(ids).toHaveLength(2);
      expect(await rig.take(name, 2)).toEqual(ids);
      rig.nowMs += 30_000;
      expect(await rig.take(`${name}-next`, 2)).toEqual(ids);
      expect(await rig.ack(`${name}-next`, ids)).toMatchObject({ type: "settled" });
    };
    const settled = 3_000;

    expect(await rig.lease("r0")).toEqual({ type: "empty" });
    await rig.addMessages(1, 2, "ready");
    await work("r1");
    await rig.addMessages(3, settled, "acked");
    await rig.addMembers(2, settled);
    await rig.addMessages(settled + 1, settled + 10, "ready");
    for (const name of ["r2", "r3"]) await work(name);

    // A connection reports what it counted at its end.
    await rig.close();
    await until("the connections have reported", async () => {
      await harness.query("SELECT pg_stat_clear_snapshot()");
      const rows = await harness.query(`SELECT t.relname AS name, (t.seq_tup_read + (SELECT sum(i.idx_tup_read)
          FROM pg_stat_user_indexes i WHERE i.relid = t.relid))::int AS read
        FROM pg_stat_user_tables t
        WHERE t.schemaname = 'mesh' AND (t.relname LIKE 'queue%' OR t.relname IN ('member', 'message_queue'))`);
      // Ten leases, repetitions among them, and three settlements each hold the member and the queue.
      if (rows.find(({ name }) => name === "queue")?.read !== 13) return false;
      // The old version of a row that moved is read, too, until it is cleaned up.
      for (const { name, read } of rows) expect(read, `rows of ${name}`).toBeLessThan(settled / 10);
      expect(rows).toHaveLength(6);
      return true;
    });
  });
});
