// Opening outbox.db and inbox.db: checked before anything is written, then migrated. A damaged outbox stops the start
// and stays as it is; a damaged inbox is set aside, because the broker's history can rebuild it.
import { existsSync, renameSync } from "node:fs";
import { StorageError } from "@claudemesh/storage/errors";
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import type { Log } from "../../ports.ts";
import { StartRefused } from "../../start-refused.ts";
import { backfillSearch } from "./inbox-search.ts";
import { setRebuildAfter } from "./inbox-store.ts";
import { findProblemsReadOnly } from "./look-for-damage.ts";

export type OpenDatabase = { readonly db: Sqlite; readonly schema: number };

export function outboxMigrations(): Migration[] {
  return loadMigrations("daemon-outbox", new URL("./migrations/outbox/", import.meta.url));
}

export function inboxMigrations(): Migration[] {
  return loadMigrations("daemon-inbox", new URL("./migrations/inbox/", import.meta.url));
}

/** Where `daemon recover` builds a fresh outbox; while it is there, the one beside it is not to be used. */
export function recoveringPath(outboxDb: string): string {
  return `${outboxDb}.recovering`;
}

export async function openOutboxDatabase(path: string, find = findProblemsReadOnly): Promise<OpenDatabase> {
  if (existsSync(recoveringPath(path))) {
    const message = `A recovery of ${path} was cut off; run \`claudemesh daemon recover\` again to finish it.`;
    throw new StartRefused("outbox_corrupt", message);
  }
  const problems = existsSync(path) ? find(path, "full") : [];
  if (problems.length > 0) {
    throw new StartRefused(
      "outbox_corrupt",
      `${path} is damaged (${problems[0]}) and nothing in it was changed. \`claudemesh daemon recover\` saves what can be read and sets the damaged file aside; or restore outbox.db from a backup.`,
    );
  }
  return migrated(openSqlite({ path }), outboxMigrations());
}

/** `setAside` is where a damaged inbox went. */
export async function openInboxDatabase(
  path: string,
  timestamp: string,
  log: Log,
  find = findProblemsReadOnly,
): Promise<OpenDatabase & { readonly setAside: string | undefined }> {
  const problems = existsSync(path) ? find(path, "quick") : [];
  if (problems.length === 0) {
    const opened = await migrated(openSqlite({ path }), inboxMigrations());
    backfillSearch(opened.db);
    return { ...opened, setAside: undefined };
  }
  const setAside = `${path}.corrupt-${timestamp}`;
  for (const suffix of ["-wal", "-shm", ""]) renameIfPresent(path + suffix, setAside + suffix);
  log.warn(
    { event: "inbox_corruption_recovered", set_aside: setAside, problem: problems[0] },
    "the inbox was damaged; it is set aside and will be rebuilt from the broker's history",
  );
  const opened = await migrated(openSqlite({ path }), inboxMigrations());
  opened.db.transaction(() => setRebuildAfter(opened.db, 0));
  return { ...opened, setAside };
}

async function migrated(db: Sqlite, migrations: readonly Migration[]): Promise<OpenDatabase> {
  try {
    await migrateSqlite(db, migrations);
  } catch (error) {
    db.close();
    const newer = error instanceof StorageError && (error.kind === "schema_newer" || error.kind === "schema_changed");
    if (newer) throw new StartRefused("schema_newer", `${db.path}: ${error.message}.`, error);
    throw error;
  }
  return { db, schema: migrations.length };
}

function renameIfPresent(from: string, to: string): void {
  if (existsSync(from)) renameSync(from, to);
}
