// Database files that only their owner can read, at every moment: created 0600 before SQLite sees them, because
// SQLite gives -wal and -shm the mode of the main file. Links and folders in the way are refused, not followed.
import { chmodSync, closeSync, constants, fchmodSync, fsyncSync, lstatSync, openSync, type Stats } from "node:fs";
import { dirname } from "node:path";
import process from "node:process";
import { isMainThread } from "node:worker_threads";
import { StorageError } from "../storage-error.ts";
import { toFileError } from "./sqlite-error.ts";

const ownerOnly = 0o600;
const siblingSuffixes = ["-wal", "-shm", "-journal"];

/** Leaves a regular 0600 file at `path`; says whether it had to be created. */
export function ensurePrivateFile(path: string): "created" | "existed" {
  try {
    for (const suffix of siblingSuffixes) tightenIfPresent(path + suffix);
    if (tightenIfPresent(path)) return "existed";
    return createUnlessPresent(path);
  } catch (error) {
    throw toFileError(error, path);
  }
}

/** Another process may have been quicker since we looked; what it made is held to the same rules. */
function createUnlessPresent(path: string): "created" | "existed" {
  try {
    createPrivateFile(path);
    return "created";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST" && tightenIfPresent(path)) return "existed";
    throw error;
  }
}

/** Fails where anything is at `path` already. The new name is on disk when this returns. */
export function createPrivateFile(path: string): void {
  const flags = constants.O_CREAT | constants.O_EXCL | constants.O_RDWR | constants.O_NOFOLLOW;
  const file = openSync(path, flags, ownerOnly);
  try {
    // A umask that takes bits away from the owner would leave a file that we cannot open again.
    fchmodSync(file, ownerOnly);
  } finally {
    closeSync(file);
  }
  syncFolder(dirname(path));
}

export function fileExists(path: string): boolean {
  return statIfPresent(path) !== undefined;
}

/** Makes created and renamed entries of a folder durable. */
export function syncFolder(path: string): void {
  const folder = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** The umask belongs to the process and only its main thread may set it; workers rely on the mode of the main file. */
export function withPrivateUmask<R>(body: () => R): R {
  if (!isMainThread) return body();
  const before = process.umask(0o077);
  try {
    return body();
  } finally {
    process.umask(before);
  }
}

// By path and not through a descriptor: closing any descriptor of a file drops all POSIX locks that this process holds
// on it, also those of another open connection.
function tightenIfPresent(path: string): boolean {
  const stats = statIfPresent(path);
  if (stats === undefined) return false;
  if (stats.isSymbolicLink()) throw new StorageError("path_refused", `${path} is a symbolic link`);
  if (stats.isDirectory()) throw new StorageError("path_refused", `${path} is a folder`);
  if (!stats.isFile()) throw new StorageError("path_refused", `${path} is not a regular file`);
  if ((stats.mode & 0o777) !== ownerOnly) chmodSync(path, ownerOnly);
  return true;
}

function statIfPresent(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}
