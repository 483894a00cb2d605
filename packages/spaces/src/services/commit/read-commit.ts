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
import { defaultBranch, fitsBytes, readBranchId, spaceLimits } from "@claudemesh/protocol/spaces/entity";
import { readOperation } from "@claudemesh/protocol/spaces/operation-wire";
import type { Operation } from "@claudemesh/protocol/spaces/operations";
import { bodyOf } from "../../core/entity-history.ts";
import type { PrefetchHints } from "../../ports.ts";
import { patchedFirst } from "./apply.ts";

export type ReadCommit = {
  readonly commit: ClientCommit;
  /** Canonical, without the invocation. Its fingerprint tells a retry from another commit. */
  readonly payload: string;
  /** What revisions keep of the operations, in their order. */
  readonly bodies: readonly (string | undefined)[];
  /** What the log keeps. */
  readonly original: string;
};

/** After texts of so many characters others have a turn. */
const charactersPerTurn = 131_072;

/** Yields where other requests may have a turn; the caller continues after it. Throws where this is not a commit. */
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

/** As it was sent, except for the order of keys. The signature is kept in rows of its own. */
function writeOriginal(encoded: EncodedCommit, bodies: readonly (string | undefined)[]): string {
  const { invocation: _, operations: encodedOperations, ...others } = encoded;
  const operations = encodedOperations.map(({ op, id }, index) => {
    const content = op === "delete" ? "" : `,"${op === "set" ? "value" : "patches"}":${bodies[index] ?? ""}`;
    return `{"op":"${op}","id":${JSON.stringify(id)}${content}}`;
  });
  return `${JSON.stringify(others).slice(0, -1)},"operations":[${operations.join(",")}]}`;
}

/** Clients may call the default branch main; inside it has one name. */
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

/** What a commit will most likely ask for when it is decided. What is not in here is asked for when it is needed. */
export function prefetchHintsOf({ branch = defaultBranch, reads, operations }: ClientCommit): PrefetchHints {
  const branches = new Set([branch]);
  const writes = reads.confirmed.map((read) => {
    const readFrom = read.branch ?? branch;
    branches.add(readFrom);
    return { branch: readFrom, entityId: read.id, afterSeq: read.seq };
  });
  const documents = patchedFirst(operations).map((entityId) => ({ branch, entityId }));
  return { branches: [...branches], writes, documents };
}
