// SpacesStore on PostgreSQL: which function reads on its own, and what a transaction on one space may do. The space's
// row is its lock, taken as a statement of its own under READ COMMITTED.
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SpaceRef } from "../../ports/rows.ts";
import { answerOf, runWaiting } from "../../ports/steps.ts";
import type {
  AcceptedWrites,
  PreparedSends,
  SendsOutcome,
  SpacesStore,
  SpaceTransaction,
  SpaceView,
} from "../../ports.ts";
import { branchPair } from "../branch-pair.ts";
import {
  insertBranch,
  insertMerge,
  markBranchDeleted,
  selectBranches,
  selectBranchPage,
  selectMerges,
} from "./branch-rows.ts";
import { insertCommit, insertInvocations, selectInvocation, selectLog } from "./commit-rows.ts";
import {
  deleteSnapshots,
  insertRevisions,
  insertSnapshots,
  selectEntityIds,
  selectLayers,
  selectTails,
  selectWrites,
  upsertHeads,
} from "./entity-rows.ts";
import type { Reading } from "./reading.ts";
import {
  deleteUnusedSessions,
  insertOpen,
  insertSpace,
  insertVerdict,
  lockSession,
  lockSpace,
  raiseLastSeq,
  selectOpen,
  selectSession,
  selectSpace,
  selectSpaces,
  selectVerdicts,
  updateSignedWrites,
  upsertSession,
} from "./session-rows.ts";
import { type LaneProbe, TransactionLanes } from "./transaction-lanes.ts";

export type { LaneProbe } from "./transaction-lanes.ts";

export function postgresSpacesMigrations(): Migration[] {
  return loadMigrations("spaces", new URL("./migrations/", import.meta.url));
}

export type PostgresSpacesOptions = {
  /** Accepts a commit's sends inside its transaction, without limiter or batching; it may write for some and refuse. */
  readonly acceptSends: (tx: PostgresTransaction, meshId: string, sends: PreparedSends) => Promise<SendsOutcome>;
  /** Around each transaction of commits, so that fault points can aim at it. */
  readonly probe: LaneProbe;
};

export type SpacesPools = {
  /** Connections that may wait for a space's lock, so that nothing else waits behind them. */
  readonly committing: Postgres;
  readonly common: Postgres;
};

export function createPostgresSpacesStore(pools: SpacesPools, options: PostgresSpacesOptions): SpacesStore {
  const { committing, common } = pools;
  const lanes = new TransactionLanes(committing, options.probe);
  const committed: Reading = { query: (text, values, name) => common.read(text, values, name) };
  return {
    read: (space, body) => runWaiting(body(viewOf(committed, space))),
    transact: (space, body, alone) =>
      lanes.run(space, (tx) => runWaiting(body(transactionOn(tx, space, options))), alone === "alone"),
    createSpace: (space, settings, nowMs) => common.transaction((tx) => insertSpace(tx, space, settings, nowMs)),
    setSignedWrites: (space, signedWrites) => common.transaction((tx) => updateSignedWrites(tx, space, signedWrites)),
    listSpaces: (meshId, after, limit) => selectSpaces(committed, meshId, after, limit),
    sweepSessions: (unusedSinceMs, limit) => common.transaction((tx) => deleteUnusedSessions(tx, unusedSinceMs, limit)),
    dropSnapshots: (space) => common.transaction((tx) => deleteSnapshots(tx, space)),
  };
}

function viewOf(db: Reading, space: SpaceRef): SpaceView {
  return {
    findSpace: () => answerOf(selectSpace(db, space)),
    findSession: (sessionId) => answerOf(selectSession(db, space, sessionId)),
    findVerdicts: (sessionId, localSeqs) => answerOf(selectVerdicts(db, space, sessionId, localSeqs)),
    findBranches: (names) => answerOf(selectBranches(db, space, names)),
    listBranches: (after, limit) => answerOf(selectBranchPage(db, space, after, limit)),
    readTails: (asks, limit) => answerOf(selectTails(db, space, asks, limit)),
    readWrites: (asks, limit) => answerOf(selectWrites(db, space, asks, limit)),
    readLayers: (branch, asks) => answerOf(selectLayers(db, space, branch, asks)),
    listEntityIds: (query) => answerOf(selectEntityIds(db, space, query)),
    readLog: (after, limit) => answerOf(selectLog(db, space, after, limit)),
    readMerges: (a, b, limit) => answerOf(selectMerges(db, space, branchPair(a, b), limit)),
    findInvocation: (hash) => answerOf(selectInvocation(db, space, hash)),
  };
}

function transactionOn(tx: PostgresTransaction, space: SpaceRef, options: PostgresSpacesOptions): SpaceTransaction {
  return {
    ...viewOf(tx, space),
    lockSpace: () => answerOf(lockSpace(tx, space)),
    lockSession: (sessionId) => answerOf(lockSession(tx, space, sessionId)),
    isLiveMember: (pubkey) => answerOf(isLiveMember(tx, space.meshId, pubkey)),
    findOpen: (memberPubkey, openHash) => answerOf(selectOpen(tx, space, memberPubkey, openHash)),
    insertOpen: (open) => answerOf(insertOpen(tx, space, open)),
    putSession: (session) => answerOf(upsertSession(tx, space, session)),
    writeAccepted: (writes) => answerOf(writeAccepted(tx, space, writes)),
    writeRejected: (verdict) => answerOf(insertVerdict(tx, space, verdict)),
    mark: () => answerOf(tx.script("SAVEPOINT before_sends")),
    undoToMark: () => answerOf(tx.script("ROLLBACK TO SAVEPOINT before_sends")),
    acceptSends: (sends) => answerOf(options.acceptSends(tx, space.meshId, sends)),
  };
}

async function isLiveMember(tx: PostgresTransaction, meshId: string, pubkey: string): Promise<boolean> {
  const rows = await tx.query(
    "SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 AND revoked_at IS NULL",
    [meshId, pubkey],
    "is_live_member",
  );
  return rows.length > 0;
}

// The statements travel together and run in order.
async function writeAccepted(tx: PostgresTransaction, space: SpaceRef, writes: AcceptedWrites): Promise<void> {
  const { commit, merge, createdBranch, deletedBranch } = writes;
  const sent = [
    insertVerdict(tx, space, writes.verdict),
    insertCommit(tx, space, commit),
    insertRevisions(tx, space, writes.revisions),
    upsertHeads(tx, space, writes.heads),
    insertSnapshots(tx, space, writes.snapshots),
    insertInvocations(tx, space, writes.invocations),
    raiseLastSeq(tx, space, commit.seq),
  ];
  if (merge !== undefined) {
    sent.push(insertMerge(tx, space, branchPair(merge.sourceBranch, merge.targetBranch), merge));
  }
  if (createdBranch !== undefined) sent.push(insertBranch(tx, space, createdBranch, commit.committedAtMs));
  if (deletedBranch !== undefined) sent.push(markBranchDeleted(tx, space, deletedBranch, commit.seq));
  await Promise.all(sent);
}
