// One process per data folder: a kernel lock held through an open SQLite transaction. The kernel frees it when the
// process ends, however it ends, so there is no stale lock to recover from and no time-out that decides.
import { performance } from "node:perf_hooks";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { StorageError } from "../storage-error.ts";
import { ensurePrivateFile, withPrivateUmask } from "./private-file.ts";
import { toSqliteError } from "./sqlite-error.ts";

export interface InstanceLock {
  readonly path: string;
  /** Lets another process in; again is harmless. */
  release(): void;
}

const pollMs = 20;

/**
 * Waits up to `waitMs` for a predecessor that is about to end, then throws kind `locked`. While the lock is held,
 * nothing else in this process may open and close the file: that would drop the kernel's lock.
 */
export async function acquireInstanceLock(path: string, options: { waitMs?: number } = {}): Promise<InstanceLock> {
  const deadlineMs = performance.now() + (options.waitMs ?? 2000);
  for (;;) {
    const connection = tryLock(path);
    if (connection !== undefined) return holdLock(connection, path);
    const remainingMs = deadlineMs - performance.now();
    if (remainingMs <= 0) throw new StorageError("locked", `another process holds ${path}`);
    await sleep(Math.min(pollMs, remainingMs));
  }
}

function tryLock(path: string): DatabaseSync | undefined {
  let connection: DatabaseSync | undefined;
  try {
    connection = withPrivateUmask(() => {
      ensurePrivateFile(path);
      return new DatabaseSync(path, { timeout: 0 });
    });
    connection.exec("BEGIN EXCLUSIVE");
    return connection;
  } catch (error) {
    if (connection?.isOpen) connection.close();
    const mapped = toSqliteError(error);
    if (mapped instanceof StorageError && mapped.kind === "busy") return undefined;
    throw mapped;
  }
}

function holdLock(connection: DatabaseSync, path: string): InstanceLock {
  // A handle that its owner drops must not let the garbage collector close the connection: the timer keeps it.
  const anchor = setInterval(() => connection.isOpen, 2 ** 31 - 1);
  anchor.unref();
  return {
    path,
    release() {
      clearInterval(anchor);
      if (connection.isOpen) connection.close();
    },
  };
}
