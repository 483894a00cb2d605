// Brings a database up to the schema that this build knows, one transaction per migration, also where other processes do
// the same at once.
import { StorageError } from "../storage-error.ts";
import {
  assertMigrationList,
  chooseNextMigration,
  labelOf,
  type Migration,
  type MigrationStore,
} from "./migrations.ts";

/** Returns what this call ran. Every step looks at the ledger anew, since another process may have gone ahead. */
export async function runMigrations(store: MigrationStore, known: readonly Migration[]): Promise<Migration[]> {
  assertMigrationList(known);
  const applied: Migration[] = [];
  for (;;) {
    const migration = await applyNext(store, known);
    if (migration === undefined) return applied;
    applied.push(migration);
  }
}

async function applyNext(store: MigrationStore, known: readonly Migration[]): Promise<Migration | undefined> {
  let chosen: Migration | undefined;
  try {
    return await store.applyNext((ledger) => {
      chosen = chooseNextMigration(known, ledger);
      return chosen;
    });
  } catch (error) {
    if (chosen === undefined || !(error instanceof StorageError)) throw error;
    const options = error.constraint === undefined ? { cause: error } : { cause: error, constraint: error.constraint };
    throw new StorageError(error.kind, `${labelOf(chosen)} failed: ${error.message}`, options);
  }
}
