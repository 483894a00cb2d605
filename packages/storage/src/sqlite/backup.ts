// A copy of a live database into one private file that stands alone: complete and flushed, or not there at all.
import { closeSync, constants, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { StorageError } from "../storage-error.ts";
import { createPrivateFile, fileExists, syncFolder } from "./private-file.ts";
import type { Sqlite } from "./sqlite.ts";
import { toFileError, toSqliteError } from "./sqlite-error.ts";

const allPages = 2 ** 31 - 1;

/** Writers go on meanwhile; the copy shows one moment between the call and its end. `target` must not exist. */
export async function backUpSqlite(db: Sqlite, target: string): Promise<void> {
  if (fileExists(target)) throw new StorageError("path_refused", `${target} already exists`);
  const partial = `${target}.partial`;
  try {
    rmSync(partial, { force: true });
    createPrivateFile(partial);
    await copyInto(db, partial);
    syncFile(partial);
    renameSync(partial, target);
    syncFolder(dirname(target));
  } catch (error) {
    removeLeftovers(partial);
    throw toFileError(toSqliteError(error), target);
  }
}

// A connection of its own copies from one snapshot in one step, off the main thread, without holding up the writer's
// connection. A database in memory has no second connection.
async function copyInto(db: Sqlite, partial: string): Promise<void> {
  if (db.path === ":memory:") {
    await backup(db.connection, partial);
    return;
  }
  const reader = new DatabaseSync(db.path, { readOnly: true });
  try {
    await backup(reader, partial, { rate: allPages });
  } finally {
    reader.close();
  }
}

function syncFile(path: string): void {
  const file = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function removeLeftovers(partial: string): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(partial + suffix, { force: true });
}
