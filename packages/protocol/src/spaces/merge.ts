// Decides the merge of one branch into another, entity by entity, from three documents each: the ancestor at the base,
// and the present ones of source and target. An entity that both changed differently is a conflict, because only the
// users of the document can know whether two edits go together. Pure; the engine finds the base and the documents.
// Why: docs/decisions/0022.
import type { JsonValue } from "../json/strict-json.ts";
import type { CommitReads, ConfirmedRead, MergeContext } from "./commit.ts";
import type { BranchId, EntityDocument, EntityId } from "./entity.ts";
import { encodeFabric, fabricEqual } from "./fabric-value.ts";
import { type EncodedOperation, encodeOperation } from "./operation-wire.ts";
import type { Operation } from "./operations.ts";

/** Each document is undefined where the entity is absent or deleted. */
export type MergeEntity = {
  readonly id: EntityId;
  readonly ancestor: EntityDocument | undefined;
  readonly source: EntityDocument | undefined;
  readonly target: EntityDocument | undefined;
};

/** A document, or null for a deletion, by entity. */
export type MergeResolutions = ReadonlyMap<EntityId, EntityDocument | null>;

export type MergeView = {
  readonly target: BranchId;
  /** The space's seq at which source and target were read. */
  readonly seq: number;
  readonly merge: MergeContext;
};

export type MergeConflict = {
  readonly id: EntityId;
  readonly source: EntityDocument | null;
  readonly target: EntityDocument | null;
  readonly ancestor: EntityDocument | null;
};

export type MergeProposal = {
  readonly branch: BranchId;
  readonly reads: CommitReads;
  readonly operations: readonly Operation[];
  readonly merge: MergeContext;
};

export type MergePlan =
  | { readonly status: "ready"; readonly proposal: MergeProposal; readonly merged: readonly EntityId[] }
  | { readonly status: "conflict"; readonly conflicts: readonly MergeConflict[] }
  | { readonly status: "up_to_date" };

/** Whether the source has something that the merge must bring over, or that a caller must decide. */
export function needsMerge({ ancestor, source, target }: MergeEntity): boolean {
  return !sameDocument(source, ancestor) && !sameDocument(source, target);
}

/**
 * `entities` must contain every entity that the source wrote since the base; more do no harm. Results are in the order
 * of the ids.
 */
export function planMerge(entities: readonly MergeEntity[], resolutions: MergeResolutions, view: MergeView): MergePlan {
  const conflicts: MergeConflict[] = [];
  const operations: Operation[] = [];
  const confirmed: ConfirmedRead[] = [];
  for (const entity of entities.toSorted(byId)) {
    const change = planEntity(entity, resolutions);
    if (change.kind === "nothing") continue;
    if (change.kind === "conflict") {
      conflicts.push(change.conflict);
      continue;
    }
    operations.push(change.operation);
    // Both sides are read whole: a write to either before the merge is committed makes the proposal stale.
    confirmed.push({ id: entity.id, branch: view.merge.sourceBranch, path: [], seq: view.seq });
    confirmed.push({ id: entity.id, branch: view.target, path: [], seq: view.seq });
  }
  if (conflicts.length > 0) return { status: "conflict", conflicts };
  if (operations.length === 0) return { status: "up_to_date" };
  const proposal = { branch: view.target, reads: { confirmed, pending: [] }, operations, merge: view.merge };
  return { status: "ready", proposal, merged: operations.map(({ id }) => id) };
}

/** Resolutions for entities without a conflict. They are refused, so that a caller learns that the conflict is gone. */
export function findIdleResolutions(
  entities: readonly MergeEntity[],
  resolutions: MergeResolutions,
): readonly EntityId[] {
  const inConflict = new Set(entities.filter(isConflict).map(({ id }) => id));
  return [...resolutions.keys()].filter((id) => !inConflict.has(id));
}

type EntityChange =
  | { readonly kind: "nothing" }
  | { readonly kind: "write"; readonly operation: Operation }
  | { readonly kind: "conflict"; readonly conflict: MergeConflict };

function planEntity(entity: MergeEntity, resolutions: MergeResolutions): EntityChange {
  const { id, ancestor, source, target } = entity;
  if (!needsMerge(entity)) return { kind: "nothing" };
  if (isConflict(entity)) {
    const resolution = resolutions.get(id);
    // Written even if it equals the target's document: the merge must be recorded, or the conflict would come back at
    // every merge.
    if (resolution !== undefined) return { kind: "write", operation: toOperation(id, resolution ?? undefined) };
    const conflict = { id, source: source ?? null, target: target ?? null, ancestor: ancestor ?? null };
    return { kind: "conflict", conflict };
  }
  return { kind: "write", operation: toOperation(id, source) };
}

/** Both sides have changed the entity, differently. */
export function isConflict(entity: MergeEntity): boolean {
  return needsMerge(entity) && !sameDocument(entity.target, entity.ancestor);
}

function toOperation(id: EntityId, document: EntityDocument | undefined): Operation {
  return document === undefined ? { op: "delete", id } : { op: "set", id, value: document };
}

export type BranchDiff = {
  readonly added: readonly EntityId[];
  readonly removed: readonly EntityId[];
  readonly modified: readonly EntityId[];
};

/** What changed on a branch since its base, by id; each list is in the order of the ids. */
export function diffEntities(
  entities: readonly { id: EntityId; ancestor: EntityDocument | undefined; current: EntityDocument | undefined }[],
): BranchDiff {
  const added: EntityId[] = [];
  const removed: EntityId[] = [];
  const modified: EntityId[] = [];
  for (const { id, ancestor, current } of entities.toSorted(byId)) {
    if (sameDocument(ancestor, current)) continue;
    const list = ancestor === undefined ? added : current === undefined ? removed : modified;
    list.push(id);
  }
  return { added, removed, modified };
}

/** The plan as JSON, with encoded values. */
export function encodeMergePlan(plan: MergePlan): EncodedMergePlan {
  if (plan.status === "up_to_date") return plan;
  if (plan.status === "ready") {
    const { proposal, merged } = plan;
    return {
      status: plan.status,
      proposal: { ...proposal, operations: proposal.operations.map(encodeOperation) },
      merged,
    };
  }
  return {
    status: plan.status,
    conflicts: plan.conflicts.map(({ id, source, target, ancestor }) => ({
      id,
      source: encodeFabric(source),
      target: encodeFabric(target),
      ancestor: encodeFabric(ancestor),
    })),
  };
}

export type EncodedMergePlan =
  | {
      readonly status: "ready";
      readonly proposal: Omit<MergeProposal, "operations"> & { readonly operations: readonly EncodedOperation[] };
      readonly merged: readonly EntityId[];
    }
  | {
      readonly status: "conflict";
      readonly conflicts: readonly {
        readonly id: EntityId;
        readonly source: JsonValue;
        readonly target: JsonValue;
        readonly ancestor: JsonValue;
      }[];
    }
  | { readonly status: "up_to_date" };

function sameDocument(a: EntityDocument | undefined, b: EntityDocument | undefined): boolean {
  return fabricEqual(a, b);
}

/** Orders by code units, which is the same on every machine. */
function byId(a: { readonly id: EntityId }, b: { readonly id: EntityId }): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}
