// Everything that must hold before a commit's operations are applied: the branches and seqs that it names exist, what it
// read is still so, what it builds on was accepted, its merge has the right base. Writes nothing.
import { MeshError } from "@claudemesh/protocol/errors";
import type { ClientCommit } from "@claudemesh/protocol/spaces/commit";
import { defaultBranch } from "@claudemesh/protocol/spaces/entity";
import type { Work } from "@claudemesh/protocol/spaces/work";
import type { Branch } from "../../core/branch-lineage.ts";
import type { ReadToCheck } from "../../core/stale-reads.ts";
import type { ResolvedPendingRead } from "../../core/verdict.ts";
import type { Flow } from "../../ports/flow.ts";
import type { SessionRow } from "../../ports/rows.ts";
import type { SpaceTransaction } from "../../ports.ts";
import { checkMerge } from "./merge-context.ts";
import { resolvePending } from "./pending.ts";
import { type ConflictDetail, findConflicts } from "./reads.ts";

export type Validated =
  | { readonly type: "valid"; readonly branch: Branch; readonly resolved: readonly ResolvedPendingRead[] }
  | { readonly type: "rejected"; readonly error: MeshError };

/** Throws where the commit gets no verdict. */
export function* validate(
  tx: SpaceTransaction,
  session: SessionRow,
  lastSeq: number,
  commit: ClientCommit,
  work: Work,
): Flow<Validated> {
  checkSeqs(commit, lastSeq);
  const branches = yield* findNamedBranches(tx, commit);
  const branch = branches(commit.branch ?? defaultBranch);
  const confirmed = commit.reads.confirmed.map((read) => confirmedRead(branches(read.branch ?? branch.name), read));
  const stale = commit.merge && (yield* checkMerge(tx, commit.merge, branches(commit.merge.sourceBranch), branch));
  const pending = yield* resolvePending(tx, session, branch, commit.reads.pending, work);

  const pendingReads = pending.type === "resolved" ? pending.reads : [];
  const conflicts = yield* findConflicts(tx, [...confirmed, ...pendingReads], lastSeq, work);
  if (stale !== undefined && stale !== "current") conflicts.push(...staleMerge(commit, branch, stale.staleSince));
  if (conflicts.length > 0)
    return { type: "rejected", error: new MeshError("conflict_error", undefined, { conflicts }) };
  if (pending.type === "refused") throw pending.error;
  if (pending.type === "rejected") return pending;
  if (branch.deletedSeq !== undefined) throw new MeshError("branch_deleted", undefined, { branch: branch.name });
  return { type: "valid", branch, resolved: pending.resolved };
}

function checkSeqs(commit: ClientCommit, lastSeq: number): void {
  const named = [
    ...commit.reads.confirmed.map(({ seq }, index) => [seq, `reads.confirmed.${index}.seq`] as const),
    ...commit.reads.pending.map(({ basisSeq = 0 }, index) => [basisSeq, `reads.pending.${index}.basisSeq`] as const),
    [commit.merge?.sourceSeq ?? 0, "merge.sourceSeq"] as const,
    [commit.merge?.baseSeq ?? 0, "merge.baseSeq"] as const,
  ];
  const beyond = named.find(([seq]) => seq > lastSeq);
  if (beyond !== undefined) throw new MeshError("seq_out_of_range", undefined, { field: beyond[1], seq: lastSeq });
}

function* findNamedBranches(tx: SpaceTransaction, commit: ClientCommit): Flow<(name: string) => Branch> {
  const names = new Set([commit.branch ?? defaultBranch]);
  for (const { branch } of commit.reads.confirmed) if (branch !== undefined) names.add(branch);
  if (commit.merge !== undefined) names.add(commit.merge.sourceBranch).add(commit.merge.baseBranch);
  const found = new Map((yield* tx.present.branches([...names])).map((branch) => [branch.name, branch]));
  return (name) => {
    const branch = found.get(name);
    if (branch === undefined) throw new MeshError("branch_not_found", undefined, { branch: name });
    return branch;
  };
}

function confirmedRead(branch: Branch, read: ClientCommit["reads"]["confirmed"][number]): ReadToCheck {
  const { id, path, seq, shallow } = read;
  return {
    entityId: id,
    branch,
    scan: [shallow === true ? { path, shallow } : { path }],
    fromSeq: seq,
    ignoreSeqs: new Set(),
    path,
    expectedSeq: seq,
  };
}

/** Another merge came between: each document of this one was made from a base that is no longer theirs. */
function staleMerge(commit: ClientCommit, branch: Branch, staleSince: number): ConflictDetail[] {
  const ids = new Set(commit.operations.map(({ id }) => id));
  return [...ids].map((id) => ({
    id,
    branch: branch.name,
    path: [],
    expected: { seq: commit.merge?.baseSeq ?? 0 },
    actual: { seq: staleSince },
  }));
}
