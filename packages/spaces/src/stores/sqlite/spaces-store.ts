// SpacesStore on SQLite: which function runs as a committed read and which as a job of the group commit. The database's
// one write lock is the space's lock and the session's.
import { isLiveMember } from "@claudemesh/members/sqlite";
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { KnownDraft, type KnownSpace } from "../../core/known-space.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import { answerNow, runAtOnce } from "../../ports/steps.ts";
import type {
  AcceptedWrites,
  PreparedSends,
  SendsOutcome,
  SpacesStore,
  SpaceTransaction,
  SpaceView,
} from "../../ports.ts";
import { branchPair } from "../branch-pair.ts";
import { KnownSpaces } from "../known-spaces.ts";
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
  selectLayer,
  selectTail,
  selectWrites,
  upsertHeads,
} from "./entity-rows.ts";
import {
  deleteUnusedSessions,
  insertOpen,
  insertSpace,
  insertVerdict,
  raiseLastSeq,
  selectOpen,
  selectSession,
  selectSpace,
  selectSpaces,
  selectVerdicts,
  updateSignedWrites,
  upsertSession,
} from "./session-rows.ts";

export function spacesMigrations(): Migration[] {
  return loadMigrations("spaces", new URL("./migrations/", import.meta.url));
}

export type SqliteSpacesOptions = {
  /** Accepts a commit's sends inside its transaction, without limiter or batching; it may write for some and refuse. */
  readonly acceptSends: (tx: Sqlite, meshId: string, sends: PreparedSends) => SendsOutcome;
  /** Told from inside a transaction that it carries a commit, so that fault points can aim at it. */
  readonly sawCommit: () => void;
};

export function createSqliteSpacesStore(db: Sqlite, commit: GroupCommit, options: SqliteSpacesOptions): SpacesStore {
  const drafts = new DraftsOfTransaction();
  const spaces = new KnownSpaces();
  return {
    read: async (space, body) => runAtOnce(body(viewOf(db, space))),
    transact: async (space, body) => {
      const known = spaces.of(space);
      let draft: KnownDraft | undefined;
      const result = await commit.submit((tx) => {
        options.sawCommit();
        draft = drafts.of(tx.transactionNumber, known);
        return runAtOnce(body(transactionOn(tx, space, draft, options)));
      });
      if (draft !== undefined) drafts.keep(known, draft);
      return result;
    },
    createSpace: (space, settings, nowMs) => commit.submit((tx) => insertSpace(tx, space, settings, nowMs)),
    setSignedWrites: (space, signedWrites) => commit.submit((tx) => updateSignedWrites(tx, space, signedWrites)),
    listSpaces: async (meshId, after, limit) => selectSpaces(db, meshId, after, limit),
    sweepSessions: (unusedSinceMs, limit) => commit.submit((tx) => deleteUnusedSessions(tx, unusedSinceMs, limit)),
    dropSnapshots: async (space) => {
      await commit.submit((tx) => deleteSnapshots(tx, space));
      // How far back the next snapshot is due is known wrongly now.
      spaces.forget(space);
    },
  };
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

function viewOf(db: Sqlite, space: SpaceRef): SpaceView {
  return {
    findSpace: () => answerNow(() => selectSpace(db, space)),
    findSession: (sessionId) => answerNow(() => selectSession(db, space, sessionId)),
    findVerdicts: (sessionId, localSeqs) => answerNow(() => selectVerdicts(db, space, sessionId, localSeqs)),
    findBranches: (names) => answerNow(() => selectBranches(db, space, names)),
    listBranches: (after, limit) => answerNow(() => selectBranchPage(db, space, after, limit)),
    readTails: (asks, limit) => answerNow(() => asks.map((ask) => selectTail(db, space, ask, limit))),
    readWrites: (asks, limit) => answerNow(() => asks.map((ask) => selectWrites(db, space, ask, limit))),
    readLayers: (branch, asks) => answerNow(() => asks.map((ask) => selectLayer(db, space, branch, ask))),
    listEntityIds: (query) => answerNow(() => selectEntityIds(db, space, query)),
    readLog: (after, limit) => answerNow(() => selectLog(db, space, after, limit)),
    readMerges: (a, b, limit) => answerNow(() => selectMerges(db, space, branchPair(a, b), limit)),
    findInvocation: (hash) => answerNow(() => selectInvocation(db, space, hash)),
  };
}

function transactionOn(tx: Sqlite, space: SpaceRef, known: KnownDraft, options: SqliteSpacesOptions): SpaceTransaction {
  const view = viewOf(tx, space);
  return {
    ...view,
    known,
    lockSpace: view.findSpace,
    lockSession: view.findSession,
    isLiveMember: (pubkey) => answerNow(() => isLiveMember(tx, space.meshId, pubkey)),
    findOpen: (memberPubkey, openHash) => answerNow(() => selectOpen(tx, space, memberPubkey, openHash)),
    insertOpen: (open) => answerNow(() => insertOpen(tx, space, open)),
    putSession: (session) => answerNow(() => upsertSession(tx, space, session)),
    writeAccepted: (writes) => answerNow(() => writeAccepted(tx, space, writes)),
    writeRejected: (verdict) => answerNow(() => insertVerdict(tx, space, verdict)),
    mark: () => answerNow(() => tx.exec("SAVEPOINT before_sends")),
    undoToMark: () => answerNow(() => tx.exec("ROLLBACK TO before_sends")),
    acceptSends: (sends) => answerNow(() => options.acceptSends(tx, space.meshId, sends)),
  };
}

function writeAccepted(tx: Sqlite, space: SpaceRef, writes: AcceptedWrites): void {
  const { commit, merge, createdBranch, deletedBranch } = writes;
  insertVerdict(tx, space, writes.verdict);
  insertCommit(tx, space, commit);
  insertRevisions(tx, space, writes.revisions);
  upsertHeads(tx, space, writes.heads);
  insertSnapshots(tx, space, writes.snapshots);
  insertInvocations(tx, space, writes.invocations);
  if (merge !== undefined) insertMerge(tx, space, branchPair(merge.sourceBranch, merge.targetBranch), merge);
  if (createdBranch !== undefined) insertBranch(tx, space, createdBranch, commit.committedAtMs);
  if (deletedBranch !== undefined) markBranchDeleted(tx, space, deletedBranch, commit.seq);
  raiseLastSeq(tx, space, commit.seq);
}
