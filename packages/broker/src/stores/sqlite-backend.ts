// The embedded backend: one SQLite file that this process holds alone, with the limiter in it.
import { closeSync, lstatSync, mkdirSync, openSync, readSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { createSqliteBrokersStore } from "@claudemesh/members/brokers-sqlite";
import { createSqliteMembersStore, membersMigrations } from "@claudemesh/members/sqlite";
import { createSqliteMessagesStore, messagesMigrations } from "@claudemesh/messages/sqlite";
import { createSqliteByteLedger } from "@claudemesh/messages/sqlite-byte-ledger";
import { createSqliteLimiter } from "@claudemesh/messages/sqlite-limiter";
import { acceptCommitSends } from "@claudemesh/messages/sqlite-sends";
import { createSqliteOnceStore } from "@claudemesh/registrar/once-sqlite";
import { createSqliteRegistrarStore } from "@claudemesh/registrar/sqlite";
import { registrarMigrations } from "@claudemesh/registrar/sqlite-migrations";
import { createSqliteRegistrarRules } from "@claudemesh/registrar/sqlite-rules";
import type { SpacesStore } from "@claudemesh/spaces/ports";
import { createSqliteSpacesStore, spacesMigrations } from "@claudemesh/spaces/sqlite";
import { createSqliteSpaceRules } from "@claudemesh/spaces/sqlite-rules";
import { createSyncCommitHooks } from "@claudemesh/storage/commit-hooks";
import { StorageError } from "@claudemesh/storage/errors";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { acquireInstanceLock, type InstanceLock } from "@claudemesh/storage/instance-lock";
import type { Migration } from "@claudemesh/storage/migrations";
import { proveRoom } from "@claudemesh/storage/prove-room";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { Checkpointer, checkpointPagesBesideThread } from "@claudemesh/storage/sqlite-checkpointer";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { ensureBrokerSeedFile } from "../broker-key.ts";
import type { Backend, BackendSurroundings } from "./backend.ts";
import { createQuietLog } from "./quiet-log.ts";
import { createStoreClock } from "./store-clock.ts";

/** How every SQLite database begins. */
const sqliteHead = Buffer.from("SQLite format 3\0");

/** The upper levels of every tree, and leaves, of a store with millions of rows. */
const cacheBytes = 32 * 1_048_576;

/** The largest frame, once as a row and once more for its indexes and search words. */
const acceptBytes = 3 * 1_048_576;

export function sqliteMigrations(): Migration[] {
  return [...membersMigrations(), ...messagesMigrations(), ...registrarMigrations(), ...spacesMigrations()];
}

export async function openSqliteBackend(surroundings: BackendSurroundings, givenPath: string): Promise<Backend> {
  const { config, failpoints, log } = surroundings;
  const path = resolve(givenPath);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const lock = await lockStore(path);
  let db: Sqlite | undefined;
  let brokerSeed: string;
  try {
    refuseForeignFile(path);
    db = openSqlite({ path, cacheBytes, checkpointPages: checkpointPagesBesideThread });
    await migrateSqlite(db, sqliteMigrations());
    brokerSeed = ensureBrokerSeedFile(`${path}.broker-key`);
  } catch (error) {
    db?.close();
    lock.release();
    throw error;
  }
  const opened = db;
  const onFailure = createQuietLog((error, times) =>
    log.warn({ event: "checkpoint_failed", err: error, times }, "moving the store's log into its file failed"),
  );
  const checkpointer = new Checkpointer(opened, { onFailure });
  const commit = new GroupCommit(opened, {
    gathersTurns: true,
    hooks: createSyncCommitHooks(failpoints),
    onCommitted: (jobs) => checkpointer.committed(jobs),
  });
  const members = createSqliteMembersStore(opened, commit);
  const messages = createSqliteMessagesStore(opened, commit, config.rateLimit);
  const brokers = createSqliteBrokersStore(opened, commit);
  let spentThenRefused = 0;
  const accept: typeof messages.accepts.accept = async (send) => {
    const committed = await messages.accepts.accept(send);
    if (committed.result.type === "refused" && committed.budgetSpent === true) spentThenRefused++;
    return committed;
  };
  return {
    members,
    messages: { ...messages, accepts: { ...messages.accepts, accept } },
    once: createSqliteOnceStore(opened, commit),
    registrar: createSqliteRegistrarStore(opened, commit),
    spaces: createSqliteSpaces(opened, commit),
    otherRules: sqliteRules(opened),
    sendLimits: {
      limiter: createSqliteLimiter(commit, config.rateLimit),
      limits: { whenUnavailable: "refuse", onPassedUncounted: () => undefined },
    },
    byteLedger: createSqliteByteLedger(commit),
    location: path,
    adminTokenFile: resolve(config.adminTokenFile ?? `${path}.admin-token`),
    brokerSeed,
    brokers,
    proveRoom: () => proveRoom(path, acceptBytes),
    // It shares the store's file.
    writeLimiter: async () => true,
    nowMs: createStoreClock(await brokers.lastSeenMs(), surroundings.time),
    // This limiter shares the store's file, so it is never away by itself.
    counts: () => ({ limiterPassedUncounted: 0, limiterSpentThenRefused: spentThenRefused }),
    sideBySide: undefined,
    close: async () => {
      commit.close();
      await checkpointer.close();
      opened.close();
      lock.release();
    },
  };
}

async function lockStore(path: string): Promise<InstanceLock> {
  try {
    return await acquireInstanceLock(`${path}.lock`);
  } catch (error) {
    if (!(error instanceof StorageError) || error.kind !== "locked") throw error;
    const message = `Another broker serves ${path}. Stop it, or give this one another --store; several brokers share a PostgreSQL.`;
    throw new StorageError("locked", message, { cause: error });
  }
}

/** Opening makes a file private, and a file of another program must stay as it is. This process must not have it open. */
export function refuseForeignFile(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isFile() !== true || stats.size === 0) return;
  const file = openSync(path, "r");
  const head = Buffer.alloc(sqliteHead.length);
  try {
    readSync(file, head);
  } finally {
    closeSync(file);
  }
  if (head.equals(sqliteHead)) return;
  throw new StorageError("corrupt", `${path} is no SQLite database and was left as it is; is --store right?`);
}

/** Of every package but messages, which brings its own with its store. */
export function sqliteRules(db: Sqlite): RuleStore[] {
  return [createSqliteRegistrarRules(db), createSqliteSpaceRules(db)];
}

/** Sends of commits are accepted in their transaction. */
export function createSqliteSpaces(db: Sqlite, commit: GroupCommit): SpacesStore {
  return createSqliteSpacesStore(db, commit, {
    acceptSends: (tx, _meshId, sends) => acceptCommitSends(tx, sends),
  });
}
