// One SQLite connection, opened so that a commit that returned is on disk, with prepared statements and transactions.
// No tables here, and no batching: several callers share one flush through GroupCommit.
import assert from "node:assert/strict";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { StorageError } from "../storage-error.ts";
import { ensurePrivateFile, fileExists, withPrivateUmask } from "./private-file.ts";
import { toSqliteError } from "./sqlite-error.ts";

export type SqliteValue = null | number | bigint | string | Uint8Array;
export type SqliteRow = Record<string, null | number | string | Uint8Array>;

export interface OpenSqliteOptions {
  /** A file, created 0600 when absent, or `:memory:` in tests. */
  path: string;
  /** Refuse, instead of creating, a file that is not there. */
  mustExist?: boolean;
  /** How long a statement waits for another process's lock. */
  busyTimeoutMs?: number;
  /** Memory for pages of the file; SQLite's own two megabytes unless given. */
  cacheBytes?: number;
  /** A commit that leaves so many pages in the log moves them into the main file; SQLite's own thousand unless given. */
  checkpointPages?: number;
}

export interface RunResult {
  changes: number;
  lastInsertRowid: number;
}

/** Values are bound by position. A number is bound as a real, which only a column without affinity would notice. */
export interface SqliteStatement<Row> {
  get(...values: SqliteValue[]): Row | undefined;
  all(...values: SqliteValue[]): Row[];
  run(...values: SqliteValue[]): RunResult;
  /** For a statement that returns no rows: like `run` for callers that do not need the number of changes, without allocating a result. */
  write(...values: SqliteValue[]): void;
}

const statementCacheSize = 512;
const busyTimeoutMsDefault = 5_000;

export function openSqlite(options: OpenSqliteOptions): Sqlite {
  const { path, busyTimeoutMs = busyTimeoutMsDefault, cacheBytes, checkpointPages, mustExist = false } = options;
  const inMemory = path === ":memory:";
  return withPrivateUmask(() => {
    if (mustExist && !inMemory && !fileExists(path)) {
      throw new StorageError("unavailable", `${path} does not exist`);
    }
    if (!inMemory) ensurePrivateFile(path);
    return new Sqlite(openConnection(path, { busyTimeoutMs, cacheBytes, checkpointPages, inMemory }), path);
  });
}

/**
 * A connection that changes nothing, not even the file's settings: for looking and copying. It waits for others like any
 * connection: after a crash the first reader recovers the log, and no other connection gets in meanwhile.
 */
export function openSqliteReadOnly(path: string): Sqlite {
  try {
    return new Sqlite(new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMsDefault }), path);
  } catch (error) {
    throw toSqliteError(error);
  }
}

export class Sqlite {
  readonly path: string;
  readonly #connection: DatabaseSync;
  readonly #statements = new Map<string, Statement<unknown>>();
  readonly #tupleStatements = new Map<string, Statement<unknown>>();
  readonly #begin: StatementSync;
  readonly #beginReading: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  #transactions = 0;

  /** Takes a connection whose settings are checked; everyone else calls openSqlite. */
  constructor(connection: DatabaseSync, path: string) {
    this.path = path;
    this.#connection = connection;
    this.#begin = connection.prepare("BEGIN IMMEDIATE");
    this.#beginReading = connection.prepare("BEGIN DEFERRED");
    this.#commit = connection.prepare("COMMIT");
    this.#rollback = connection.prepare("ROLLBACK");
  }

  /** Counts the transactions that were begun here: what was made in one is not taken for another's. */
  get transactionNumber(): number {
    return this.#transactions;
  }

  get isTransaction(): boolean {
    return this.#connection.isOpen && this.#connection.isTransaction;
  }

  /** The driver's own object, for what this class does not offer (backup). */
  get connection(): DatabaseSync {
    return this.#connection;
  }

  /** The prepared statement for one SQL text. The least recently prepared one makes room when there are too many. */
  sql<Row = SqliteRow>(text: string): SqliteStatement<Row> {
    const statement = this.#statements.get(text) ?? this.#prepare(this.#statements, text, false);
    return statement as SqliteStatement<Row>;
  }

  /** The same with each row as its columns' values in their order: for what is read so often that names cost too much. */
  sqlTuples<Row extends readonly unknown[]>(text: string): SqliteStatement<Row> {
    const statement = this.#tupleStatements.get(text) ?? this.#prepare(this.#tupleStatements, text, true);
    return statement as SqliteStatement<Row>;
  }

  #prepare(cache: Map<string, Statement<unknown>>, text: string, returnsArrays: boolean): Statement<unknown> {
    const prepared = prepareOne(this.#connection, text);
    prepared.setReturnArrays(returnsArrays);
    const statement = new Statement(prepared);
    if (cache.size >= statementCacheSize) {
      const oldest = cache.keys().next();
      if (oldest.done !== true) cache.delete(oldest.value);
    }
    cache.set(text, statement);
    return statement;
  }

  /** Runs a script of any number of statements without values. */
  exec(script: string): void {
    try {
      this.#connection.exec(script);
    } catch (error) {
      throw toSqliteError(error);
    }
  }

  /** All or nothing: `body` is committed and on disk when this returns, or rolled back when this throws. */
  transaction<R>(body: () => R): R {
    return this.#transact(this.#begin, body);
  }

