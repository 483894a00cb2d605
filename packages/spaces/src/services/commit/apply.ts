// Applies a commit's operations, in memory, to the documents that they find on its branch: revisions, heads and
// snapshots as they will be written. A patch that does not fit rejects the whole commit.

import { OperationDraft } from "@claudemesh/protocol/spaces/apply";
import { fitsDocument, spaceLimits, writeDocument } from "@claudemesh/protocol/spaces/entity";
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import { type Work, workCosts } from "@claudemesh/protocol/spaces/work";
import type { Branch } from "../../core/branch-lineage.ts";
import { type EntityChange, type EntityState, replayCost } from "../../core/entity-history.ts";
import type { Flow } from "../../ports/flow.ts";
import type { HeadRow, RevisionRow, SnapshotRow } from "../../ports/rows.ts";
import type { SpaceTransaction } from "../../ports.ts";

/** A document is written out after so many patches, or so much work to replay them, so that reading it stays short. */
const patchesPerSnapshot = 10;
const workPerSnapshot = 5_000_000;

/** A document with at most so many characters fits, whichever characters they are, so that it is not measured. */
const surelySmall = spaceLimits.documentBytes / 8;

export type AppliedCommit = {
  readonly revisions: readonly RevisionRow[];
  readonly heads: readonly HeadRow[];
  readonly snapshots: readonly SnapshotRow[];
  readonly changes: readonly EntityChange[];
};

type Working = {
  readonly draft: OperationDraft;
  replayed: number;
  replayWork: number;
  lastPatch: [number, Operation] | undefined;
  /** It is no longer than this as text. Undefined where it was not measured. */
  charactersAtMost: number | undefined;
  readonly footprints: Footprint[];
};

function startFrom({ document, ...state }: Omit<EntityState, "seq">, work: Work): Working {
  const { replayed, replayWork, charactersAtMost } = state;
  const draft = new OperationDraft(document, { work });
  return { draft, replayed, replayWork, charactersAtMost, lastPatch: undefined, footprints: [] };
}

const nothing = { document: undefined, replayed: 0, replayWork: 0, charactersAtMost: 0 } as const;

export function* applyOperations(
  tx: SpaceTransaction,
  branch: Branch,
  lastSeq: number,
  operations: readonly Operation[],
  bodies: readonly (string | undefined)[],
  work: Work,
): Flow<AppliedCommit | PatchFailure> {
  const seq = lastSeq + 1;
  const working = yield* loadTouched(tx, branch, lastSeq, operations, work);
  const revisions: RevisionRow[] = [];
  for (const [opIndex, operation] of operations.entries()) {
    const entity = working.get(operation.id);
    if (entity === undefined) throw new Error("an operation has its entity");
    work.spend(workCosts.row);
    const spentBefore = work.spent;
    const footprint = applyOrFail(entity.draft, operation, opIndex);
    if (footprint instanceof PatchFailure) return footprint;
    const body = bodies[opIndex];
    const isPatch = operation.op === "patch";
    entity.replayed = isPatch ? entity.replayed + 1 : 0;
    entity.replayWork = isPatch ? entity.replayWork + (work.spent - spentBefore) + replayCost(body ?? "") : 0;
    entity.lastPatch = isPatch ? [opIndex, operation] : undefined;
    entity.footprints.push(footprint);
    // A patch contains what it adds, so that the document grows by no more than the length of the patch.
    const before = operation.op === "patch" ? entity.charactersAtMost : 0;
    entity.charactersAtMost = before === undefined ? undefined : before + (body?.length ?? 0);
    revisions.push({
      branch: branch.name,
      entityId: operation.id,
      seq,
      opIndex,
      op: operation.op,
      body,
      footprint: JSON.stringify(footprint),
    });
  }
  return finish(branch.name, seq, working, revisions, work);
}

function* loadTouched(
  tx: SpaceTransaction,
  branch: Branch,
  lastSeq: number,
  operations: readonly Operation[],
  work: Work,
): Flow<Map<string, Working>> {
  const working = new Map<string, Working>();
  for (const { id } of operations) if (!working.has(id)) working.set(id, startFrom(nothing, work));
  const needed = patchedFirst(operations);
  const asks = needed.map((entityId) => ({ entityId, branch }));
  const states = yield* tx.present.states(asks, lastSeq, work);
  for (const [index, id] of needed.entries()) {
    working.set(id, startFrom(states[index] ?? nothing, work));
  }
  return working;
}

/** The entities whose documents a commit builds on: what is set or deleted first does not depend on what was there. */
export function patchedFirst(operations: readonly Operation[]): string[] {
  const firsts = new Map([...operations].reverse().map(({ id, op }) => [id, op]));
  return [...firsts].filter(([, op]) => op === "patch").map(([id]) => id);
}

function applyOrFail(draft: OperationDraft, operation: Operation, opIndex: number): Footprint | PatchFailure {
  try {
    return draft.apply(operation, opIndex);
  } catch (error) {
    if (error instanceof PatchFailure) return error;
    throw error;
  }
}

function finish(
  branch: string,
  seq: number,
  working: ReadonlyMap<string, Working>,
  revisions: readonly RevisionRow[],
  work: Work,
): AppliedCommit | PatchFailure {
  const heads: HeadRow[] = [];
  const snapshots: SnapshotRow[] = [];
  const changes: EntityChange[] = [];
  for (const [entityId, { draft, replayed, replayWork, lastPatch, charactersAtMost, footprints }] of working) {
    const { document } = draft;
    heads.push({ branch, entityId, seq, deleted: document === undefined });
    const isPatched = document !== undefined && lastPatch !== undefined;
    const isDue = isPatched && (replayed >= patchesPerSnapshot || replayWork >= workPerSnapshot);
    const isMeasured = isPatched && (isDue || charactersAtMost === undefined || charactersAtMost > surelySmall);
    const text = isMeasured ? writeDocument(document) : "";
    work.spend(text.length * workCosts.character);
    if (isMeasured && !fitsDocument(text)) return tooLarge(lastPatch);
    if (isDue) snapshots.push({ branch, entityId, seq, document: text });
    const characters = isMeasured ? text.length : (charactersAtMost ?? 0);
    const toReplay = isDue ? { replayed: 0, replayWork: 0 } : { replayed, replayWork };
    const state = { seq, document, ...toReplay, charactersAtMost: characters };
    changes.push({ entityId, state, footprints, characters });
  }
  return { revisions, heads, snapshots, changes };
}

function tooLarge([operationIndex, operation]: [number, Operation]): PatchFailure {
  const patches = operation.op === "patch" ? operation.patches : [];
  const patchIndex = Math.max(0, patches.length - 1);
  const { op = "add", path = "" } = patches[patchIndex] ?? {};
  return new PatchFailure({ operationIndex, patchIndex, op, path, reason: "too_large" });
}
