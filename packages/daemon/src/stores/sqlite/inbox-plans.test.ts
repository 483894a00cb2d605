// How SQLite answers what is asked of the inbox again and again: from either end by an index, in the order that is wanted.
// With a million messages a query that walks through them or sorts them holds up every arrival meanwhile.
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { beforeAll, describe, expect, it } from "vitest";
import type { InboxFilter } from "../../ports.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { arrivalOf, openTestStores } from "../../testing/test-stores.ts";
import { inboxMigrations } from "./open-databases.ts";

const filters: readonly InboxFilter[] = [
  {},
  { unread: true },
  { since: 1 },
  { since: 1, unread: true },
  { topic: "builds" },
  { topic: "builds", unread: true },
  { senders: ["ab".repeat(32)] },
].map((given) => ({ since: undefined, topic: undefined, senders: "any", ...given }));

type Asked = { readonly sql: string; readonly plan: string };

async function recordPlans(): Promise<Asked[]> {
  const clock = new ManualClock();
  const { inbox, readers, inboxDb } = await openTestStores(clock);
  for (let id = 1; id <= 5; id++) await inbox.insert(arrivalOf(id, "hello", { topic: "builds" }), clock.nowMs());
  const seen = new Set<string>();
  const original = inboxDb.sql.bind(inboxDb);
  inboxDb.sql = ((text: string) => {
    seen.add(text);
    return original(text);
  }) as Sqlite["sql"];
  for (const filter of filters) {
    inbox.list(filter, { after: undefined, limit: 1 });
    const newest = inbox.listBefore(filter, { before: undefined, limit: 2 });
    inbox.listBefore(filter, { before: newest.prevCursor, limit: 2 });
  }
  for (let n = 0; n < 2; n++) await readers.next({ reader: "web-1", acknowledge: undefined, limit: 2 }, 1);
  const db = openSqlite({ path: ":memory:" });
  await migrateSqlite(db, inboxMigrations());
  const asked = [...seen].filter((sql) => /^\s*SELECT\b/i.test(sql)).map((sql) => ({ sql, plan: explain(db, sql) }));
  db.close();
  return asked;
}

function explain(db: Sqlite, sql: string): string {
  const parameters = Array.from(sql.matchAll(/\?/g), () => null);
  const rows = db.sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters);
  return rows.map(({ detail }) => detail).join("; ");
}

describe("an inbox of any size", () => {
  let asked: readonly Asked[] = [];
  beforeAll(async () => {
    asked = await recordPlans();
  });

  it("is asked enough for the plans to mean something", () => {
    expect(asked.length).toBeGreaterThan(30);
  });

  it("is never scanned or sorted to show a page from either end, to count beside it, or to give a reader its next", () => {
    const slow = asked.filter(({ plan }) => /\bSCAN (?:inbox|inbox_earlier)\b|USE TEMP B-TREE/.test(plan));
    expect(slow.map(({ sql, plan }) => `${sql} → ${plan}`)).toEqual([]);
  });

  it("finds what is unread without walking through what is read", () => {
    const unread = asked.filter(({ sql }) => sql.includes("read_at IS NULL") && !sql.includes("topic ="));
    expect(unread.length).toBeGreaterThan(5);
    for (const { plan } of unread) expect(plan).toMatch(/INDEX inbox_unread \(id[<>]\?/);
  });
});
