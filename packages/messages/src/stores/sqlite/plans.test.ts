// How SQLite finds what is in one state among everything that ever was: by the index of that state. The planner, left to
// itself, prefers the primary key's order and walks through all that was settled; a plan shows that with no rows at all.
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { webhookDeliveryStates } from "../../core/webhook-delivery.ts";
import { dm, queue, send, topic, World } from "../suites/world.ts";
import { openMessages, SqliteHarness } from "./testing/sqlite-harness.ts";

/** Notes every statement that its stores prepare. */
class WatchedHarness extends SqliteHarness {
  readonly seen = new Set<string>();

  override async open() {
    const db = openSqlite({ path: this.path });
    const original = db.sql.bind(db);
    db.sql = ((text: string) => {
      this.seen.add(text);
      return original(text);
    }) as Sqlite["sql"];
    return openMessages(db);
  }
}

type PartialIndex = { readonly table: string; readonly name: string; readonly condition: string };

function readPartialIndexes(db: Sqlite): PartialIndex[] {
  const rows = db
    .sql<{ tbl_name: string; name: string; sql: string }>(
      "SELECT tbl_name, name, sql FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'",
    )
    .all();
  return rows.map(({ tbl_name, name, sql }) => ({
    table: tbl_name,
    name,
    condition: (sql.split(" WHERE ")[1] ?? "").trim(),
  }));
}

/** Without the names that a statement gives its tables. */
const plain = (sql: string) => sql.replace(/\s+/g, " ").replace(/\b[a-z]\./g, "");

/** What a statement calls the table, each time that it names it. */
function usesOf(sql: string, table: string): string[] {
  const uses = sql.matchAll(new RegExp(`\\b(?:FROM|JOIN) ${table}(?: ([a-z])\\b)?(?![a-z_])`, "g"));
  return [...uses].map(([, alias]) => alias ?? table);
}

function explain(db: Sqlite, sql: string): string[] {
  const parameters = /\?\d/.test(sql) ? [...new Set(sql.match(/\?\d+/g))] : (sql.match(/\?/g) ?? []);
  const rows = db.sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters.map(() => null));
  return rows.map(({ detail }) => `${detail} `);
}

/** A mesh has a bounded number of these. */
const fewRows = ["webhook"];

describe("what is in one state is found by the index of that state, however much there is in others", () => {
  const harness = new WatchedHarness();
  let world: World;
  let db: Sqlite;

  beforeAll(async () => {
    world = await World.start(harness);
    const { store, meshId, nowMs } = world;
    const [alice, bob] = await world.threeMembers();
    await world.addTopic("news", [bob]);
    await store.queues.create(meshId, { id: "jobs", maxDeliveries: 3, createdBy: alice }, nowMs);
    for (const to of [topic("news"), dm(bob), queue("jobs")]) await world.accept(alice, send(JSON.stringify(to), to));
    await store.deliveries.unsettled(meshId, bob, 0, 10);
    await store.deliveries.settle(meshId, bob, [1], nowMs);
    const request = { meshId, queue: "jobs", holder: alice, leaseToken: "t" };
    await store.queues.lease({ ...request, leaseRequestId: "r", max: 1, leaseSeconds: 30 }, nowMs);
    await store.queues.settle({ ...request, brokerMessageIds: [], settlement: "acked" }, nowMs);
    await store.queues.parked({ meshId, queue: "jobs", after: 0, limit: 10 }, nowMs);
    await store.memberships.end({ meshId, pubkey: bob }, nowMs, 10);
    await store.memberships.unfinished(10);
    const asked = { url: "https://receiver.example/", topics: undefined, secret: "s", fingerprint: Buffer.alloc(32) };
    await store.webhooks.create({ meshId, id: "ci", incarnation: "one", ...asked, createdBy: alice }, nowMs, 1);
    for (const state of webhookDeliveryStates) {
      await store.webhooks.deliveries({ meshId, id: "ci", state, after: 0, limit: 10 });
    }
    await store.webhooks.writeNext(nowMs);
    await store.webhooks.claim(
      { slots: 1, perWebhook: 1, slotsInUse: new Map(), failingSlotsInUse: 0, leaseMs: 1 },
      nowMs,
    );
    db = openSqlite({ path: harness.path });
  });
  afterAll(async () => {
    db.close();
    await world.close();
    harness.end();
  });

  test("in every statement that looks for some of them", () => {
    const indexes = readPartialIndexes(db).filter(({ table }) => !fewRows.includes(table));
    const asked = [...harness.seen].flatMap((sql) => {
      if (!/^\s*SELECT\b/i.test(sql) || !/\b(LIMIT|EXISTS|min)\b/i.test(sql)) return [];
      const wanted = indexes.filter(
        ({ table, condition }) => usesOf(sql, table).length > 0 && plain(sql).includes(condition),
      );
      return [...Map.groupBy(wanted, ({ table }) => table)].map(([table, names]) => ({ sql, table, names }));
    });
    const wrong = asked.filter(({ sql, table, names }) => {
      const steps = explain(db, sql).filter((step) => usesOf(sql, table).some((name) => step.includes(` ${name} `)));
      const isGood = (step: string) => /history_id=\?/.test(step) || names.some(({ name }) => step.includes(name));
      return steps.length === 0 || !steps.every(isGood);
    });
    expect(wrong.map(({ sql }) => [plain(sql), ...explain(db, sql)])).toEqual([]);
    expect(asked.flatMap(({ names }) => names.map(({ name }) => name))).toEqual(
      expect.arrayContaining([
        "delivery_queue_unsettled",
        "queue_message_ready",
        "queue_message_parked",
        "queue_message_expiry",
        "queue_message_held",
        "webhook_delivery_due",
        "webhook_delivery_pending",
        "webhook_delivery_delivered",
        "webhook_delivery_parked",
        "webhook_delivery_expired",
      ]),
    );
  });
});
