// Proposing a merge and telling what a branch changed, both against the base that the two branches have. Reads only: the
// proposal is committed like any other commit, and is stale if something came between.
import { canonicalJson } from "@claudemesh/protocol/canonical";
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonValue } from "@claudemesh/protocol/json";
import { encodeCommit, joinCommitPayload } from "@claudemesh/protocol/spaces/commit";
import { fitsBytes, spaceLimits, writeDocument } from "@claudemesh/protocol/spaces/entity";
import {
  type BranchDiff,
  diffEntities,
  findIdleResolutions,
  isConflict,
  type MergeEntity,
  type MergePlan,
  type MergeResolutions,
  needsMerge,
  planMerge,
} from "@claudemesh/protocol/spaces/merge";
import { encodeOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Work } from "@claudemesh/protocol/spaces/work";
import { type Branch, forkPointOf, segmentsOf } from "../core/branch-lineage.ts";
import { type BasePoint, mergeBaseOf } from "../core/merge-base.ts";
import type { Flow } from "../ports/flow.ts";
import type { SpaceRef } from "../ports/rows.ts";
import type { SpacePorts, SpaceView } from "../ports.ts";
import { findBranch } from "./branches.ts";
import { mergesLookedAt } from "./commit/merge-context.ts";
import { resolveMoment } from "./query.ts";
import { readForTurn } from "./read-entities.ts";
import { ReadPace } from "./read-pace.ts";

type Ports = Pick<SpacePorts, "store" | "nextTurn">;

export type BranchPair = { readonly source: string; readonly target: string };

/** Read at once at most, each three times. */
const entitiesPerRead = 32;
/** Entities that may have changed since the base; a merge of more would not fit into one commit anyway. */
const entitiesMax = 50_000;
/** Of documents in one answer. */
const answerCharacters = 8_388_608;

export async function proposeMerge(
  ports: Ports,
  space: SpaceRef,
  pair: BranchPair,
  resolutions: MergeResolutions,
): Promise<MergePlan> {
  const parting = await ports.store.read(space, (view) => findParting(view, pair));
  const { source, target, base, seq } = parting;
  if (target.deletedSeq !== undefined) throw new MeshError("branch_deleted", undefined, { branch: target.name });
  const entities: MergeEntity[] = [];
  let characters = 0;
  await readThreeWays(ports, space, parting, (page) => {
    for (const entity of page.filter(needsMerge)) {
      entities.push(entity);
      characters += charactersOf(entity, resolutions);
      if (characters > answerCharacters)
        throw tooLarge("The documents that the merge is about are larger than one answer");
    }
  });
  const [idle] = resolutions.size === 0 ? [] : findIdleResolutions(entities, resolutions);
  if (idle !== undefined) {
    throw new MeshError("invalid_request", "There is no conflict that this resolution could end.", {
      field: `resolutions.${idle}`,
    });
  }
  const merge = { sourceBranch: source.name, sourceSeq: seq, baseBranch: base.branch, baseSeq: base.seq };
  const plan = planMerge(entities, resolutions, { target: target.name, seq, merge });
  if (plan.status === "ready") await checkFits(ports, plan);
  return plan;
}

/** What an entity adds to the answer: its own document, or in a conflict all three to choose from. */
function charactersOf(entity: MergeEntity, resolutions: MergeResolutions): number {
  const { id, source, target, ancestor } = entity;
  if (resolutions.has(id)) return 0;
  const shown = isConflict(entity) ? [source, target, ancestor] : [source];
  return shown.reduce((sum, document) => sum + (document === undefined ? 0 : writeDocument(document).length), 0);
}

/** That the proposal can be committed. Others have a turn between its documents, each of which may have a megabyte. */
async function checkFits(
  { nextTurn = setImmediate }: Ports,
  plan: Extract<MergePlan, { status: "ready" }>,
): Promise<void> {
  const { operationsPerCommit, commitBytes } = spaceLimits;
  if (plan.merged.length > operationsPerCommit) {
    throw tooLarge(`The merge changes ${plan.merged.length} entities, and a commit holds ${operationsPerCommit}`);
  }
  const longest = encodeCommit({ localSeq: Number.MAX_SAFE_INTEGER, ...plan.proposal, operations: [] });
  const operations: string[] = [];
  for (const operation of plan.proposal.operations) {
    const text = canonicalJson(encodeOperation(operation) as JsonValue);
    operations.push(text);
    if (text.length > charactersPerTurn) await new Promise<void>((resolve) => nextTurn(resolve));
  }
  if (!fitsBytes(joinCommitPayload(longest, operations), commitBytes)) {
    throw tooLarge("The merge is larger than a commit, which has at most 4 MiB", { limit_bytes: commitBytes });
  }
}

