// SQLite through the messages suite, and what a retry costs there.
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { afterAll, describe, expect, onTestFinished, test, vi } from "vitest";
import type { RateLimit } from "../../core/rate-limit.ts";
import { describeMessagesConformance } from "../conformance.ts";
import { dm, send, World } from "../conformance-world.ts";
import { openMessages, SqliteHarness } from "./testing/sqlite-harness.ts";

const harness = new SqliteHarness();
afterAll(() => harness.end());

describe("messages on SQLite", () => describeMessagesConformance(harness));

describe("a retry of a committed send", () => {
  test("runs one statement, which reads by the primary key, and writes nothing", async () => {
    let db: Sqlite | undefined;
    class WatchedHarness extends SqliteHarness {
      override async open(rate?: RateLimit) {
        db = openSqlite({ path: this.path });
        return openMessages(db, rate);
      }
    }
    const watched = new WatchedHarness();
    onTestFinished(() => watched.end());
    const world = await World.start(watched);
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