  /** What `body` reads is the state of one moment, and the file is locked for it once. */
  snapshot<R>(body: () => R): R {
    return this.#transact(this.#beginReading, body);
  }

  #transact<R>(begin: StatementSync, body: () => R): R {
    assert(!this.isTransaction, "transactions do not nest");
    try {
      begin.run();
    } catch (error) {
      throw toSqliteError(error);
    }
    this.#transactions += 1;
    try {
      const result = body();
      assert(!(result instanceof Promise), "a transaction body is synchronous: what it awaits would run after COMMIT");
      assert(this.#connection.isTransaction, "the transaction body ended the transaction");
      this.#commit.run();
      return result;
    } catch (error) {
      this.#rollBackAfter();
      throw toSqliteError(error);
    }
  }

  /** Moves the log into the main file if no reader is in the way; when it stays, the next open reads it. */
  close(): { checkpointed: boolean } {
    if (!this.#connection.isOpen) return { checkpointed: false };
    let checkpointed = false;
    try {
      checkpointed = this.#connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
    } catch (error) {
      // Nothing is lost with the log left where it is, and a full disk must not keep a process from ending cleanly.
      if (!(toSqliteError(error) instanceof StorageError)) throw error;
    } finally {
      this.#statements.clear();
      this.#tupleStatements.clear();
      this.#connection.close();
    }
    return { checkpointed };
  }

  // A full disk or a failed write makes SQLite roll back by itself; a second ROLLBACK would hide the first error.
  #rollBackAfter(): void {
    if (!this.isTransaction) return;
    try {
      this.#rollback.run();
    } catch (error) {
      throw toSqliteError(error);
    }
  }
}

class Statement<Row> implements SqliteStatement<Row> {
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  get(...values: SqliteValue[]): Row | undefined {
    try {
      return this.#statement.get(...values) as Row | undefined;
    } catch (error) {
      throw toSqliteError(error);
    }
  }

  all(...values: SqliteValue[]): Row[] {
    try {
      return this.#statement.all(...values) as Row[];
    } catch (error) {
      throw toSqliteError(error);
    }
  }

  run(...values: SqliteValue[]): RunResult {
    try {
      return this.#statement.run(...values) as RunResult;
    } catch (error) {
      throw toSqliteError(error);
    }
  }

  write(...values: SqliteValue[]): void {
    try {
      // The first step does all of it where no row comes back; `run` would make an object to say so.
      this.#statement.get(...values);
    } catch (error) {
      throw toSqliteError(error);
    }
  }
}

// The driver compiles the first statement of a text and says nothing about the rest of it.
function prepareOne(connection: DatabaseSync, text: string): StatementSync {
  try {
    const statement = connection.prepare(text);
    const rest = text.slice(statement.sourceSQL.length).trim();
    assert(rest === "", `one statement per sql(); this would be ignored: ${rest}`);
    return statement;
  } catch (error) {
    throw toSqliteError(error);
  }
}

type ConnectionSettings = {
  readonly busyTimeoutMs: number;
  readonly cacheBytes: number | undefined;
  readonly checkpointPages: number | undefined;
  readonly inMemory: boolean;
};

function openConnection(path: string, settings: ConnectionSettings): DatabaseSync {
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(path, { timeout: settings.busyTimeoutMs, defensive: true });
    configure(connection, settings);
    return connection;
  } catch (error) {
    if (connection?.isOpen) connection.close();
    throw toSqliteError(error);
  }
}

// Every setting is read back: a pragma that SQLite does not know or cannot honour is silent, and a broker that
// flushes less than it promises must not start.
function configure(connection: DatabaseSync, given: ConnectionSettings): void {
  const { busyTimeoutMs, cacheBytes, checkpointPages, inMemory } = given;
  const settings: [name: string, value: string | number, readBack: string | number][] = [
    ["busy_timeout", busyTimeoutMs, busyTimeoutMs],
    ["trusted_schema", "OFF", 0],
    ["foreign_keys", "ON", 1],
    ["journal_mode", "WAL", inMemory ? "memory" : "wal"],
    ["synchronous", "FULL", 2],
    // On macOS fsync leaves data in the drive's cache; elsewhere these two change nothing.
    ["fullfsync", "ON", 1],
    ["checkpoint_fullfsync", "ON", 1],
  ];
  if (cacheBytes !== undefined) {
    // Below zero it counts KiB instead of pages.
    const cacheSize = -Math.floor(cacheBytes / 1024);
    settings.push(["cache_size", cacheSize, cacheSize]);
  }
  if (checkpointPages !== undefined) settings.push(["wal_autocheckpoint", checkpointPages, checkpointPages]);
  for (const [name, value, readBack] of settings) {
    connection.exec(`PRAGMA ${name} = ${value}`);
    const row = connection.prepare(`PRAGMA ${name}`).get() ?? {};
    const actual = Object.values(row)[0];
    if (actual !== readBack) {
      throw new StorageError("unavailable", `SQLite keeps ${name} at ${String(actual)} instead of ${value}`);
    }
  }
  // The first lock creates -wal and -shm, now, while the umask is ours.
  if (!inMemory) connection.exec("BEGIN IMMEDIATE; ROLLBACK");
}
