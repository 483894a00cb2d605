// What an operation does to a document, and the footprint that it leaves. Nothing is changed in place: the new document
// shares with the old one whatever was not written, so that a small patch of a large document is cheap. Server and
// replica both run this, so a patch means the same on both sides. Sizes of documents are the caller's to check.

import { Draft } from "./draft.ts";
import type { EntityDocument } from "./entity.ts";
import type { Operation, PatchOp } from "./operations.ts";
import { PatchFailure, type PatchFailureReason } from "./patch-failure.ts";
import { parsePointer } from "./pointer.ts";
import type { Footprint, Touch } from "./touch.ts";

export type Applied = { readonly document: EntityDocument | undefined; readonly footprint: Footprint };

/** The document after the operation; undefined where there is none. Throws PatchFailure when a patch does not fit. */
export function applyOperation(
  document: EntityDocument | undefined,
  operation: Operation,
  operationIndex?: number,
): EntityDocument | undefined {
  return applyWithFootprint(document, operation, operationIndex).document;
}

/** As applyOperation, with what was touched on the way. `operationIndex` only names the operation in a failure. */
export function applyWithFootprint(
  document: EntityDocument | undefined,
  operation: Operation,
  operationIndex?: number,
): Applied {
  if (operation.op === "set") return { document: operation.value, footprint: [wholeDocument] };
  if (operation.op === "delete") return { document: undefined, footprint: [wholeDocument] };
  const draft = new Draft(document);
  const footprint: Touch[] = [];
  operation.patches.forEach((patch, patchIndex) => {
    const outcome = applyPatch(draft, patch);
    if (typeof outcome === "string") {
      throw new PatchFailure({ operationIndex, patchIndex, op: patch.op, path: patch.path, reason: outcome });
    }
    if (outcome !== undefined) footprint.push(outcome);
  });
  return { document: draft.document, footprint };
}

const wholeDocument: Touch = { kind: "write", path: [], covers: true };

/** A reason when the patch does not fit, else what it touched; a `test` that holds touches nothing. */
function applyPatch(draft: Draft, patch: PatchOp): Touch | undefined | PatchFailureReason {
  const path = parsePointer(patch.path);
  if (path === undefined) return "not_a_pointer";
  switch (patch.op) {
    case "add":
      return draft.add(path, patch.value);
    case "replace":
      return draft.replace(path, patch.value);
    case "remove":
      return draft.remove(path);
    case "test":
      return draft.test(path, patch.value);
    case "splice":
      return draft.splice(path, patch.index, patch.remove, patch.add);
    case "move": {
      const from = parsePointer(patch.from);
      return from === undefined ? "not_a_pointer" : draft.move(from, path);
    }
  }
}
