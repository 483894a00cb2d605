// SpacesStore on PostgreSQL: which function reads on its own, and what a transaction on one space may do. The space's
// row is its lock, taken as a statement of its own under READ COMMITTED.

import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Postgres } from "@claudemesh/storage/postgres";
import { runAsync } from "../../ports/flow.ts";
import type { SpacesStore } from "../../ports.ts";
import { deleteSnapshots } from "./entity-rows.ts";
import type { Reading } from "./reading.ts";
import { countRows, insertSpace, selectSpaces, updateSignedWrites } from "./session-rows.ts";
import { createSharedReads } from "./shared-reads.ts";
import type { AcceptSends } from "./shared-transaction.ts";
import { SpaceCommitQueue } from "./space-commit-queue.ts";
import { sweepSessions } from "./unused-sessions.ts";

export function postgresSpacesMigrations(): Migration[] {
  return loadMigrations("spaces", new URL("./migrations/", import.meta.url));
}

export type PostgresSpacesOptions = {
  /** Accepts a commit's sends inside its transaction, without limiter or batching; it may write for some and refuse. */
  readonly acceptSends: AcceptSends;
  /** Hear of each transaction of commits. */
  readonly hooks?: CommitHooks | undefined;
};

export type SpacesPools = {
  /** Connections that may wait for a space's lock, so that nothing else waits behind them. */
  readonly committing: Postgres;
  readonly common: Postgres;
};

export function createPostgresSpacesStore(pools: SpacesPools, options: PostgresSpacesOptions): SpacesStore {
  const { committing, common } = pools;
  const queue = new SpaceCommitQueue(committing, options);
  const committed: Reading = { query: (text, values, name) => common.read(text, values, name) };
  const viewFor = createSharedReads(committed);
  return {
    read: (space, body) => runAsync(body(viewFor(space))),
    transact: (space, body, hints = {}) => queue.run(space, body, hints),
    createSpace: (space, settings, nowMs) => common.transaction((tx) => insertSpace(tx, space, settings, nowMs)),
    setSignedWrites: (space, signedWrites) => common.transaction((tx) => updateSignedWrites(tx, space, signedWrites)),
    listSpaces: (meshId, after, limit) => selectSpaces(committed, meshId, after, limit),
    count: (meshId, what, upTo) => countRows(committed, meshId, what, upTo),
    sweepSessions: (unusedSinceMs, after) => sweepSessions(common, unusedSinceMs, after),
    dropSnapshots: async (space) => {
      await common.transaction((tx) => deleteSnapshots(tx, space));
      // The cached states say how far back the last snapshot is, which is wrong now.
      queue.forget(space);
    },
  };
}
