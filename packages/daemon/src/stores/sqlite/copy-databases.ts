// Copies of a daemon's databases, taken while it runs, and made ready for the day when they are put back: by then time
// has passed that a copy knows nothing of, and it says so itself.
import { existsSync, rmSync } from "node:fs";
import { StorageError } from "@claudemesh/storage/errors";
import { openSqlite, openSqliteReadOnly, type Sqlite } from "@claudemesh/storage/sqlite";
import { backUpSqlite } from "@claudemesh/storage/sqlite-backup";
import { setRebuildAfter } from "./inbox-store.ts";
import { findProblemsReadOnly } from "./look-for-damage.ts";
import { markOpenRowsRestored } from "./outbox-rows.ts";

export type CopyOutcome =
  | { readonly type: "copied"; readonly rows: number }
  | { readonly type: "absent" }
  /** The copy is as damaged as the original, and not kept. */
  | { readonly type: "damaged"; readonly problem: string };

export async function copyOutbox(source: string, target: string): Promise<CopyOutcome> {
  return copyDatabase(source, target, (db) => {
    markOpenRowsRestored(db);
    return count(db, "outbox") + count(db, "outbox_tombstone");
  });
}

/** What came since was acked and comes no more by itself: a restored inbox goes through the broker's history. */
export async function copyInbox(source: string, target: string): Promise<CopyOutcome> {
  return copyDatabase(source, target, (db) => {
    setRebuildAfter(db, 0);
    return count(db, "inbox_message");
  });
}

async function copyDatabase(source: string, target: string, prepare: (db: Sqlite) => number): Promise<CopyOutcome> {
  if (!existsSync(source)) return { type: "absent" };
  const problem = await copyAndCheck(source, target);
  if (problem === undefined) {
    const db = openSqlite({ path: target });
    try {
      return { type: "copied", rows: db.transaction(() => prepare(db)) };
    } finally {
      db.close();
    }
  }
  for (const suffix of ["", "-wal", "-shm"]) rmSync(target + suffix, { force: true });
  return { type: "damaged", problem };
}

/** What is wrong with the copy, where something is. */
async function copyAndCheck(source: string, target: string): Promise<string | undefined> {
  const db = openSqliteReadOnly(source);
  try {
    await backUpSqlite(db, target);
  } catch (error) {
    if (error instanceof StorageError && error.kind === "corrupt") return error.message;
    throw error;
  } finally {
    db.connection.close();
  }
  return findProblemsReadOnly(target, "full")[0];
}

function count(db: Sqlite, table: "outbox" | "outbox_tombstone" | "inbox_message"): number {
  return db.sql<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`).get()?.rows ?? 0;
}
