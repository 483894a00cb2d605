// Puts a document together from what its branches hold of it: the newest full write or snapshot that shows through, and
// the patches since. Pure; which rows are read is the caller's.

import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { applyOperation } from "@claudemesh/protocol/spaces/apply";
import { type EntityDocument, readDocument } from "@claudemesh/protocol/spaces/entity";
import { type EncodedOperation, readOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import type { RevisionRow, Tail } from "../ports/rows.ts";

export type EntityState = {
  /** Of the last write. */
  readonly seq: number;
  /** Undefined: deleted. */
  readonly document: EntityDocument | undefined;
  /** Patch operations that had to be replayed. */
  readonly replayed: number;
  /** Its document is no longer than this as text; undefined: nobody measured it. */
  readonly charactersAtMost?: number | undefined;
};

type Revision = Tail["revisions"][number];

export type History =
  /** No branch in the line has ever written it. */
  | { readonly type: "absent" }
  /** The tail at this place ends before anything full is reached, and may go on. */
  | { readonly type: "cut"; readonly tail: number }
  | { readonly type: "whole"; readonly state: EntityState };

/** `tails`: one for each segment, nearest first, each with at most `limit` revisions. */
export function assemble(entityId: string, tails: readonly Tail[], limit: number): History {
  const patches: Revision[] = [];
  let newestSeq: number | undefined;
  for (const [index, { snapshot, revisions }] of tails.entries()) {
    for (const revision of revisions) {
      newestSeq ??= revision.seq;
      if (revision.op !== "patch") {
        const base = revision.op === "delete" ? undefined : readDocument(revision.body ?? "");
        return whole(entityId, newestSeq, base, patches);
      }
      patches.push(revision);
    }
    if (revisions.length >= limit) return { type: "cut", tail: index };
    if (snapshot !== undefined) {
      return whole(entityId, newestSeq ?? snapshot.seq, readDocument(snapshot.document), patches);
    }
  }
  return newestSeq === undefined ? { type: "absent" } : whole(entityId, newestSeq, undefined, patches);
}

/** `patches`: newest first. They were applied once already, so that they fit. */
function whole(entityId: string, seq: number, base: EntityDocument | undefined, patches: readonly Revision[]): History {
  const document = patches.reduceRight<EntityDocument | undefined>(
    (before, { body }) => applyOperation(before, readPatchBody(entityId, body)),
    base,
  );
  return { type: "whole", state: { seq, document, replayed: patches.length } };
}

/** The text that a revision keeps of an operation. */
export function bodyOf(operation: EncodedOperation): RevisionRow["body"] {
  if (operation.op === "delete") return undefined;
  return JSON.stringify(operation.op === "set" ? operation.value : operation.patches);
}

function readPatchBody(id: string, body: string | undefined): Operation {
  const patches = parseOwnJsonText(body ?? "") as NonNullable<EncodedOperation["patches"]>;
  return readOperation({ op: "patch", id, patches }, "a stored patch");
}
