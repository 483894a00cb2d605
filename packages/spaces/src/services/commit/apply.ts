// Applies a commit's operations, in memory, to the documents that they find on its branch: revisions, heads and
// snapshots as they will be written. A patch that does not fit rejects the whole commit.

import { applyWithFootprint } from "@claudemesh/protocol/spaces/apply";
import { type EntityDocument, fitsDocument, spaceLimits, writeDocument } from "@claudemesh/protocol/spaces/entity";
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import type { EncodedOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { PatchFailure } from "@claudemesh/protocol/spaces/patch-failure";
import type { Branch } from "../../core/branch-lineage.ts";
import { bodyOf, type EntityState } from "../../core/entity-history.ts";
import type { EntityChange } from "../../core/known-space.ts";
import type { HeadRow, RevisionRow, SnapshotRow } from "../../ports/rows.ts";
import type { Steps } from "../../ports/steps.ts";
import type { SpaceTransaction } from "../../ports.ts";
import { readPresent } from "./present.ts";

/** A document is written out after so many patches, so that reading it stays short. */
const patchesPerSnapshot = 10;

/** A document of so many characters fits, whatever they are, and is not written out to see it. */
const surelySmall = spaceLimits.documentBytes / 8;

export type AppliedCommit = {
  readonly revisions: readonly RevisionRow[];
  readonly heads: readonly HeadRow[];
  readonly snapshots: readonly SnapshotRow[];
  readonly changes: readonly EntityChange[];
};

type Working = {
  document: EntityDocument | undefined;
  replayed: number;
  lastPatch: [number, Operation] | undefined;
  /** It is no longer than this as text; undefined: nobody measured it. */
  charactersAtMost: number | undefined;
  readonly footprints: Footprint[];
};

function startFrom({ document, replayed, charactersAtMost }: Omit<EntityState, "seq">): Working {
  return { document, replayed, charactersAtMost, lastPatch: undefined, footprints: [] };
}

const nothing = { document: undefined, replayed: 0, charactersAtMost: 0 } as const;

export function* applyOperations(
  tx: SpaceTransaction,
  branch: Branch,
  lastSeq: number,
  operations: readonly Operation[],
  encoded: readonly EncodedOperation[],
): Steps<AppliedCommit | PatchFailure> {
  const seq = lastSeq + 1;
  const working = yield* loadTouched(tx, branch, lastSeq, operations);
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
    entity.footprints.push(applied.footprint);
    const body = bodyOf(original);
    // A patch adds no more to a document than it is long itself: what it adds is in it, and more.
    const before = operation.op === "patch" ? entity.charactersAtMost : 0;
    entity.charactersAtMost = before === undefined ? undefined : before + (body?.length ?? 0);
    revisions.push({
      branch: branch.name,
      entityId: operation.id,
      seq,
      opIndex,
      op: operation.op,
      body,
      footprint: JSON.stringify(applied.footprint),
    });
  }
  return finish(branch.name, seq, working, revisions);
}

function* loadTouched(
  tx: SpaceTransaction,
  branch: Branch,
  lastSeq: number,
  operations: readonly Operation[],
): Steps<Map<string, Working>> {
  const working = new Map<string, Working>();
  for (const { id } of operations) working.set(id, startFrom(nothing));
  const needed = patchedFirst(operations);
  const asks = needed.map((entityId) => ({ entityId, branch }));
  const states = yield* readPresent(tx, asks, lastSeq);
  for (const [index, id] of needed.entries()) {
    working.set(id, startFrom(states[index] ?? nothing));
  }
  return working;
}

/** Whose documents a commit builds on: what is set or deleted first owes nothing to what was there. */
export function patchedFirst(operations: readonly Operation[]): string[] {
  const firsts = new Map([...operations].reverse().map(({ id, op }) => [id, op]));
  return [...firsts].filter(([, op]) => op === "patch").map(([id]) => id);
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
  const changes: EntityChange[] = [];
  for (const [entityId, { document, replayed, lastPatch, charactersAtMost, footprints }] of working) {
    heads.push({ branch, entityId, seq, deleted: document === undefined });
    const isPatched = document !== undefined && lastPatch !== undefined;
    const isDue = isPatched && replayed >= patchesPerSnapshot;
    const isMeasured = isPatched && (isDue || charactersAtMost === undefined || charactersAtMost > surelySmall);
    const text = isMeasured ? writeDocument(document) : "";
    if (isMeasured && !fitsDocument(text)) return tooLarge(lastPatch);
    if (isDue) snapshots.push({ branch, entityId, seq, document: text });
    const characters = isMeasured ? text.length : (charactersAtMost ?? 0);
    const state = { seq, document, replayed: isDue ? 0 : replayed, charactersAtMost: characters };
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
