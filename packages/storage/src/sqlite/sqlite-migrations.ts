// Migrations on SQLite. BEGIN IMMEDIATE keeps other migrators out, and the ledger is a table like any other.

import {
  checksumOf,
  type LedgerRow,
  type Migration,
  type MigrationStore,
  planMigrations,
} from "../migrations/migrations.ts";
import { runMigrations } from "../migrations/run-migrations.ts";
import { StorageError } from "../storage-error.ts";
import type { Sqlite } from "./sqlite.ts";

/** Returns what this call ran, in order. */
export async function migrateSqlite(db: Sqlite, migrations: readonly Migration[]): Promise<Migration[]> {
  return runMigrations(sqliteMigrationStore(db), migrations);
}

/** What `migrateSqlite` would run now. Reads, and changes nothing. */
export function pendingSqliteMigrations(db: Sqlite, migrations: readonly Migration[]): Migration[] {
  const present = db.sql("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_migration'").get();
  return planMigrations(migrations, present === undefined ? [] : readLedger(db));
}

function readLedger(db: Sqlite): LedgerRow[] {
  return db
    .sql<LedgerRow>("SELECT package, number, name, checksum FROM schema_migration ORDER BY package, number")
    .all();
}

function sqliteMigrationStore(db: Sqlite): MigrationStore {
  return {
    async applyNext(choose) {
      return withoutForeignKeys(db, () => db.transaction(() => applyNext(db, choose)));
    },
  };
}

function applyNext(db: Sqlite, choose: (ledger: LedgerRow[]) => Migration | undefined): Migration | undefined {
  db.exec(`CREATE TABLE IF NOT EXISTS schema_migration (
    package TEXT NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (package, number)
  ) STRICT, WITHOUT ROWID`);
  const migration = choose(readLedger(db));
  if (migration === undefined) return undefined;
  db.exec(migration.sql);
  assertForeignKeys(db);
  db.sql("INSERT INTO schema_migration (package, number, name, checksum) VALUES (?, ?, ?, ?)").run(
    migration.package,
    migration.number,
    migration.name,
    checksumOf(migration),
  );
  return migration;
}

// SQLite alters most things by building a new table and dropping the old one, and with enforcement on the drop deletes
// what refers to it. Enforcement cannot be switched inside a transaction, so it is off around it and checked within.
function withoutForeignKeys<R>(db: Sqlite, body: () => R): R {
  enforceForeignKeys(db, false);
  try {
    return body();
  } finally {
    enforceForeignKeys(db, true);
  }
}

function enforceForeignKeys(db: Sqlite, enforced: boolean): void {
  db.exec(`PRAGMA foreign_keys = ${enforced ? "ON" : "OFF"}`);
  const row = db.sql<{ foreign_keys: number }>("PRAGMA foreign_keys").get();
  if (row?.foreign_keys === (enforced ? 1 : 0)) return;
  throw new StorageError("unavailable", `SQLite does not switch foreign keys ${enforced ? "on" : "off"}`);
}

function assertForeignKeys(db: Sqlite): void {
  const orphan = db.sql<{ table: string; parent: string }>("PRAGMA foreign_key_check").get();
  if (orphan === undefined) return;
  const message = `rows of ${orphan.table} refer to rows of ${orphan.parent} that do not exist`;
  throw new StorageError("constraint", message, { constraint: "foreign_key" });
}
