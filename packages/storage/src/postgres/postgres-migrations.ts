// Migrations on PostgreSQL. An advisory lock, held by each step's transaction, lets many brokers start at once and each
// migration run once. The ledger has a schema of its own, since it is there before any package's.
import {
  checksumOf,
  type LedgerRow,
  type Migration,
  type MigrationStore,
  planMigrations,
} from "../migrations/migrations.ts";
import { runMigrations } from "../migrations/run-migrations.ts";
import type { Postgres, PostgresTransaction } from "./postgres.ts";

/** Any constant that no other program on the server uses for another lock. */
const lockKey = 0x636c_6d73;

/** Returns what this call ran, in order. */
export async function migratePostgres(postgres: Postgres, migrations: readonly Migration[]): Promise<Migration[]> {
  return runMigrations(postgresMigrationStore(postgres), migrations);
}

/** What `migratePostgres` would run now. Reads, and changes nothing. */
export async function pendingPostgresMigrations(
  postgres: Postgres,
  migrations: readonly Migration[],
): Promise<Migration[]> {
  const [row] = await postgres.read<{ present: boolean }>(presentText);
  return planMigrations(migrations, row?.present === true ? await postgres.read<LedgerRow>(ledgerText) : []);
}

const presentText = "SELECT to_regclass('claudemesh.schema_migration') IS NOT NULL AS present";
const ledgerText = "SELECT package, number, name, checksum FROM claudemesh.schema_migration ORDER BY package, number";

function postgresMigrationStore(postgres: Postgres): MigrationStore {
  return {
    applyNext(choose) {
      // Waiting for another migrator, and rewriting a large table, both take as long as they take.
      return postgres.transaction((tx) => applyNext(tx, choose), { statementTimeoutMs: 0 });
    },
  };
}

async function applyNext(
  tx: PostgresTransaction,
  choose: (ledger: LedgerRow[]) => Migration | undefined,
): Promise<Migration | undefined> {
  await tx.query("SELECT pg_advisory_xact_lock($1)", [lockKey]);
  await ensureLedger(tx);
  const ledger = await tx.query<LedgerRow>(ledgerText);
  const migration = choose(ledger);
  if (migration === undefined) return undefined;
  await tx.script(migration.sql);
  await tx.execute(
    "INSERT INTO claudemesh.schema_migration (package, number, name, checksum) VALUES ($1, $2, $3, $4)",
    [migration.package, migration.number, migration.name, checksumOf(migration)],
  );
  return migration;
}

// IF NOT EXISTS alone asks for the right to create even where there is nothing to create.
async function ensureLedger(tx: PostgresTransaction): Promise<void> {
  const [row] = await tx.query<{ present: boolean }>(presentText);
  if (row?.present === true) return;
  await tx.script(`
    CREATE SCHEMA IF NOT EXISTS claudemesh;
    CREATE TABLE claudemesh.schema_migration (
      package text NOT NULL,
      number integer NOT NULL,
      name text NOT NULL,
      checksum text NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now(),
      PRIMARY KEY (package, number)
    )`);
}
