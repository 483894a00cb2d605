// SQLite through the suites of `once`, and what a retry costs there.
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { membersMigrations } from "@claudemesh/members/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { OnceStore } from "../../ports/once-store.ts";
import { describeOnce, type OnceHarness, OnceWorld } from "../suites/once.suite.ts";
import { describeOnceModel } from "../suites/once-model.suite.ts";
import { createSqliteOnceStore } from "./once-store.ts";
import { registrarMigrations } from "./registrar-migrations.ts";

const folder = mkdtempSync(join(tmpdir(), "claudemesh-once-"));
const opened: { db: Sqlite; commit: GroupCommit; store: OnceStore }[] = [];

function open(): Sqlite {
  return openSqlite({ path: join(folder, "once.db") });
}

beforeAll(async () => {
  for (let count = 0; count < 3; count++) {
    const db = open();
    if (count === 0) await migrateSqlite(db, [...membersMigrations(), ...registrarMigrations()]);
    const commit = new GroupCommit(db);
    opened.push({ db, commit, store: createSqliteOnceStore(db, commit) });
  }
});

afterAll(() => {
  for (const { db, commit } of opened) {
    commit.close();
    db.close();
  }
  rmSync(folder, { recursive: true, force: true });
});

const first = (): Sqlite => {
  const [one] = opened;
  if (one === undefined) throw new Error("no database is open");
  return one.db;
};

const harness: OnceHarness = {
  stores: () => opened.map(({ store }) => store),
  addMesh: async (pubkeys) => {
    const meshId = randomUUID();
    first().transaction(() => {
      first().sql("INSERT INTO mesh (id, name, created_at) VALUES (?, ?, 1)").run(meshId, meshId);
      const add = first().sql("INSERT INTO member (mesh_id, pubkey, name, role, joined_at) VALUES (?, ?, ?, ?, 1)");
      for (const pubkey of pubkeys) add.run(meshId, pubkey, "m", "member");
    });
    return meshId;
  },
  revoke: async (meshId, pubkey) => {
    first().sql("UPDATE member SET revoked_at = 1 WHERE mesh_id = ? AND pubkey = ?").run(meshId, pubkey);
  },
  execute: async (sql) => first().exec(sql),
};

describe("once on SQLite", () => {
  describeOnce(harness);
  describeOnceModel(harness);
});

describe("a call that changes nothing", () => {
  test("is two reads by keys, and no transaction", async () => {
    const world = await OnceWorld.start(harness);
    await world.claim("c1");
    await world.record(1, "1");
    const statements = vi.spyOn(first(), "sql");
    const transactions = vi.spyOn(first(), "transaction");
    expect(await world.claim("c2")).toMatchObject({ type: "done" });
    expect(await world.record(1, "1")).toMatchObject({ type: "settled" });
    expect(transactions).not.toHaveBeenCalled();
    const asked = statements.mock.calls.map(([text]) => text);
    vi.restoreAllMocks();
    expect(asked).toHaveLength(3);
    for (const text of asked) {
      const values = Array.from({ length: text.split("?").length - 1 }, () => 1);
      const plan = first()
        .sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
        .all(...values);
      for (const { detail } of plan) expect(detail).toMatch(/^SEARCH once_claim USING (PRIMARY KEY|INDEX)/);
    }
  });
});
