// Applies an operation to a document and records its footprint. The document before is never changed: the new one
// shares with it whatever was not written, so that a small patch of a large document is cheap. Server and replica both
// run this, so a patch means the same on both sides. The caller checks sizes of documents.

import { Draft, type DraftOptions } from "./draft.ts";
import type { EntityDocument } from "./entity.ts";
import type { Operation, PatchOp } from "./operations.ts";
import { PatchFailure, type PatchFailureReason } from "./patch-failure.ts";
import { parsePointer } from "./pointer.ts";
import type { Footprint, Touch } from "./touch.ts";
import { type Work, workCosts } from "./work.ts";

export type Applied = { readonly document: EntityDocument | undefined; readonly footprint: Footprint };

/** The document after the operation; undefined where it was deleted. Throws PatchFailure when a patch does not fit. */
export function applyOperation(
  document: EntityDocument | undefined,
  operation: Operation,
  operationIndex?: number,
): EntityDocument | undefined {
  return applyWithFootprint(document, operation, operationIndex).document;
}

/**
 * Like applyOperation, and also returns the footprint. `operationIndex` is only used to name the operation in a
 * failure.
 */
export function applyWithFootprint(
  document: EntityDocument | undefined,
  operation: Operation,
  operationIndex?: number,
): Applied {
  const draft = new OperationDraft(document);
  const footprint = draft.apply(operation, operationIndex);
  return { document: draft.document, footprint };
}

/**
 * Several operations on one entity, in their order. Each part of the document is copied once, before its first change,
 * and later operations change that copy in place. After an error the draft must not be used any more.
 */
export class OperationDraft {
  readonly #options: DraftOptions;
  #draft: Draft;

  constructor(document: EntityDocument | undefined, options: DraftOptions = {}) {
    this.#options = options;
    this.#draft = new Draft(document, options);
  }

  /** The caller must not change it, nor keep it while further operations follow. */
  get document(): EntityDocument | undefined {
    return this.#draft.document;
  }

  /** Applies the operation and returns what it touched. Throws PatchFailure when a patch does not fit. */
  apply(operation: Operation, operationIndex?: number): Footprint {
    if (operation.op !== "patch") {
      this.#draft = new Draft(operation.op === "set" ? operation.value : undefined, this.#options);
      return [wholeDocument];
    }
    const footprint: Touch[] = [];
    operation.patches.forEach((patch, patchIndex) => {
      const outcome = applyPatch(this.#draft, patch, this.#options.work);
      if (typeof outcome === "string") {
        throw new PatchFailure({ operationIndex, patchIndex, op: patch.op, path: patch.path, reason: outcome });
      }
      if (outcome !== undefined) footprint.push(outcome);
    });
    return footprint;
  }
}

const wholeDocument: Touch = { kind: "write", path: [], covers: true };

/** The reason why the patch does not fit, or what it touched; a `test` that succeeds touches nothing. */
function applyPatch(draft: Draft, patch: PatchOp, work: Work | undefined): Touch | undefined | PatchFailureReason {
  const path = parsePointer(patch.path);
  if (path === undefined) return "not_a_pointer";
  work?.spend(workCosts.patch + path.length * workCosts.pathKey);
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
      if (from === undefined) return "not_a_pointer";
      work?.spend(from.length * workCosts.pathKey);
      return draft.move(from, path);
    }
  }
}
