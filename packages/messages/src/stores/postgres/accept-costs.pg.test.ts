// What accepting costs PostgreSQL, by the server's own counters. A connection reports what it counted only now and then,
// and at its end: this file has a database to itself, and counts when every other connection to it has ended.
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { until } from "../../../../../tests/support/world.ts";
import type { MessagesStore } from "../../ports.ts";
import { ampleRate, dm, send, World } from "../suites/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("accept_costs");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("accepting on PostgreSQL", () => {
  const url = database?.url ?? "";
  const observer = new pg.Client({ connectionString: url });
  let accept: (store: MessagesStore, id: string) => Promise<unknown>;

  // Look-ups are planned when the tables are all but empty, and are not analysed before they are used again.
  beforeAll(async () => {
    await observer.connect();
    const harness = new PostgresHarness(url);
    await harness.connect();
    const world = await World.start(harness, ampleRate);
    const [alice, bob] = await world.threeMembers();
    accept = (store, id) => world.accept(alice, send(id, dm(bob), "hello"), { store: store.accepts });
    for (const id of ["first", "first"]) await accept(world.store, id);
    for (let round = 0; round < 4; round += 1) {
      await Promise.all(Array.from({ length: 250 }, (_, n) => accept(world.store, `${round}-${n}`)));
    }
    for (let n = 0; n < 20; n += 1) await accept(world.store, `1-${n}`);
    await harness.end();
    await untilAlone();
  });
  afterAll(() => observer.end());

  async function untilAlone(): Promise<void> {
    await until("the connections have ended", async () => {
      const { rows } = await observer.query(
        `SELECT 1 FROM pg_stat_activity
         WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      );
      return rows.length === 0;
    });
    await observer.query("SELECT pg_stat_clear_snapshot()");
  }

  async function countersAfter(work: (store: MessagesStore) => Promise<void>) {
    const harness = new PostgresHarness(url);
    await work((await harness.open(ampleRate)).store);
    await harness.closePools();
    await untilAlone();
    const { rows } = await observer.query<{ written: number; scanned: number; looked_up: number }>(
      `SELECT sum(n_tup_ins + n_tup_upd + n_tup_del)::int AS written, sum(seq_scan)::int AS scanned,
         sum(idx_scan) FILTER (WHERE relname = 'client_message_dedupe')::int AS looked_up
       FROM pg_stat_user_tables WHERE schemaname = 'mesh'`,
    );
    return rows[0] ?? { written: 0, scanned: 0, looked_up: 0 };
  }

  test("a retry reads its own history row alone, also where it was planned while the mesh was young", async () => {
    const { rows } = await observer.query<{ read: number }>(
      "SELECT sum(idx_tup_read)::int AS read FROM pg_stat_user_indexes WHERE relname = 'message_history'",
    );
    expect(rows[0]?.read).toBe(1 + 20);
  });

  test("a retry of a committed id reads one index and writes nothing, and a new id scans no table", async () => {
    await observer.query("ANALYZE");
    // So many that statements which are kept prepared have got the plan that they keep.
    const before = await countersAfter(async (store) => {
      for (let n = 0; n < 12; n += 1) expect(await accept(store, `new-${n}`)).toMatchObject({ type: "accepted" });
    });
    const between = await countersAfter(async (store) => {
      for (let n = 12; n < 24; n += 1) expect(await accept(store, `new-${n}`)).toMatchObject({ type: "accepted" });
    });
    expect(between.scanned - before.scanned).toBe(0);
    expect(between.written - before.written).toBeGreaterThanOrEqual(12 * 5);
    const after = await countersAfter(async (store) => {
      for (let n = 0; n < 20; n += 1) expect(await accept(store, "new-1")).toMatchObject({ type: "duplicate" });
    });
    expect(after.written - between.written).toBe(0);
    expect(after.scanned - between.scanned).toBe(0);
    expect(after.looked_up - between.looked_up).toBe(20);
  });
});
