// Proposing a merge and telling what a branch changed, both against the base that the two branches have. Reads only: the
// proposal is committed like any other commit, and is stale if something came between.
import { MeshError } from "@claudemesh/protocol/errors";
import { spaceLimits } from "@claudemesh/protocol/spaces/entity";
import {
  type BranchDiff,
  diffEntities,
  findIdleResolutions,
  type MergeEntity,
  type MergePlan,
  type MergeResolutions,
  planMerge,
} from "@claudemesh/protocol/spaces/merge";
import { type Branch, forkPointOf, segmentsOf } from "../core/branch-lineage.ts";
import { type BasePoint, mergeBaseOf } from "../core/merge-base.ts";
import type { SpaceRef } from "../ports/rows.ts";
import type { Steps } from "../ports/steps.ts";
import type { SpacePorts, SpaceView } from "../ports.ts";
import { findBranch } from "./branches.ts";
import { mergesLookedAt } from "./commit/merge-context.ts";
import { placeOf } from "./query.ts";
import { readEntities } from "./read-entities.ts";

type Ports = Pick<SpacePorts, "store">;

export type BranchPair = { readonly source: string; readonly target: string };

const idsPerPage = 500;
/** Entities that may have changed since the base; a merge of more would not fit into one commit anyway. */
const entitiesMax = 50_000;

export function proposeMerge(
  ports: Ports,
  space: SpaceRef,
  pair: BranchPair,
  resolutions: MergeResolutions,
): Promise<MergePlan> {
  return ports.store.read(space, function* (view) {
    const parting = yield* findParting(view, pair);
    const { source, target, base, seq } = parting;
    if (target.deletedSeq !== undefined) throw new MeshError("branch_deleted", undefined, { branch: target.name });
    const entities = yield* readThreeWays(view, parting);
    const [idle] = findIdleResolutions(entities, resolutions);
    if (idle !== undefined) {
      throw new MeshError("invalid_request", "There is no conflict that this resolution could end.", {
        field: `resolutions.${idle}`,
      });
    }
    const merge = { sourceBranch: source.name, sourceSeq: seq, baseBranch: base.branch, baseSeq: base.seq };
    const plan = planMerge(entities, resolutions, { target: target.name, seq, merge });
    if (plan.status === "ready" && plan.proposal.operations.length > spaceLimits.operationsPerCommit) {
      const message = `The merge changes ${plan.merged.length} entities, and a commit holds ${spaceLimits.operationsPerCommit}.`;
      throw new MeshError("payload_too_large", message);
    }
    return plan;
  });
}

/** What the source has changed since the base. */
export function diffBranches(ports: Ports, space: SpaceRef, pair: BranchPair): Promise<BranchDiff> {
  return ports.store.read(space, function* (view) {
    const entities = yield* readThreeWays(view, yield* findParting(view, pair));
    return diffEntities(entities.map(({ id, ancestor, source }) => ({ id, ancestor, current: source })));
  });
}

/** Two branches, and where they have gone different ways, as of one seq. */
type Parting = {
  readonly source: Branch;
  readonly target: Branch;
  readonly base: BasePoint;
  readonly baseBranch: Branch;
  readonly seq: number;
};

function* findParting(view: SpaceView, pair: BranchPair): Steps<Parting> {
  const { branch: source, atSeq: seq } = yield* placeOf(view, { branch: pair.source });
  const target = yield* findBranch(view, pair.target);
  if (source.name === target.name) {
    throw new MeshError("invalid_merge", "A branch is not merged into itself.", { field: "target" });
  }
  const merges = yield* view.readMerges(source.name, target.name, mergesLookedAt);
  const base = mergeBaseOf(
    source,
    target,
    merges.filter((merge) => merge.seq <= seq),
  );
  return { source, target, base, baseBranch: yield* findBranch(view, base.branch), seq };
}

function* readThreeWays(view: SpaceView, parting: Parting): Steps<MergeEntity[]> {
  const { source, target, baseBranch, base, seq } = parting;
  const entities: MergeEntity[] = [];
  let from = "";
  for (;;) {
    const ids = yield* view.listEntityIds({ ...writtenSinceParting(parting), from, limit: idsPerPage });
    const asks = ids.flatMap((entityId) => [
      { entityId, branch: baseBranch, atSeq: base.seq },
      { entityId, branch: source, atSeq: seq },
      { entityId, branch: target, atSeq: seq },
    ]);
    const states = yield* readEntities(view, asks);
    for (const [index, id] of ids.entries()) {
      const [ancestor, ofSource, ofTarget] = states.slice(index * 3, index * 3 + 3);
      entities.push({ id, ancestor: ancestor?.document, source: ofSource?.document, target: ofTarget?.document });
    }
    if (entities.length > entitiesMax) {
      throw new MeshError("payload_too_large", `More than ${entitiesMax} entities changed since the base.`);
    }
    const last = ids.at(-1);
    if (last === undefined || ids.length < idsPerPage) return entities;
    from = last;
  }
}

/**
 * Only what was written, on the source or on the way to the base, after the point that the source shares with the base
 * can differ between the two.
 */
function writtenSinceParting({ source, baseBranch, base, seq }: Parting) {
  const shared = source.name === baseBranch.name ? base.seq : Math.min(base.seq, forkPointOf(source, baseBranch).seq);
  const segments = [...segmentsOf(source, seq), ...segmentsOf(baseBranch, base.seq)];
  const branches = new Set(segments.filter(({ upTo }) => upTo > shared).map(({ branch }) => branch));
  return { branches: [...branches], fromIsTaken: true, before: undefined, afterSeq: shared };
}
