// What a migration is, and the pure decision about which one runs next. Forward only: the ledger of a database must be
// a prefix of what this build knows, package by package. Running them is in sqlite/ and postgres/.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { StorageError } from "../storage-error.ts";

export interface Migration {
  /** Whose tables these are. The ledger is keyed by package and number. */
  package: string;
  /** From 1, without gaps. */
  number: number;
  name: string;
  /** Any number of statements. They run in one transaction, so none of them may begin or end one. */
  sql: string;
}

/** A migration that ran, as the database remembers it. */
export interface LedgerRow {
  package: string;
  number: number;
  name: string;
  checksum: string;
}

/** What the runner needs from a database. */
export interface MigrationStore {
  /**
   * In one transaction that no other migrator shares: reads the ledger (creating it when absent), lets `choose` pick,
   * runs what it picked and records it. Returns what ran. All of that is committed, or none of it.
   */
  applyNext(choose: (ledger: LedgerRow[]) => Migration | undefined): Promise<Migration | undefined>;
}

/** Line ends may differ between checkouts of the same file. */
export function checksumOf(migration: Migration): string {
  return createHash("sha256").update(migration.sql.replaceAll("\r\n", "\n")).digest("hex");
}

/** The first migration that the ledger lacks, in the order of the list. Throws where the ledger and the list part. */
export function chooseNextMigration(known: readonly Migration[], ledger: readonly LedgerRow[]): Migration | undefined {
  const knownByKey = new Map(known.map((migration) => [keyOf(migration), migration]));
  for (const row of ledger) {
    const migration = knownByKey.get(keyOf(row));
    if (migration === undefined) throw new StorageError("schema_newer", describeNewer(row, known));
    if (row.checksum !== checksumOf(migration)) {
      throw new StorageError(
        "schema_changed",
        `${labelOf(row)} ran with other statements than ${labelOf(migration)} has`,
      );
    }
  }
  const done = new Set(ledger.map(keyOf));
  for (const row of ledger) {
    const isFirst = row.number === 1;
    if (!isFirst && !done.has(keyOf({ package: row.package, number: row.number - 1 }))) {
      throw new StorageError("schema_changed", `${labelOf(row)} ran without the migration before it`);
    }
  }
  return known.find((migration) => !done.has(keyOf(migration)));
}

/** What would run on a database with this ledger, in order. Throws where the ledger and the list part. */
export function planMigrations(known: readonly Migration[], ledger: readonly LedgerRow[]): Migration[] {
  const done = [...ledger];
  const planned: Migration[] = [];
  for (;;) {
    const next = chooseNextMigration(known, done);
    if (next === undefined) return planned;
    planned.push(next);
    done.push({ package: next.package, number: next.number, name: next.name, checksum: checksumOf(next) });
  }
}

/** A wrong list is a bug of the build, found before any database is touched. */
export function assertMigrationList(migrations: readonly Migration[]): void {
  const highest = new Map<string, number>();
  for (const migration of migrations) {
    const label = labelOf(migration);
    const expected = (highest.get(migration.package) ?? 0) + 1;
    assert(migration.number === expected, `${label} comes where number ${expected} is expected`);
    // Such a line would commit half of the migration, whatever fails after it.
    assert(!/^\s*(commit|rollback|abort)\b/im.test(migration.sql), `${label} ends the transaction that it runs in`);
    highest.set(migration.package, migration.number);
  }
}

export function labelOf(row: { package: string; number: number; name: string }): string {
  return `migration ${row.package}/${String(row.number).padStart(4, "0")}-${row.name}`;
}

function describeNewer(row: LedgerRow, known: readonly Migration[]): string {
  const highest = known.filter((migration) => migration.package === row.package).length;
  const knows = highest === 0 ? "does not know that package" : `knows that package up to number ${highest}`;
  return `the database holds ${labelOf(row)} and this build ${knows}: use the newer build`;
}

function keyOf(row: { package: string; number: number }): string {
  return `${row.package}/${row.number}`;
}