/** After a text of so many characters others have a turn. */
const charactersPerTurn = 131_072;

/** What is the same on both branches is no part of a merge, so that a large merge can be made smaller by commits. */
function tooLarge(what: string, details = {}): MeshError {
  const message = `${what}; write some of its entities to the target in commits of their own first, then propose again.`;
  return new MeshError("payload_too_large", message, details);
}

/** What the source has changed since the base. */
export async function diffBranches(ports: Ports, space: SpaceRef, pair: BranchPair): Promise<BranchDiff> {
  const parting = await ports.store.read(space, (view) => findParting(view, pair));
  const added: string[] = [];
  const removed: string[] = [];
  const modified: string[] = [];
  await readThreeWays(ports, space, parting, (page) => {
    const found = diffEntities(page.map(({ id, ancestor, source }) => ({ id, ancestor, current: source })));
    added.push(...found.added);
    removed.push(...found.removed);
    modified.push(...found.modified);
  });
  // The store lists ids in the order of their bytes, and answers are in that of code units.
  return { added: added.toSorted(), removed: removed.toSorted(), modified: modified.toSorted() };
}

/** Two branches, and where they have gone different ways, as of one seq. */
type Parting = {
  readonly source: Branch;
  readonly target: Branch;
  readonly base: BasePoint;
  readonly baseBranch: Branch;
  readonly seq: number;
};

function* findParting(view: SpaceView, pair: BranchPair): Flow<Parting> {
  const { branch: source, atSeq: seq } = yield* resolveMoment(view, { branch: pair.source });
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

/**
 * Page by page, so that what is not needed of a page is not kept. Every page is as of one seq: what is written meanwhile
 * lists more entities, which look as they did. Others have a turn in between: a store that answers at once would otherwise
 * stop every other request until the end.
 */
async function readThreeWays(
  { store, nextTurn }: Ports,
  space: SpaceRef,
  parting: Parting,
  visit: (page: readonly MergeEntity[]) => void,
): Promise<void> {
  const pace = new ReadPace(entitiesPerRead, nextTurn);
  let from = "";
  for (let seen = 0; ; ) {
    const { page, isLast } = await pace.next(async (size, work) => {
      const start = from;
      return store.read(space, (view) => readThreeWaysFrom(view, parting, start, size, work));
    });
    visit(page);
    seen += page.length;
    if (seen > entitiesMax) {
      throw new MeshError("payload_too_large", `More than ${entitiesMax} entities changed since the base.`);
    }
    const last = page.at(-1);
    if (last === undefined || isLast) return;
    from = last.id;
  }
}

function* readThreeWaysFrom(
  view: SpaceView,
  parting: Parting,
  from: string,
  limit: number,
  work: Work,
): Flow<{ readonly page: readonly MergeEntity[]; readonly isLast: boolean }> {
  const { source, target, baseBranch, base, seq } = parting;
  const ids = yield* view.listEntityIds({ ...writtenSinceParting(parting), from, limit });
  const asks = ids.flatMap((entityId) => [
    { entityId, branch: baseBranch, atSeq: base.seq },
    { entityId, branch: source, atSeq: seq },
    { entityId, branch: target, atSeq: seq },
  ]);
  const states = yield* readForTurn(view, asks, work, waysOfEntity);
  const read = ids.slice(0, states.length / waysOfEntity);
  const page = read.map((id, index) => {
    const [ancestor, ofSource, ofTarget] = states.slice(index * waysOfEntity, (index + 1) * waysOfEntity);
    return { id, ancestor: ancestor?.document, source: ofSource?.document, target: ofTarget?.document };
  });
  return { page, isLast: read.length === ids.length && ids.length < limit };
}

/** In which each entity is read: at the base, on the source and on the target. */
const waysOfEntity = 3;

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
