// Why a patch did not fit the document: a PatchError with the operation, the patch and its path.
// Why: docs/decisions/0021.
import { MeshError } from "../errors/errors.ts";
import type { PatchOp } from "./operations.ts";

export type PatchFailureReason =
  | "not_a_pointer"
  /** There is nothing at the path, or at a parent that this patch does not create. */
  | "missing"
  /** A parent on the path is a leaf. */
  | "not_a_container"
  | "not_an_array"
  /** The index is beyond the end of the array, or not an index. */
  | "bad_index"
  /** The whole document can only be an object, and only a delete removes it. */
  | "not_a_document"
  | "test_failed"
  /** The target of a move is inside its own source. */
  | "into_itself"
  | "too_deep"
  | "too_large";

const explanations: Readonly<Record<PatchFailureReason, string>> = {
  not_a_pointer: "it is not a JSON pointer",
  missing: "there is nothing",
  not_a_container: "a parent holds no keys",
  not_an_array: "there is no array",
  bad_index: "the array has no such index",
  not_a_document: "a document is an object, and only a delete removes it",
  test_failed: "the value differs",
  into_itself: "nothing moves below itself",
  too_deep: "the document would be too deep",
  too_large: "the document would be too large",
};

export type PatchFailureDetails = {
  /** The index of the operation in the commit. */
  readonly operationIndex?: number | undefined;
  /** The index of the patch in the operation. */
  readonly patchIndex: number;
  readonly op: PatchOp["op"];
  readonly path: string;
  readonly reason: PatchFailureReason;
};

export class PatchFailure extends MeshError {
  readonly operationIndex: number | undefined;
  readonly patchIndex: number;
  readonly op: PatchOp["op"];
  readonly path: string;
  readonly reason: PatchFailureReason;

  constructor(details: PatchFailureDetails) {
    const { operationIndex, ...rest } = details;
    const body = operationIndex === undefined ? rest : { operationIndex, ...rest };
    super("patch_error", `The ${details.op} at "${details.path}" does not fit: ${explanations[details.reason]}.`, body);
    this.operationIndex = operationIndex;
    this.patchIndex = details.patchIndex;
    this.op = details.op;
    this.path = details.path;
    this.reason = details.reason;
  }
}
