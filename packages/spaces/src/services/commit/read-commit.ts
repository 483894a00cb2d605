// What is done with a commit before its transaction, where others can have a turn in between: its values are decoded, and
// the texts made that are compared and stored. In the transaction the event loop belongs to the commit alone.
import { canonicalJson } from "@claudemesh/protocol/canonical";
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonValue } from "@claudemesh/protocol/json";
import {
  type ClientCommit,
  type EncodedCommit,
  joinCommitPayload,
  readCommitHead,
} from "@claudemesh/protocol/spaces/commit";
import { fitsBytes, readBranchId, spaceLimits } from "@claudemesh/protocol/spaces/entity";
import { readOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { bodyOf } from "../../core/entity-history.ts";

export type ReadCommit = {
  readonly commit: ClientCommit;
  /** Canonical, without the invocation: what a retry is known by. */
  readonly payload: string;
  /** What revisions keep of the operations, in their order. */
  readonly bodies: readonly (string | undefined)[];
  /** What the log keeps. */
  readonly original: string;
};

/** After texts of so many characters others have a turn. */
const charactersPerTurn = 131_072;

/** Yields where others may have a turn; the caller goes on when they have had it. Throws what is no commit. */
export function* readCommitInParts(encoded: EncodedCommit): Generator<void, ReadCommit> {
  const head = readCommitHead(encoded);
  const operations: Operation[] = [];
  const bodies: (string | undefined)[] = [];
  const canonical: string[] = [];
  let characters = 0;
  for (const [index, operation] of encoded.operations.entries()) {
    const body = bodyOf(operation);
    characters += body?.length ?? 0;
    if (characters > charactersPerTurn) {
      characters = 0;
      yield;
    }
    bodies.push(body);
    operations.push(readOperation(operation, `operations.${index}`));
    if ((body?.length ?? 0) > charactersPerTurn) yield;
    canonical.push(canonicalJson(operation as JsonValue));
  }
  const payload = joinCommitPayload(encoded, canonical);
  if (!fitsBytes(payload, spaceLimits.commitBytes)) {
    throw new MeshError("payload_too_large", "A commit is at most 4 MiB.", { limit_bytes: spaceLimits.commitBytes });
  }
  if (payload.length > charactersPerTurn) yield;
  return { commit: nameBranches({ ...head, operations }), payload, bodies, original: writeOriginal(encoded, bodies) };
}

/** As it was sent, but for the order of keys; the signature is kept beside it. Is read as our own text. */
function writeOriginal(encoded: EncodedCommit, bodies: readonly (string | undefined)[]): string {
  const { invocation: _, operations: encodedOperations, ...others } = encoded;
  const operations = encodedOperations.map(({ op, id }, index) => {
    const content = op === "delete" ? "" : `,"${op === "set" ? "value" : "patches"}":${bodies[index] ?? ""}`;
    return `{"op":"${op}","id":${JSON.stringify(id)}${content}}`;
  });
  return `${JSON.stringify(others).slice(0, -1)},"operations":[${operations.join(",")}]}`;
}

/** The default branch has one name inside; clients may call it main. */
function nameBranches(commit: ClientCommit): ClientCommit {
  const { reads, merge } = commit;
  const confirmed = reads.confirmed.map((read) =>
    read.branch === undefined ? read : { ...read, branch: readBranchId(read.branch) },
  );
  return {
    ...commit,
    branch: readBranchId(commit.branch),
    reads: { ...reads, confirmed },
    ...(merge !== undefined && {
      merge: {
        ...merge,
        sourceBranch: readBranchId(merge.sourceBranch),
        baseBranch: readBranchId(merge.baseBranch),
      },
    }),
  };
}
