// A broker's store without a broker, for commands that look after it. A SQLite file can be read while a broker serves on
// it, and is changed only by the process that holds its lock; PostgreSQL takes any number of either.
// Why: docs/decisions/0033.
import type { MembersStore } from "@claudemesh/members/ports";
import { createPostgresMembersStore } from "@claudemesh/members/postgres";
import { createSqliteMembersStore } from "@claudemesh/members/sqlite";
import type { MessagesStore } from "@claudemesh/messages/ports";
import { createPostgresMessagesStore } from "@claudemesh/messages/postgres";
import { defaultRateLimit } from "@claudemesh/messages/rate-limit";
import { createSqliteMessagesStore } from "@claudemesh/messages/sqlite";
import { MeshError } from "@claudemesh/protocol/errors";
import type { SpacesStore } from "@claudemesh/spaces/ports";
import { StorageError } from "@claudemesh/storage/errors";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { acquireInstanceLock, type InstanceLock } from "@claudemesh/storage/instance-lock";
import { openPostgres, type Postgres } from "@claudemesh/storage/postgres";
import { pendingPostgresMigrations } from "@claudemesh/storage/postgres-migrations";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { pendingSqliteMigrations } from "@claudemesh/storage/sqlite-migrations";
import { locationOf, type StoreConfig } from "../config.ts";
import { createPostgresSpaces, postgresMigrations, postgresRules } from "../stores/postgres-backend.ts";
import { createSqliteSpaces, refuseForeignFile, sqliteMigrations, sqliteRules } from "../stores/sqlite-backend.ts";

export type OfflineStore = {
  readonly members: MembersStore;
  readonly messages: MessagesStore;
  readonly spaces: SpacesStore;
  /** What must hold between rows, beside the rules of messages. */
  readonly otherRules: readonly RuleStore[];
  /** As it may be shown. */
  readonly location: string;
};

/** `change`: the store is written to, so that no embedded broker may be on it. */
export type Access = "read" | "change";

/** Lets `use` work on the store, whose tables must be those of this build, and lets go of it however that ends. */
export async function withOfflineStore<T>(
  store: StoreConfig,
  access: Access,
  use: (opened: OfflineStore) => Promise<T>,
): Promise<T> {
  const location = locationOf(store);
  if (store.kind === "postgres") {
    return withPostgres(store.url, async (postgres) => {
      refuseOldSchema(location, (await pendingPostgresMigrations(postgres, postgresMigrations())).length);
      const pools = { accepting: postgres, looking: postgres, queueing: postgres, common: postgres };
      const messages = createPostgresMessagesStore(pools);
      const spaces = createPostgresSpaces({ committing: postgres, common: postgres });
      const members = createPostgresMembersStore(postgres);
      return use({ members, messages, spaces, otherRules: postgresRules(postgres), location });
    });
  }
  const work = async () =>
    withSqlite(location, async (db) => {
      refuseOldSchema(location, pendingSqliteMigrations(db, sqliteMigrations()).length);
      const commit = new GroupCommit(db);
      const messages = createSqliteMessagesStore(db, commit, defaultRateLimit);
      try {
        const spaces = createSqliteSpaces(db, commit);
        const members = createSqliteMembersStore(db, commit);
        return await use({ members, messages, spaces, otherRules: sqliteRules(db), location });
      } finally {
        commit.close();
      }
    });
  return access === "change" ? withLock(location, work) : work();
}

export async function withPostgres<T>(url: string, use: (postgres: Postgres) => Promise<T>): Promise<T> {
  const postgres = openPostgres({ url, poolSize: 2, onIdleError: () => undefined });
  try {
    return await use(postgres);
  } finally {
    await postgres.close();
  }
}

export async function withSqlite<T>(path: string, use: (db: Sqlite) => Promise<T>): Promise<T> {
  const db = openExisting(path);
  try {
    return await use(db);
  } finally {
    db.close();
  }
}

function openExisting(path: string): Sqlite {
  refuseForeignFile(path);
  try {
    return openSqlite({ path, mustExist: true });
  } catch (error) {
    if (!(error instanceof StorageError) || error.kind !== "unavailable") throw error;
    throw new MeshError("not_found", `There is no store at ${path}; name it with --store sqlite:<path>.`, {}, error);
  }
}

/** No other process changes the file meanwhile. */
export async function withLock<T>(path: string, use: () => Promise<T>): Promise<T> {
  refuseForeignFile(path);
  let lock: InstanceLock;
  try {
    lock = await acquireInstanceLock(`${path}.lock`, { waitMs: 200 });
  } catch (error) {
    if (!(error instanceof StorageError) || error.kind !== "locked") throw error;
    const message = `A broker is running on ${path}. Ask it to do this with --broker <url>, where the command takes that, or stop it first.`;
    throw new MeshError("busy", message, {}, error);
  }
  try {
    return await use();
  } finally {
    lock.release();
  }
}

function refuseOldSchema(location: string, pending: number): void {
  if (pending === 0) return;
  throw new Error(
    `${location} lacks ${pending} migrations of this build; run \`claudemesh broker migrate\` on it first.`,
  );
}
