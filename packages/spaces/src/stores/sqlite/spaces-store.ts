// SpacesStore on SQLite: which function runs as a committed read and which as a job of the group commit. The database's
// one write lock is the space's lock and the session's.
import { transactionWorkMax } from "@claudemesh/protocol/spaces/work";
import type { FirstOnes, GroupCommit } from "@claudemesh/storage/group-commit";
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { KnownDraft, type KnownSpace } from "../../core/known-space.ts";
import { type Flow, runSync } from "../../ports/flow.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpacesStore, SpaceTransaction } from "../../ports.ts";
import { KnownSpaces } from "../known-spaces.ts";
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
  const drafts = new DraftsOfTransaction();
  const spaces = new KnownSpaces();
  const runBodies = (tx: Sqlite, waiting: readonly Waiting[]) => runTogether(tx, waiting, drafts, options.acceptSends);
  return {
    read: async (space, body) => runSync(body(viewOf(() => db, space))),
    transact: async <T>(space: SpaceRef, body: (tx: SpaceTransaction) => Flow<T>) => {
      const known = spaces.of(space);
      const { value, draft } = await commit.submitItem(runBodies, { space, known, body }, "commit");
      drafts.keep(known, draft);
      return value as T;
    },
    createSpace: (space, settings, nowMs) => commit.submit((tx) => insertSpace(tx, space, settings, nowMs)),
    setSignedWrites: (space, signedWrites) => commit.submit((tx) => updateSignedWrites(tx, space, signedWrites)),
    listSpaces: async (meshId, after, limit) => selectSpaces(db, meshId, after, limit),
    count: async (meshId, what, upTo) => countRows(db, meshId, what, upTo),
    sweepSessions: async (unusedSinceMs, after) => {
      const unused = selectUnusedSessions(db, unusedSinceMs, after);
      if (unused.places.length === 0) return { removed: 0, next: unused.next, more: unused.next !== undefined };
      return commit.submit((tx) => deleteUnusedSessions(tx, unusedSinceMs, unused, after));
    },
    dropSnapshots: async (space) => {
      await commit.submit((tx) => deleteSnapshots(tx, space));
      // How far back the next snapshot is due is known wrongly now.
      spaces.forget(space);
    },
  };
}

type Waiting = {
  readonly space: SpaceRef;
  readonly known: KnownSpace;
  readonly body: (tx: SpaceTransaction) => Flow<unknown>;
};

type Ran = { readonly value: unknown; readonly draft: KnownDraft };

/**
 * Bodies that follow each other in one transaction, each space's in their order: as many of them as make work enough,
 * because nothing else runs until the transaction has ended.
 */
function runTogether(
  tx: Sqlite,
  waiting: readonly Waiting[],
  drafts: DraftsOfTransaction,
  acceptSends: AcceptSends,
): FirstOnes<Ran> {
  const shared = new Map<string, SharedTransaction>();
  const firstOnes: Ran[] = [];
  let work = 0;
  for (const { space, known, body } of waiting) {
    if (work >= transactionWorkMax) break;
    // What is known of a space may be forgotten and begun anew between two of its bodies: it is no name for the space.
    const key = `${space.meshId}/${space.spaceId}`;
    let on = shared.get(key);
    if (on === undefined) {
      on = new SharedTransaction(tx, space, drafts.of(tx.transactionNumber, known), acceptSends);
      shared.set(key, on);
    }
    const before = on.work;
    firstOnes.push({ value: runSync(body(on.body)), draft: on.known });
    work += on.work - before;
  }
  for (const on of shared.values()) on.finish();
  return { firstOnes };
}

/** Bodies of one transaction share their draft; one that is rolled back and run again begins with a new one. */
class DraftsOfTransaction {
  #transaction = 0;
  #drafts = new Map<KnownSpace, KnownDraft>();
  #kept = new WeakSet<KnownDraft>();

  of(transaction: number, known: KnownSpace): KnownDraft {
    if (transaction !== this.#transaction) {
      this.#transaction = transaction;
      this.#drafts.clear();
    }
    const draft = this.#drafts.get(known) ?? new KnownDraft(known);
    this.#drafts.set(known, draft);
    return draft;
  }

  /** Whoever of the transaction is told first that it was committed keeps it for all. */
  keep(known: KnownSpace, draft: KnownDraft): void {
    if (this.#kept.has(draft)) return;
    this.#kept.add(draft);
    known.keep(draft);
  }
}
