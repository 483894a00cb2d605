// What a commit may do to one entity: set, patch, delete; and the kinds of patches. Values are decoded here; the wire
// form and the schemas are in commit.ts, and apply.ts changes documents.
import type { EntityDocument, EntityId } from "./entity.ts";
import type { FabricValue } from "./fabric-value.ts";

export type SetOperation = {
  readonly op: "set";
  readonly id: EntityId;
  readonly value: EntityDocument;
};

export type PatchWriteOperation = {
  readonly op: "patch";
  readonly id: EntityId;
  readonly patches: readonly PatchOp[];
};

export type DeleteOperation = {
  readonly op: "delete";
  readonly id: EntityId;
};

export type Operation = SetOperation | PatchWriteOperation | DeleteOperation;

/** Paths are RFC 6901 pointers from the document's root. */
export type AddPatch = { readonly op: "add"; readonly path: string; readonly value: FabricValue };
export type ReplacePatch = { readonly op: "replace"; readonly path: string; readonly value: FabricValue };
export type RemovePatch = { readonly op: "remove"; readonly path: string };
export type MovePatch = { readonly op: "move"; readonly from: string; readonly path: string };
export type TestPatch = { readonly op: "test"; readonly path: string; readonly value: FabricValue };
/** Removes `remove` items from the array at `path`, beginning at `index`, and inserts those of `add` in their place. */
export type SplicePatch = {
  readonly op: "splice";
  readonly path: string;
  readonly index: number;
  readonly remove: number;
  readonly add: readonly FabricValue[];
};

export type PatchOp = AddPatch | ReplacePatch | RemovePatch | MovePatch | TestPatch | SplicePatch;

export const operationKinds = ["set", "patch", "delete"] as const;
export const patchKinds = ["add", "replace", "remove", "move", "test", "splice"] as const;
