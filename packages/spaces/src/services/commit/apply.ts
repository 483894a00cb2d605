// Applies a commit's operations, in memory, to the documents that they find on its branch: revisions, heads and
// snapshots as they will be written. A patch that does not fit rejects the whole commit.

import { applyWithFootprint } from "@claudemesh/protocol/spaces/apply";
import { type EntityDocument, fitsDocument, writeDocument } from "@claudemesh/protocol/spaces/entity";
import type { EncodedOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import type { Branch } from "../../core/branch-lineage.ts";
import { bodyOf } from "../../core/entity-history.ts";
import type { HeadRow, RevisionRow, SnapshotRow } from "../../ports/rows.ts";
import type { Steps } from "../../ports/steps.ts";
import type { SpaceView } from "../../ports.ts";
import { readEntities } from "../read-entities.ts";

/** A document is written out after so many patches, so that reading it stays short. */
const patchesPerSnapshot = 10;

export type AppliedCommit = {
  readonly revisions: readonly RevisionRow[];
  readonly heads: readonly HeadRow[];
  readonly snapshots: readonly SnapshotRow[];
};

type Working = { document: EntityDocument | undefined; replayed: number; lastPatch: [number, Operation] | undefined };

export function* applyOperations(
  view: SpaceView,
  branch: Branch,
  lastSeq: number,
  operations: readonly Operation[],
  encoded: readonly EncodedOperation[],
): Steps<AppliedCommit | PatchFailure> {
  const seq = lastSeq + 1;
  const working = yield* loadTouched(view, branch, lastSeq, operations);
  const revisions: RevisionRow[] = [];
  for (const [opIndex, operation] of operations.entries()) {
    const entity = working.get(operation.id);
    const original = encoded[opIndex];
    if (entity === undefined || original === undefined) throw new Error("an operation has its entity and its text");
    const applied = applyOrFail(entity.document, operation, opIndex);
    if (applied instanceof PatchFailure) return applied;
    entity.document = applied.document;
    entity.replayed = operation.op === "patch" ? entity.replayed + 1 : 0;
    entity.lastPatch = operation.op === "patch" ? [opIndex, operation] : undefined;
    revisions.push({
      branch: branch.name,
      entityId: operation.id,
      seq,
      opIndex,
      op: operation.op,
      body: bodyOf(original),
      footprint: JSON.stringify(applied.footprint),
    });
  }
  return finish(branch.name, seq, working, revisions);
}

function* loadTouched(
  view: SpaceView,
  branch: Branch,
  lastSeq: number,
  operations: readonly Operation[],
): Steps<Map<string, Working>> {
  const working = new Map<string, Working>();
  for (const { id } of operations) working.set(id, { document: undefined, replayed: 0, lastPatch: undefined });
  // What is set or deleted first owes nothing to what was there.
  const firsts = new Map([...operations].reverse().map((operation) => [operation.id, operation.op]));
  const needed = [...firsts].filter(([, op]) => op === "patch").map(([id]) => id);
  const states = yield* readEntities(
    view,
    needed.map((entityId) => ({ entityId, branch, atSeq: lastSeq })),
  );
  for (const [index, id] of needed.entries()) {
    const { document, replayed = 0 } = states[index] ?? {};
    working.set(id, { document, replayed, lastPatch: undefined });
  }
  return working;
}

function applyOrFail(document: EntityDocument | undefined, operation: Operation, opIndex: number) {
  try {
    return applyWithFootprint(document, operation, opIndex);
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
): AppliedCommit | PatchFailure {
  const heads: HeadRow[] = [];
  const snapshots: SnapshotRow[] = [];
  for (const [entityId, { document, replayed, lastPatch }] of working) {
    heads.push({ branch, entityId, seq, deleted: document === undefined });
    if (document === undefined || lastPatch === undefined) continue;
    const text = writeDocument(document);
    if (!fitsDocument(text)) return tooLarge(lastPatch);
    if (replayed >= patchesPerSnapshot) snapshots.push({ branch, entityId, seq, document: text });
  }
  return { revisions, heads, snapshots };
}

function tooLarge([operationIndex, operation]: [number, Operation]): PatchFailure {
  const patches = operation.op === "patch" ? operation.patches : [];
  const patchIndex = Math.max(0, patches.length - 1);
  const { op = "add", path = "" } = patches[patchIndex] ?? {};
  return new PatchFailure({ operationIndex, patchIndex, op, path, reason: "too_large" });
}
