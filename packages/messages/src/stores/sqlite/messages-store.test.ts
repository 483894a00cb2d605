// SQLite through the messages suite, and what a retry costs there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { membersMigrations } from "@claudemesh/members/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { afterAll, describe, expect, test, vi } from "vitest";
import { describeMessagesConformance } from "../conformance.ts";
import { ampleRate, dm, type MessagesHarness, type OpenMessages, send, World } from "../conformance-world.ts";
import { createSqliteMessagesStore, messagesMigrations } from "./messages-store.ts";

const folder = mkdtempSync(join(tmpdir(), "claudemesh-messages-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let databases = 0;
const currentPath = () => join(folder, `${databases}.db`);

function openMessages(db: Sqlite, rate = ampleRate): OpenMessages {
  const commit = new GroupCommit(db);
  return {
    store: createSqliteMessagesStore(db, commit, rate, { saw: () => undefined }),
    query: async (sql) => db.sql(sql).all(),
    async close() {
      commit.close();
      db.close();
    },
  };
}

const harness: MessagesHarness = {
  async reset() {
    databases += 1;
    const db = openSqlite({ path: currentPath() });
    await migrateSqlite(db, [...membersMigrations(), ...messagesMigrations()]);
    db.close();
  },
  open: async (rate) => openMessages(openSqlite({ path: currentPath() }), rate),
  table: (name) => name,
  failingTrigger: (name, table, condition) => ({
    create: `CREATE TRIGGER ${name} BEFORE INSERT ON ${table} WHEN ${condition}
      BEGIN SELECT RAISE(ABORT, 'told to fail'); END`,
    drop: `DROP TRIGGER ${name}`,
  }),
};

describe("messages on SQLite", () => describeMessagesConformance(harness));

describe("a retry of a committed send", () => {
  test("runs one statement, which reads by the primary key, and writes nothing", async () => {
    let db: Sqlite | undefined;
    const world = await World.start({
      ...harness,
      open: async (rate) => {
        db = openSqlite({ path: currentPath() });
        return openMessages(db, rate);
      },
    });
    const [alice, bob] = await world.threeMembers();
    await world.accept(alice, send("m1", dm(bob)));
    if (db === undefined) throw new Error("no database was opened");
    const changes = () => db?.sql<{ n: number }>("SELECT total_changes() AS n").get()?.n;
    const before = changes();
    expect(before).toBeGreaterThan(0);

    const statements = vi.spyOn(db, "sql");
    const transactions = vi.spyOn(db, "transaction");
    expect(await world.accept(alice, send("m1", dm(bob)))).toMatchObject({ type: "duplicate" });
    const [asked] = statements.mock.calls.map(([text]) => text);
    expect(statements).toHaveBeenCalledTimes(1);
    expect(transactions).not.toHaveBeenCalled();
    vi.restoreAllMocks();

    expect(changes()).toBe(before);
    const plan = db.sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${asked}`).all("mesh-1", "m1");
    expect(plan.map(({ detail }) => detail)).toEqual([
      "SEARCH client_message_dedupe USING PRIMARY KEY (mesh_id=? AND client_message_id=?)",
    ]);
    await world.close();
  });
});
