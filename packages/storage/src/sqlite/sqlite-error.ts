// Turns what node:sqlite and node:fs throw into StorageError, by code. Errors that are neither pass through unchanged,
// so that a failure raised inside a transaction by its caller reaches that caller as it was.
import { type ConstraintKind, StorageError, type StorageErrorKind } from "../storage-error.ts";

/** Primary result codes; the extended ones carry these in their low byte. */
const kindByPrimaryCode: ReadonlyMap<number, StorageErrorKind> = new Map([
  [3, "unavailable"], // PERM
  [5, "busy"], // BUSY
  [6, "busy"], // LOCKED
  [7, "unavailable"], // NOMEM
  [8, "unavailable"], // READONLY
  [9, "timeout"], // INTERRUPT
  [10, "io"], // IOERR
  [11, "corrupt"], // CORRUPT
  [13, "disk_full"], // FULL
  [14, "unavailable"], // CANTOPEN
  [19, "constraint"], // CONSTRAINT
  [23, "unavailable"], // AUTH
  [26, "corrupt"], // NOTADB
]);

const constraintByExtendedCode: ReadonlyMap<number, ConstraintKind> = new Map([
  [275, "check"],
  [787, "foreign_key"],
  [1299, "not_null"],
  [1555, "unique"], // PRIMARYKEY
  [2067, "unique"],
  [2579, "unique"], // ROWID
]);

const kindByErrno: ReadonlyMap<string, StorageErrorKind> = new Map([
  ["ENOSPC", "disk_full"],
  ["EDQUOT", "disk_full"],
  ["EIO", "io"],
  ["ELOOP", "path_refused"],
  ["EISDIR", "path_refused"],
  ["EEXIST", "path_refused"],
]);

export function toSqliteError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof StorageError) return error;
  const { code, errcode } = error as { code?: unknown; errcode?: unknown };
  if (code === "ERR_OUT_OF_RANGE") return new StorageError("unsafe_integer", error.message, { cause: error });
  if (code === "ERR_INVALID_STATE") return new StorageError("closed", error.message, { cause: error });
  if (code !== "ERR_SQLITE_ERROR" || typeof errcode !== "number") return error;
  const kind = kindByPrimaryCode.get(errcode & 0xff) ?? "statement";
  if (kind !== "constraint") return new StorageError(kind, error.message, { cause: error });
  const constraint = constraintByExtendedCode.get(errcode) ?? "other";
  return new StorageError(kind, error.message, { cause: error, constraint });
}

/** For a system call on the database's path. */
export function toFileError(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || error instanceof StorageError) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  return new StorageError(kindByErrno.get(code) ?? "unavailable", `${path}: ${error.message}`, { cause: error });
}
