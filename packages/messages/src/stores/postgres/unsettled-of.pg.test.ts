// How a recipient's unsettled deliveries are found, on a server that has never been asked to analyse its tables.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { ampleRate, dm, send, World } from "../conformance-world.ts";
import { selectUnsettledOf, selectWaiting } from "./deliveries.ts";
import { selectUnfinished } from "./memberships.ts";
import { selectStats } from "./stats.ts";
import type { Reading } from "./stored-accepts.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

/** Numbers of 64 bits as numbers, as the product reads them. */
function parserOf(oid: number, format?: "text" | "binary") {
  return oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format as "text");
}

const database = await createTestDatabase("unsettled");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("a recipient's unsettled deliveries", () => {
  const url = database?.url ?? "";
  const harness = new PostgresHarness(url);
  const client = new pg.Client({ connectionString: url, types: { getTypeParser: parserOf } });
  const meshId = "01890000-0000-7000-8000-000000000001";
  const recipient = "a".repeat(64);
  beforeAll(async () => {
    await harness.connect();
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await harness.end();
  });

  test("are found by their own index, in order, whatever was planned for", async () => {
    const plans: string[] = [];
    // Every statement that asks for them, planned as for tables of any size: an empty one is sooner read from end to end.
    const explaining: Reading = {
      query: async (text, values) => {
        if (text.includes("delivery_queue") && text.includes("hashtextextended")) {
          const { rows } = await client.query(`EXPLAIN ${text}`, [...(values ?? [])]);
          plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
        }
        return [];
      },
    };
    await client.query("SET enable_seqscan = off; SET enable_bitmapscan = off");
    const pages = [{ meshId, recipient, after: 0, limit: 10 }];
    await selectUnsettledOf(explaining, pages);
    await selectUnsettledOf(explaining, [...pages, ...pages]);
    await selectWaiting(explaining, [{ meshId, pubkey: recipient }]);
    await selectUnfinished(explaining, 10);
    await selectStats(explaining, meshId, 1);
    expect(plans.length).toBeGreaterThanOrEqual(4);
    for (const plan of plans) {
      expect(plan).toMatch(/Index (Only )?Scan using delivery_queue_unsettled on delivery_queue/);
      expect(plan).toMatch(/Index Cond: \(\(?hashtextextended\(/);
      expect(plan).not.toContain("delivery_queue_pkey");
    }
  });

  test("are nobody else's, also where two recipients have the same number", async () => {
    const world = await World.start(harness, ampleRate);
    const [alice, bob, carol] = await world.threeMembers();
    await world.accept(alice, send("for-bob", dm(bob)));
    await world.accept(alice, send("for-carol", dm(carol)));
    // For this connection every recipient has the same number: the function comes before the server's own.
    await client.query(`CREATE SCHEMA same;
      CREATE FUNCTION same.hashtextextended(text, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 7::bigint';
      SET search_path = same, pg_catalog`);
    const same: Reading = {
      query: async <Row>(text: string, values?: readonly unknown[]) =>
        (await client.query(text, [...(values ?? [])])).rows as Row[],
    };
    expect(await same.query("SELECT hashtextextended('a', 0) AS number")).toEqual([{ number: 7 }]);
    const [mesh] = await same.query<{ id: string }>("SELECT id FROM mesh.mesh");
    const pages = [alice, bob, carol].map((pubkey) => ({
      meshId: mesh?.id ?? "",
      recipient: pubkey,
      after: 0,
      limit: 10,
    }));
    const found = await selectUnsettledOf(same, pages);
    expect(found.map((items) => items.map((item) => item.client_message_id))).toEqual([[], ["for-bob"], ["for-carol"]]);
    await world.close();
  });
});
