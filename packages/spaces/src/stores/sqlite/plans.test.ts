// How SQLite finds rows of a space among everything that ever was. The planner, left to itself, prefers the primary key of
// what it should look up by session and walks through the whole space; a plan shows that with no rows at all.
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sessionUnusedMs } from "../../core/session.ts";
import { readLog } from "../../services/query.ts";
import { sweepAllSessions } from "../../services/spaces.ts";
import { alice, patch, read, remove, set, World } from "../suites/world.ts";
import { SqliteHarness, spacesOn } from "./testing/sqlite-harness.ts";

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
    return spacesOn(db);
  }
}

function explain(db: Sqlite, sql: string): string[] {
  const parameters = /\?\d/.test(sql) ? [...new Set(sql.match(/\?\d+/g))] : (sql.match(/\?/g) ?? []);
  const rows = db.sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...parameters.map(() => null));
  return rows.map(({ detail }) => detail);
}

describe("what belongs to a session is found by it, however much its space has seen", () => {
  const harness = new WatchedHarness();
  let world: World;
  let db: Sqlite;
  const statements = (table: string) =>
    [...harness.seen].filter((sql) => /\bspace_/.test(sql) && new RegExp(`\\b${table}\\b`).test(sql));

  beforeAll(async () => {
    world = await World.start(harness);
    const session = await world.session();
    await session.write([set("task:1", { n: 1 })]);
    await session.write([patch("task:1", { op: "replace", path: "/value/n", value: 2 })], {
      confirmed: [read("task:1", 1)],
    });
    await session.write([remove("task:1")]);
    session.opened = await world.open(alice, "again", session.opened);
    world.nowMs += sessionUnusedMs + 1;
    await sweepAllSessions(world.ports());
    for (const cursor of [{ after: 0 }, { before: 3 }]) await readLog(world.ports(), world.space, cursor, 10);
    db = openSqlite({ path: harness.path });
  });
  afterAll(async () => {
    db.close();
    await world.close();
    harness.removeFiles();
  });

  test("no statement walks through a table", () => {
    const walking = statements("\\w+").flatMap((sql) => {
      const steps = explain(db, sql).filter((step) => /^SCAN space/.test(step));
      return steps.length === 0 ? [] : [[sql, ...steps]];
    });
    expect(walking).toEqual([]);
  });

  test("the log is read from either end in the order of its key", () => {
    const plans = statements("space_commit")
      .filter((sql) => /ORDER BY seq(?: DESC)? LIMIT/.test(sql))
      .map((sql) => explain(db, sql).join("; "));
    expect(plans.filter((plan) => plan.includes("seq<?")).length).toBeGreaterThan(0);
    expect(plans.filter((plan) => !/seq[<>]\?/.test(plan) || /TEMP B-TREE/.test(plan))).toEqual([]);
  });

  test("what a session was opened by is looked up by the session or by the open, never in the whole space", () => {
    const asked = statements("space_session_open").filter((sql) => !/^\s*INSERT\b/.test(sql));
    const steps = asked.flatMap((sql) => explain(db, sql).filter((step) => /space_session_open|\bo\b/.test(step)));
    const byKey = /space_session_open_session \(mesh_id=\? AND space_id=\? AND session_id=\?|open_hash=\?/;
    expect(steps.filter((step) => !byKey.test(step))).toEqual([]);
    expect(steps.some((step) => step.includes("space_session_open_session"))).toBe(true);
  });
});
