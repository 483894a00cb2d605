// A copy of a live database into one private file that stands alone: complete and flushed, or not there at all.
import { randomBytes } from "node:crypto";
import { closeSync, constants, fsyncSync, linkSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { StorageError } from "../storage-error.ts";
import { createPrivateFile, fileExists, syncFolder } from "./private-file.ts";
import type { Sqlite } from "./sqlite.ts";
import { toFileError, toSqliteError } from "./sqlite-error.ts";

const allPages = 2 ** 31 - 1;

/** What file systems without hard links answer, as on some network shares and sticks. */
const linklessCodes = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/** Writers go on meanwhile; the copy shows one moment between the call and its end. `target` must not exist. */
export async function backUpSqlite(db: Sqlite, target: string): Promise<void> {
  refuseExisting(target);
  // A name of its own: another backup to the same target may be under way.
  const partial = `${target}.${randomBytes(4).toString("hex")}.partial`;
  try {
    createPrivateFile(partial);
    await copyInto(db, partial);
    syncFile(partial);
    giveName(partial, target);
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
  const reader = new DatabaseSync(db.path, { readOnly: true, timeout: 5_000 });
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

/** A link, unlike a rename, never replaces a file that has appeared meanwhile. */
function giveName(partial: string, target: string): void {
  try {
    linkSync(partial, target);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") refuseExisting(target);
    if (!linklessCodes.includes(code)) throw error;
    refuseExisting(target);
    renameSync(partial, target);
    return;
  }
  rmSync(partial);
}

function refuseExisting(target: string): void {
  if (fileExists(target)) throw new StorageError("path_refused", `${target} already exists`);
}

function removeLeftovers(partial: string): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(partial + suffix, { force: true });
}
