// SpacesStore on SQLite: which function runs as a committed read and which as a job of the group commit. The database's
// one write lock is the space's lock and the session's.
import { transactionWorkMax } from "@claudemesh/protocol/spaces/work";
import type { FirstOnes, GroupCommit } from "@claudemesh/storage/group-commit";
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { type Flow, runSync } from "../../ports/flow.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpacesStore, SpaceTransaction } from "../../ports.ts";
import { cachedTransaction } from "../cached/cached-transaction.ts";
import { SpaceCache, SpaceCacheOverlay, SpaceCaches } from "../cached/space-cache.ts";
import { deleteSnapshots } from "./entity-rows.ts";
import { countRows, insertSpace, selectSpaces, updateSignedWrites } from "./session-rows.ts";
import { type AcceptSends, SharedTransaction } from "./shared-transaction.ts";
import { viewOf } from "./space-view.ts";
import { deleteUnusedSessions, selectUnusedSessions } from "./unused-sessions.ts";

export function spacesMigrations(): Migration[] {
  return loadMigrations("spaces", new URL("./migrations/", import.meta.url));
}

export type SqliteSpacesOptions = {
  /** Accepts a commit's sends inside its transaction, without limiter or batching; it may write for some and refuse. */
  readonly acceptSends: AcceptSends;
};

export function createSqliteSpacesStore(db: Sqlite, commit: GroupCommit, options: SqliteSpacesOptions): SpacesStore {
  const overlays = new OverlaysOfTransaction();
  const caches = new SpaceCaches(() => new SpaceCache());
  const runBodies = (tx: Sqlite, waiting: readonly Waiting[]) =>
    runTogether(tx, waiting, overlays, options.acceptSends);
  return {
    read: async (space, body) => runSync(body(viewOf(() => db, space))),
    transact: async <T>(space: SpaceRef, body: (tx: SpaceTransaction) => Flow<T>) => {
      const cache = caches.of(space);
      const { value, overlay } = await commit.submitItem(runBodies, { space, cache, body }, "commit");
      cache.adopt(overlay);
      return value as T;
    },
    createSpace: (space, settings, nowMs) => commit.submit((tx) => insertSpace(tx, space, settings, nowMs)),
    setSignedWrites: (space, signedWrites) => commit.submit((tx) => updateSignedWrites(tx, space, signedWrites)),
    listSpaces: async (meshId, after, limit) => selectSpaces(db, meshId, after, limit),
    count: async (meshId, what, upTo) => countRows(db, meshId, what, upTo),
    sweepSessions: async (unusedSinceMs, after) => {
      const unused = selectUnusedSessions(db, unusedSinceMs, after);
      if (unused.sessions.length === 0) return { removed: 0, next: unused.next, more: unused.next !== undefined };
      return commit.submit((tx) => deleteUnusedSessions(tx, unusedSinceMs, unused, after));
    },
    dropSnapshots: async (space) => {
      await commit.submit((tx) => deleteSnapshots(tx, space));
      // The cached states say how far back the last snapshot is, which is wrong now.
      caches.forget(space);
    },
  };
}

type Waiting = {
  readonly space: SpaceRef;
  readonly cache: SpaceCache;
  readonly body: (tx: SpaceTransaction) => Flow<unknown>;
};

type Ran = { readonly value: unknown; readonly overlay: SpaceCacheOverlay };

/**
 * Bodies that follow each other in one transaction, each space's in their order: as many of them as make work enough,
 * because nothing else runs until the transaction has ended.
 */
function runTogether(
  tx: Sqlite,
  waiting: readonly Waiting[],
  overlays: OverlaysOfTransaction,
  acceptSends: AcceptSends,
): FirstOnes<Ran> {
  const shared = new Map<string, Shared>();
  const firstOnes: Ran[] = [];
  let work = 0;
  for (const { space, cache, body } of waiting) {
    if (work >= transactionWorkMax) break;
    // The cache of a space may be forgotten and made anew between two of its bodies: it is no name for the space.
    const key = `${space.meshId}/${space.spaceId}`;
    let on = shared.get(key);
    if (on === undefined) {
      const rows = new SharedTransaction(tx, space, acceptSends);
      const overlay = overlays.of(tx.transactionNumber, cache);
      on = { rows, overlay, body: cachedTransaction(rows.body, overlay) };
      shared.set(key, on);
    }
    const before = on.rows.work;
    firstOnes.push({ value: runSync(body(on.body)), overlay: on.overlay });
    work += on.rows.work - before;
  }
  for (const { rows } of shared.values()) rows.finish();
  return { firstOnes };
}

type Shared = {
  readonly rows: SharedTransaction;
  readonly overlay: SpaceCacheOverlay;
  readonly body: SpaceTransaction;
};

/** Bodies of one transaction share an overlay; a transaction that was rolled back and runs again begins with a new one. */
class OverlaysOfTransaction {
  #transaction = 0;
  readonly #overlays = new Map<SpaceCache, SpaceCacheOverlay>();

  of(transaction: number, cache: SpaceCache): SpaceCacheOverlay {
    if (transaction !== this.#transaction) {
      this.#transaction = transaction;
      this.#overlays.clear();
    }
    const overlay = this.#overlays.get(cache) ?? new SpaceCacheOverlay(cache);
    this.#overlays.set(cache, overlay);
    return overlay;
  }
}
