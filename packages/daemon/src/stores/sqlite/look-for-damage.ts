// Is a database file damaged? Looked at without changing it. SQLite reports a page that could not be read like a page that
// is wrong, and a disk may fail one read and not the next; so only what two looks agree on, between which the whole file
// could be read, counts as damage. A file that cannot be read is no finding at all.
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { StorageError } from "@claudemesh/storage/errors";
import { openSqliteReadOnly } from "@claudemesh/storage/sqlite";
import { findIntegrityProblems, type IntegrityDepth } from "@claudemesh/storage/sqlite-integrity";

/** One problem in words each; none: as far as could be seen it is sound. Throws where that cannot be decided. */
export type Look = (path: string, depth: IntegrityDepth) => string[];

/** How often a disk may fail before it counts as one that cannot be read. */
export const readTriesMax = 6;
const chunkBytes = 1_048_576;

export function findProblemsReadOnly(
  path: string,
  depth: IntegrityDepth,
  look: Look = lookOnce,
  readThrough: (path: string) => void = readWholeFile,
): string[] {
  let seen: string | undefined;
  let failure: unknown;
  for (let looks = 0; looks < readTriesMax; looks++) {
    try {
      const problems = look(path, depth);
      if (problems.length === 0) return [];
      const text = problems.join("\n");
      if (text === seen) return problems;
      seen = text;
      readThrough(path);
    } catch (error) {
      if (!isReadFailure(error)) throw error;
      failure = error;
      seen = undefined;
    }
  }
  const why = failure instanceof Error ? failure.message : "each look finds something else";
  throw unreadable(path, why, failure);
}

export function unreadable(path: string, why: string, cause: unknown): StorageError {
  const message = `${path} could not be read in ${readTriesMax} tries (${why}); nothing was changed`;
  return new StorageError("io", message, { cause });
}

/** Read-only, so that looking at a damaged file leaves it and its log as they are. */
function lookOnce(path: string, depth: IntegrityDepth): string[] {
  try {
    const db = openSqliteReadOnly(path);
    try {
      return findIntegrityProblems(db, depth);
    } finally {
      db.connection.close();
    }
  } catch (error) {
    if (error instanceof StorageError && error.kind === "corrupt") return [error.message];
    throw error;
  }
}

/** What SQLite would read, and its log: a disk that fails shows here as an error and not as a wrong page. */
function readWholeFile(path: string): void {
  const buffer = Buffer.allocUnsafe(chunkBytes);
  for (const file of [path, `${path}-wal`]) {
    if (!existsSync(file)) continue;
    const descriptor = openSync(file, "r");
    try {
      while (readSync(descriptor, buffer) > 0);
    } finally {
      closeSync(descriptor);
    }
  }
}

function isReadFailure(error: unknown): boolean {
  if (error instanceof StorageError) return error.kind === "io";
  return (error as { code?: unknown } | undefined)?.code === "EIO";
}
