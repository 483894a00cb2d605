// What can be done with a broker's store from outside: check, prove, sweep, count, migrate, back up.
import { existsSync, mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { MeshStats } from "@claudemesh/messages/ports/stats";
import { checkAllOrphans, type OrphanReport } from "@claudemesh/messages/services/check-orphans";
import { inspectPostgresSurface } from "@claudemesh/registrar/postgres";
import { inspectSqliteSurface } from "@claudemesh/registrar/sqlite";
import { proveSurface, type SurfaceProof } from "@claudemesh/registrar/surface";
import type { Migration } from "@claudemesh/storage/migrations";
import { migratePostgres, pendingPostgresMigrations } from "@claudemesh/storage/postgres-migrations";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { backUpSqlite } from "@claudemesh/storage/sqlite-backup";
import { migrateSqlite, pendingSqliteMigrations } from "@claudemesh/storage/sqlite-migrations";
import { addSwept, type Swept, sweepEverything } from "../background/sweep-everything.ts";
import { type BrokerConfig, dedupeRetentionMs, locationOf, messageRetentionMs, type StoreConfig } from "../config.ts";
import { postgresMigrations } from "../stores/postgres-backend.ts";
import { sqliteMigrations } from "../stores/sqlite-backend.ts";
import { withLock, withOfflineStore, withPostgres, withSqlite } from "./open-store.ts";

export type { OrphanReport } from "@claudemesh/messages/services/check-orphans";

export function checkStore(store: StoreConfig): Promise<OrphanReport> {
  return withOfflineStore(store, "read", ({ messages, otherRules: others }) =>
    checkAllOrphans({ store: messages, others, nowMs: Date.now }),
  );
}

/**
 * The registrar's proof for a store that is named and not served: looks at the live schema, changes nothing, and takes no
 * lock, so that it may run beside a broker.
 */
export async function proveStore(store: StoreConfig): Promise<SurfaceProof> {
  const facts =
    store.kind === "sqlite"
      ? await withSqlite(locationOf(store), async (db) => inspectSqliteSurface(db))
      : await withPostgres(store.url, inspectPostgresSurface);
  return proveSurface(facts);
}

export function sweepStore(config: Pick<BrokerConfig, "store" | "dedupe" | "messageRetention">): Promise<Swept> {
  return withOfflineStore(config.store, "change", async ({ messages, spaces }) => {
    const ports = {
      // A limiter's window may be longer than is known here, and its broker sweeps it every few seconds.
      store: { ...messages, sweepLimiter: async () => 0 },
      nowMs: Date.now,
      messageRetentionMs: messageRetentionMs(config),
      dedupeRetentionMs: dedupeRetentionMs(config),
    };
    let total: Swept = {};
    for await (const swept of sweepEverything({ messages: ports, spaces }, { forgetting: true })) {
      total = addSwept(total, swept);
    }
    return total;
  });
}

export type StoreStats = {
  readonly location: string;
  readonly sizeBytes: number;
  readonly meshes: readonly (MeshStats & { readonly name: string; readonly id: string })[];
};

const meshesPerPage = 256;

export function statsOfStore(store: StoreConfig): Promise<StoreStats> {
  return withOfflineStore(store, "read", async ({ members, messages, location }) => {
    const nowMs = Date.now();
    const meshes: StoreStats["meshes"][number][] = [];
    let after = "";
    for (;;) {
      const ids = await messages.housekeeping.meshes(after, meshesPerPage);
      for (const id of ids) {
        const name = (await members.findMesh(id))?.name ?? "";
        meshes.push({ name, id, ...(await messages.stats.ofMesh(id, nowMs)) });
      }
      const last = ids.at(-1);
      if (last === undefined) break;
      after = last;
    }
    return { location, sizeBytes: await messages.stats.sizeBytes(), meshes };
  });
}

/** Returns what has run, or would. A SQLite file that is not there is made. */
export async function migrateStore(store: StoreConfig, options: { readonly dryRun: boolean }): Promise<Migration[]> {
  if (store.kind === "postgres") {
    const run = options.dryRun ? pendingPostgresMigrations : migratePostgres;
    return withPostgres(store.url, (postgres) => run(postgres, postgresMigrations()));
  }
  const path = locationOf(store);
  if (options.dryRun) {
    if (!existsSync(path)) return sqliteMigrations();
    return withSqlite(path, async (db) => pendingSqliteMigrations(db, sqliteMigrations()));
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return withLock(path, async () => {
    const db = openSqlite({ path });
    try {
      return await migrateSqlite(db, sqliteMigrations());
    } finally {
      db.close();
    }
  });
}

export type BackUpOutcome =
  | { readonly type: "copied"; readonly file: string; readonly bytes: number }
  /** PostgreSQL has a tool of its own, and this is how to call it. */
  | { readonly type: "use_pg_dump"; readonly command: string };

/** One moment of a SQLite store in a file that only its owner can read and that must not exist, also under a broker. */
export async function backUpStore(store: StoreConfig, file: string): Promise<BackUpOutcome> {
  const target = resolve(file);
  if (store.kind === "postgres") return { type: "use_pg_dump", command: pgDumpCommand(store.url, target) };
  return withSqlite(locationOf(store), async (db) => {
    await backUpSqlite(db, target);
    return { type: "copied", file: target, bytes: statSync(target).size };
  });
}

/** Without the password: pg_dump takes that from PGPASSWORD or ~/.pgpass. */
function pgDumpCommand(url: string, target: string): string {
  const shown = new URL(url);
  shown.password = "";
  for (const name of ["password", "sslpassword"]) shown.searchParams.delete(name);
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const schemas = "--schema=mesh --schema=claudemesh";
  // The dump holds bodies and webhooks' secrets, and pg_dump makes files that all users can read.
  return `(umask 077; pg_dump --format=custom ${schemas} --file=${quote(target)} ${quote(shown.href)})`;
}
