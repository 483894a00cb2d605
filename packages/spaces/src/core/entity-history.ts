// Puts a document together from what its branches hold of it: the newest full write or snapshot that shows through, and
// the patches since. Pure; which rows are read is the caller's.

import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { OperationDraft } from "@claudemesh/protocol/spaces/apply";
import { type EntityDocument, readDocument } from "@claudemesh/protocol/spaces/entity";
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import { type EncodedOperation, readOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { Work, workCosts } from "@claudemesh/protocol/spaces/work";
import type { RevisionRow, Tail } from "../ports/rows.ts";

export type EntityState = {
  /** Of the last write. */
  readonly seq: number;
  /** Undefined for a deleted entity. */
  readonly document: EntityDocument | undefined;
  /** Patch operations that had to be replayed. */
  readonly replayed: number;
  /** What replaying them costs each time, in units of work. */
  readonly replayWork: number;
  /** Its document is no longer than this as text. Undefined where it was not measured. */
  readonly charactersAtMost?: number | undefined;
};

/** What an accepted commit made of one entity. */
export type EntityChange = {
  readonly entityId: string;
  readonly state: EntityState;
  /** One for each operation on it, in their order. */
  readonly footprints: readonly Footprint[];
  /** How long its document is as text. */
  readonly characters: number;
};

type Revision = Tail["revisions"][number];

export type History =
  /** Neither the branch nor an ancestor has ever written it. */
  | { readonly type: "absent" }
  /** The tail with this index ends before a full write or a snapshot is reached, and may go on. */
  | { readonly type: "cut"; readonly tail: number }
  | { readonly type: "whole"; readonly state: EntityState };

/**
 * `tails`: one for each segment, nearest first, each with at most `limit` revisions. `work`: what it may cost, for a
 * commit that builds on the document.
 */
export function assemble(entityId: string, tails: readonly Tail[], limit: number, work?: Work): History {
  const patches: Revision[] = [];
  let newestSeq: number | undefined;
  for (const [index, { snapshot, revisions }] of tails.entries()) {
    for (const revision of revisions) {
      newestSeq ??= revision.seq;
      if (revision.op !== "patch") {
        return whole(entityId, newestSeq, revision.op === "delete" ? undefined : revision.body, patches, work);
      }
      patches.push(revision);
    }
    if (revisions.length >= limit) return { type: "cut", tail: index };
    if (snapshot !== undefined) {
      return whole(entityId, newestSeq ?? snapshot.seq, snapshot.document, patches, work);
    }
  }
  return newestSeq === undefined ? { type: "absent" } : whole(entityId, newestSeq, undefined, patches, work);
}

/** `patches`: newest first. They were applied once already, so that they fit. */
function whole(
  entityId: string,
  seq: number,
  base: string | undefined,
  patches: readonly Revision[],
  work: Work | undefined,
): History {
  if (base !== undefined) work?.spendOnDocument(base);
  const replaying = new Work();
  // What was just read from a text is not shared yet, so that the draft may change it without a copy.
  const document = base === undefined ? undefined : readDocument(base);
  const draft = new OperationDraft(document, { work: replaying, ownsAll: true });
  for (const { body = "" } of patches.toReversed()) {
    const before = replaying.spent;
    replaying.spend(replayCost(body));
    draft.apply(readPatchBody(entityId, body));
    work?.spend(replaying.spent - before);
  }
  const state = { seq, document: draft.document, replayed: patches.length, replayWork: replaying.spent };
  return { type: "whole", state };
}

/** Of all texts that a document is made of. */
export function charactersOf({ snapshot, revisions }: Tail): number {
  return revisions.reduce((sum, { body }) => sum + (body?.length ?? 0), snapshot?.document.length ?? 0);
}

/** What reading a stored patch costs, before it is applied. */
export function replayCost(body: string): number {
  return body.length * workCosts.character;
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
