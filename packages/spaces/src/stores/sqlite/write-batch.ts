// Everything that the commits of a transaction leave behind on SQLite, table by table for all of them.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { SpaceRef } from "../../ports/rows.ts";
import { branchPair } from "../rows.ts";
import type { WriteBatch } from "../write-buffer.ts";
import { insertBranch, insertMerge, markBranchDeleted } from "./branch-rows.ts";
import { insertCommits, insertInvocations } from "./commit-rows.ts";
import { insertRevisions, insertSnapshots, upsertHeads } from "./entity-rows.ts";
import { insertVerdicts, moveSessions, raiseLastSeq } from "./session-rows.ts";

export function writeBatch(tx: Sqlite, space: SpaceRef, { accepted, verdicts }: WriteBatch): void {
  insertVerdicts(tx, space, verdicts);
  // Each session moves to its last verdict.
  moveSessions(tx, space, [...new Map(verdicts.map((row) => [row.sessionId, row])).values()]);
  const last = accepted.at(-1);
  if (last === undefined) return;
  insertCommits(
    tx,
    space,
    accepted.map(({ commit }) => commit),
  );
  for (const { commit, revisions, heads, snapshots, invocations, merge, createdBranch, deletedBranch } of accepted) {
    insertRevisions(tx, space, revisions);
    upsertHeads(tx, space, heads);
    if (snapshots.length > 0) insertSnapshots(tx, space, snapshots);
    if (invocations.length > 0) insertInvocations(tx, space, invocations);
    if (merge !== undefined) insertMerge(tx, space, branchPair(merge.sourceBranch, merge.targetBranch), merge);
    if (createdBranch !== undefined) insertBranch(tx, space, createdBranch, commit.committedAtMs);
    if (deletedBranch !== undefined) markBranchDeleted(tx, space, deletedBranch, commit.seq);
  }
  raiseLastSeq(tx, space, last.commit.seq);
}
