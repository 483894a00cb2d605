// Checks what a commit says about its merge: the branches exist, and the base is the one that the server finds. A base that
// was right when the merge was proposed, and is not any more, makes the proposal stale and not false.
// Why: docs/decisions/0026.
import { MeshError } from "@claudemesh/protocol/errors";
import type { MergeContext } from "@claudemesh/protocol/spaces/commit";
import type { Branch } from "../../core/branch-lineage.ts";
import { basesSince } from "../../core/merge-base.ts";
import type { Flow } from "../../ports/flow.ts";
import type { SpaceView } from "../../ports.ts";

/** Older merges than these are not looked at: a proposal that is older is refused and made again. */
export const mergesLookedAt = 100;

export type MergeStanding = "current" | { readonly staleSince: number };

export function* checkMerge(view: SpaceView, merge: MergeContext, source: Branch, target: Branch): Flow<MergeStanding> {
  if (source.name === target.name) {
    throw new MeshError("invalid_merge", "A branch is not merged into itself.", { field: "merge.sourceBranch" });
  }
  const merges = yield* view.readMerges(source.name, target.name, mergesLookedAt);
  const bases = basesSince(source, target, merges, merge.sourceSeq);
  const index = bases.findIndex(({ branch, seq }) => branch === merge.baseBranch && seq === merge.baseSeq);
  if (index < 0) {
    const [base] = bases;
    throw new MeshError("invalid_merge", undefined, { baseBranch: base?.branch, baseSeq: base?.seq });
  }
  return index === 0 ? "current" : { staleSince: merges[index - 1]?.seq ?? merge.sourceSeq };
}
