// Reading what can still be read of a table in a damaged database. A broken page ends a scan, so a table is entered from
// both ends and through every whole index, and each row is then looked up on its own. Nothing is ever written. A read that
// the disk failed is no broken page: it is tried again, and a disk that goes on failing ends the reading.
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { readTriesMax, unreadable } from "./look-for-damage.ts";

/** Another process may be reading the file. */
const busyTimeoutMs = 5_000;

/** SQLITE_IOERR; what kind of one stands above the low byte. */
const sqliteIoError = 10;

export type DamagedTable = {
  readonly name: string;
  /** `rowid`, or the primary key of a table without one. */
  readonly key: string;
  /** A column by which people know a row, where an index holds it. */
  readonly label?: string;
};

/** `no_table`: the schema has no such table, or cannot be read itself. */
export type DamagedRead = { readonly type: "no_table" } | ({ readonly type: "rows" } & DamagedRows);

type DamagedRows = {
  readonly columns: readonly string[];
  readonly rows: Iterable<Readonly<Record<string, unknown>>>;
  /** Rows that something still points to and that cannot be read; complete once `rows` has been gone through. */
  readonly unreadable: () => { readonly count: number; readonly labels: readonly string[] };
};

/** A gap between two readable stretches is looked into key by key, up to this many. */
const probesMax = 2_000_000;

type Key = SQLInputValue;

export function openDamaged(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { readOnly: true, timeout: busyTimeoutMs });
  // One broken line of the schema does not hide the others.
  attempt(() => db.exec("PRAGMA writable_schema = ON"));
  return db;
}

export function readDamagedTable(db: DatabaseSync, table: DamagedTable): DamagedRead {
  const columns = readColumns(db, table.name);
  if (columns === undefined) return { type: "no_table" };
  const keys = collectKeys(db, table);
  const lost: (string | undefined)[] = [];
  return {
    type: "rows",
    columns,
    rows: lookUpRows(db, table, columns, keys, lost),
    unreadable: () => ({ count: lost.length, labels: lost.filter((label) => label !== undefined) }),
  };
}

function readColumns(db: DatabaseSync, table: string): string[] | undefined {
  const names = attempt(() =>
    db
      .prepare(`PRAGMA table_info("${table}")`)
      .all()
      .map(({ name }) => String(name)),
  );
  return names === undefined || names.length === 0 ? undefined : names;
}

function* lookUpRows(
  db: DatabaseSync,
  table: DamagedTable,
  columns: readonly string[],
  keys: FoundKeys,
  lost: (string | undefined)[],
): Generator<Readonly<Record<string, unknown>>> {
  const list = columns.map((column) => `"${column}"`).join(", ");
  const statement = attempt(() => db.prepare(`SELECT ${list} FROM "${table.name}" WHERE ${table.key} = ?`));
  for (const [key, label] of keys.certain) {
    const row = attempt(() => statement?.get(key));
    if (row === undefined) lost.push(label);
    else yield row;
  }
  for (const key of keys.possible()) {
    const row = attempt(() => statement?.get(key));
    if (row !== undefined) yield row;
  }
}

type FoundKeys = {
  /** Keys that the table or an index names, with the label where one is known. */
  readonly certain: ReadonlyMap<Key, string | undefined>;
  /** Keys between those that may exist as well. */
  readonly possible: () => Generator<number>;
};

function collectKeys(db: DatabaseSync, table: DamagedTable): FoundKeys {
  const certain = new Map<Key, string | undefined>();
  const { name, key } = table;
  const ahead = scanKeys(db, `SELECT ${key} AS key FROM "${name}" NOT INDEXED ORDER BY ${key}`, certain);
  const back = ahead.isWhole
    ? ahead
    : scanKeys(db, `SELECT ${key} AS key FROM "${name}" NOT INDEXED ORDER BY ${key} DESC`, certain);
  for (const index of wholeIndexes(db, name)) {
    const label = index.columns.find((column) => column === table.label) ?? "NULL";
    const order = index.columns.map((column) => `"${column}"`);
    const select = `SELECT ${key} AS key, ${label} AS label FROM "${name}" INDEXED BY "${index.name}" ORDER BY`;
    if (scanKeys(db, `${select} ${order.join(", ")}`, certain).isWhole) continue;
    scanKeys(db, `${select} ${order.map((column) => `${column} DESC`).join(", ")}`, certain);
  }
  return {
    certain,
    possible: function* () {
      if (ahead.isWhole) return;
      const from = typeof ahead.last === "number" ? ahead.last + 1 : undefined;
      const to = typeof back.last === "number" ? back.last : undefined;
      if (key !== "rowid" || from === undefined || to === undefined) return;
      for (let probe = from; probe < to && probe - from < probesMax; probe++) if (!certain.has(probe)) yield probe;
    },
  };
}

/** Goes as far as it comes. */
function scanKeys(
  db: DatabaseSync,
  sql: string,
  keys: Map<Key, string | undefined>,
): { readonly isWhole: boolean; readonly last: Key | undefined } {
  let last: Key | undefined;
  const isWhole = attempt(() => {
    for (const { key, label } of db.prepare(sql).iterate()) {
      if (key === null || key === undefined) continue;
      last = key;
      keys.set(key, typeof label === "string" ? label : keys.get(key));
    }
    return true;
  });
  return { isWhole: isWhole === true, last };
}

/** Indexes that name every row; partial ones name some, and an expression is no column. */
function wholeIndexes(db: DatabaseSync, table: string): { readonly name: string; readonly columns: string[] }[] {
  const list = attempt(() => db.prepare(`PRAGMA index_list("${table}")`).all()) ?? [];
  return list
    .filter(({ partial }) => partial === 0)
    .map(({ name }) => ({
      name: String(name),
      columns: (attempt(() => db.prepare(`PRAGMA index_info("${String(name)}")`).all()) ?? []).map((info) =>
        String(info.name),
      ),
    }))
    .filter(({ columns }) => columns.length > 0);
}

/** Undefined where the database could not do it: whatever SQLite says of a damaged page, it is one thing here. */
function attempt<R>(read: () => R): R | undefined {
  for (let tries = 1; ; tries++) {
    try {
      return read();
    } catch (error) {
      const { code, errcode } = (error ?? {}) as { code?: unknown; errcode?: unknown };
      if (code !== "ERR_SQLITE_ERROR" && code !== "ERR_OUT_OF_RANGE") throw error;
      if (typeof errcode !== "number" || (errcode & 0xff) !== sqliteIoError) return undefined;
      if (tries === readTriesMax) throw unreadable("The damaged outbox", (error as Error).message, error);
    }
  }
}
