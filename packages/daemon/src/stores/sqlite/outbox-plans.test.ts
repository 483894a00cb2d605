// How SQLite answers what the daemon asks its outbox again and again: by an index, in the order that is wanted. With a
// million rows a query that walks through the table or sorts it holds up every send meanwhile; a plan shows that with none.

import { outboxStatuses } from "@claudemesh/protocol/messages/outbox-row";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { beforeAll, describe, expect, it } from "vitest";
import { ManualClock } from "../../testing/manual-clock.ts";
import { newRow, openTestStores } from "../../testing/test-stores.ts";
import { outboxMigrations } from "./open-databases.ts";

/** The plan of every statement that `use` prepares on the outbox. */
async function plansOf(
  use: (stores: Awaited<ReturnType<typeof openTestStores>>) => unknown,
): Promise<{ readonly sql: string; readonly plan: string }[]> {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  await stores.outbox.insert(newRow(stores, clock, { clientMessageId: "order-1" }), "pending");
  const seen = new Set<string>();
  const original = stores.outboxDb.sql.bind(stores.outboxDb);
  stores.outboxDb.sql = ((text: string) => {
    seen.add(text);
    return original(text);
  }) as Sqlite["sql"];
  await use(stores);
  const db = openSqlite({ path: ":memory:" });
  await migrateSqlite(db, outboxMigrations());
  const plans = [...seen]
    .filter((sql) => /^\s*(?:SELECT|UPDATE|DELETE)\b/i.test(sql))
    .map((sql) => ({ sql, plan: explain(db, sql) }));
  db.close();
  return plans;
}

function explain(db: Sqlite, sql: string): string {
  const parameters = Array.from(sql.matchAll(/\?/g), () => null);
  const rows = db.sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
  return rows.map(({ detail }) => detail).join("; ");
}

const page = { after: undefined, limit: 100 };

describe("an outbox of any size", () => {
  const asked: { readonly sql: string; readonly plan: string }[] = [];
  const planOf = (part: string) => asked.filter(({ sql }) => sql.includes(part)).map(({ plan }) => plan);
  beforeAll(async () => {
    const plans = await plansOf(async (stores) => {
      const { outbox } = stores;
      await outbox.insert(newRow(stores, new ManualClock(), { clientMessageId: "order-2" }), "pending");
      await outbox.insert(newRow(stores, new ManualClock(), { clientMessageId: "order-3" }), "inflight");
      outbox.find("order-1");
      outbox.inspect("order-1");
      outbox.list(undefined, page);
      for (const status of outboxStatuses) outbox.list(status, page);
      outbox.counts();
      outbox.nextDueAt(0);
      outbox.oldestOpenEnqueuedAt();
      outbox.expired(0, 64);
      outbox.deadOfUnknownFate(0, "", 64);
      await outbox.claimDue({ nowMs: 2 ** 45, expiredAtOrBefore: 0, rows: 10, bytes: 1_000_000 });
      await outbox.resumeInflight(0);
      await outbox.prune(0, 0, 10);
    });
    asked.push(...plans);
  });

  it("is asked enough for the plans to mean something", () => {
    expect(asked.length).toBeGreaterThan(15);
  });

  it("is never scanned or sorted to accept, list, count or drain", () => {
    const slow = asked.filter(({ plan }) => /\bSCAN (?!outbox USING (?:COVERING )?INDEX)|USE TEMP B-TREE/.test(plan));
    expect(slow.map(({ sql, plan }) => `${sql} → ${plan}`)).toEqual([]);
  });

  it("has every page and every pruning of done rows begin where it is to begin, whatever the other rows are", () => {
    for (const status of outboxStatuses) {
      const index = status === "pending" ? "outbox_pending_by_id" : `outbox_${status}`;
      expect(planOf(`status = '${status}' AND id > ?`)).toEqual([expect.stringContaining(`INDEX ${index} (id>?)`)]);
    }
    expect(planOf("status = 'done' AND delivered_at < ?")).toEqual([
      expect.stringContaining("INDEX outbox_done (id<?)"),
    ]);
  });

  it("finds due rows in the order in which they are due, and pending ones in the order of their ids", () => {
    const due = planOf("ORDER BY next_attempt_at");
    const first = planOf("min(next_attempt_at) AS dueAt");
    // One for each priority that was asked for.
    expect([due.length, first.length]).toEqual([3, 2]);
    for (const plan of due) expect(plan).toContain("outbox_pending (priority=? AND next_attempt_at<?)");
    for (const plan of first) expect(plan).toContain("COVERING INDEX outbox_pending (priority=?)");
    expect(planOf("min(enqueued_at) AS oldest FROM outbox WHERE status = 'pending'")).toEqual([
      expect.stringContaining("COVERING INDEX outbox_pending_by_id"),
    ]);
    expect(planOf("enqueued_at <= ? ORDER BY id")).toEqual([expect.stringContaining("outbox_pending_by_id")]);
  });
});
