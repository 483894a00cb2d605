// The byte ledger in the embedded broker's own database.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { expect, onTestFinished, test } from "vitest";
import { createSqliteByteLedger } from "./byte-ledger.ts";
import { messagesMigrations } from "./messages-store.ts";

test("adds up what a mesh spends in a window, keeps it across a restart, and forgets the windows that have ended", async () => {
  const folder = mkdtempSync(join(tmpdir(), "cm-byte-ledger-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "broker.db");
  const open = async () => {
    const db = openSqlite({ path });
    await migrateSqlite(db, messagesMigrations());
    const commit = new GroupCommit(db);
    const close = () => {
      commit.close();
      db.close();
    };
    return { db, ledger: createSqliteByteLedger(commit), close };
  };
  const first = await open();
  expect(await first.ledger.add("acme", 60_000, 60, 5)).toBe(5);
  expect(
    await Promise.all([first.ledger.add("acme", 60_000, 60, 6), first.ledger.add("other", 60_000, 60, 1)]),
  ).toEqual([11, 1]);
  first.close();
  const again = await open();
  expect(await again.ledger.add("acme", 60_000, 60, 0)).toBe(11);
  expect(await again.ledger.add("acme", 120_000, 60, 2)).toBe(2);
  const rows = again.db.sql("SELECT mesh_id, window_start, used FROM byte_budget_window ORDER BY mesh_id").all();
  expect(rows).toEqual([
    { mesh_id: "acme", window_start: 120_000, used: 2 },
    { mesh_id: "other", window_start: 60_000, used: 1 },
  ]);
  again.close();
});
