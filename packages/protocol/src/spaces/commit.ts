// A commit as a client sends it: types with decoded values, the schema of its wire form, the reading of one into the
// other, and the canonical payload by which a replay is recognised. The spaces engine validates it against history.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { canonicalJson } from "../canonical/canonical-json.ts";
import { MeshError } from "../errors/errors.ts";
import type { JsonObject, JsonValue } from "../json/strict-json.ts";
import { type AcceptRequest, acceptRequestSchema } from "../messages/accept-request.ts";
import {
  type BranchId,
  type EntityId,
  entityIdPattern,
  isBranchId,
  isEntityId,
  type ReadPath,
  spaceLimits,
} from "./entity.ts";
import { encodeOperation, operationSchema, readOperation } from "./operation-wire.ts";
import type { Operation } from "./operations.ts";
import type { PendingRead } from "./pending-reads.ts";

export type { PendingRead } from "./pending-reads.ts";

export type ConfirmedRead = {
  readonly id: EntityId;
  /** The commit's branch when absent. */
  readonly branch?: BranchId;
  readonly path: ReadPath;
  readonly seq: number;
  readonly shallow?: boolean;
};

export type MergeContext = {
  readonly sourceBranch: BranchId;
  readonly sourceSeq: number;
  readonly baseBranch: BranchId;
  readonly baseSeq: number;
};

export type CommitReads = {
  readonly confirmed: readonly ConfirmedRead[];
  readonly pending: readonly PendingRead[];
};

export type ClientCommit = {
  readonly localSeq: number;
  readonly reads: CommitReads;
  readonly operations: readonly Operation[];
  /** Messages that are accepted together with the commit or not at all. */
  readonly sends?: readonly AcceptRequest[];
  readonly branch?: BranchId;
  readonly merge?: MergeContext;
  readonly codeCID?: string;
  /** The signed envelope. It is not part of the commit's meaning. */
  readonly invocation?: JsonObject;
};

/** The wire form, with encoded values. The log keeps this as `original`. */
export type EncodedCommit = FromSchema<typeof clientCommitSchema>;

const seqSchema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
export const localSeqSchema = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const;
export const entityIdSchema = {
  type: "string",
  minLength: 1,
  maxLength: spaceLimits.entityIdCharacters,
  pattern: entityIdPattern,
} as const;
/** The default branch is ""; every other branch has a name. */
export const branchIdSchema = { type: "string", pattern: "^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$" } as const;
const readPathSchema = {
  type: "array",
  maxItems: spaceLimits.pathSegments,
  items: { type: "string", maxLength: spaceLimits.pathCharacters },
} as const;

export const confirmedReadSchema = {
  type: "object",
  additionalProperties: false,
  required: ["id", "path", "seq"],
  properties: {
    id: entityIdSchema,
    branch: branchIdSchema,
    path: readPathSchema,
    seq: seqSchema,
    shallow: { type: "boolean" },
  },
} as const satisfies JSONSchema;

export const pendingReadSchema = {
  type: "object",
  additionalProperties: false,
  required: ["id", "path", "localSeq"],
  properties: {
    id: entityIdSchema,
    path: readPathSchema,
    localSeq: localSeqSchema,
    basisSeq: seqSchema,
    shallow: { type: "boolean" },
  },
} as const satisfies JSONSchema;

export const mergeContextSchema = {
  type: "object",
  additionalProperties: false,
  required: ["sourceBranch", "sourceSeq", "baseBranch", "baseSeq"],
  properties: { sourceBranch: branchIdSchema, sourceSeq: seqSchema, baseBranch: branchIdSchema, baseSeq: seqSchema },
} as const satisfies JSONSchema;

export const clientCommitSchema = {
  type: "object",
  additionalProperties: false,
  required: ["localSeq", "reads", "operations"],
  properties: {
    localSeq: localSeqSchema,
    reads: {
      type: "object",
      additionalProperties: false,
      required: ["confirmed", "pending"],
      properties: {
        confirmed: { type: "array", maxItems: spaceLimits.confirmedReadsPerCommit, items: confirmedReadSchema },
        pending: { type: "array", maxItems: spaceLimits.pendingReadsPerCommit, items: pendingReadSchema },
      },
    },
    operations: { type: "array", maxItems: spaceLimits.operationsPerCommit, items: operationSchema },
    sends: { type: "array", maxItems: spaceLimits.sendsPerCommit, items: acceptRequestSchema },
    branch: branchIdSchema,
    merge: mergeContextSchema,
    codeCID: { type: "string", minLength: 1, maxLength: spaceLimits.codeCidCharacters, pattern: "^[!-~]*$" },
    invocation: { type: "object" },
  },
} as const satisfies JSONSchema;

/** Decodes what passed the schema, and refuses what a schema cannot express. The boundary checks the size. */
export function readCommit(encoded: EncodedCommit): ClientCommit {
  const head = readCommitHead(encoded);
  return {
    ...head,
    operations: encoded.operations.map((operation, index) => readOperation(operation, `operations.${index}`)),
  };
}

/** All of a commit except its operations. These may be large and are read one by one, with readOperation. */
export function readCommitHead(encoded: EncodedCommit): Omit<ClientCommit, "operations"> {
  const { localSeq, reads, sends = [], branch, merge, codeCID, invocation } = encoded;
  checkCounts(encoded.operations, sends);
  reads.confirmed.forEach((read, index) => {
    checkEntityId(read.id, `reads.confirmed.${index}.id`);
    if (read.branch !== undefined) checkBranchId(read.branch, `reads.confirmed.${index}.branch`);
  });
  reads.pending.forEach((read, index) => {
    checkEntityId(read.id, `reads.pending.${index}.id`);
    if (read.localSeq >= localSeq) {
      const field = `reads.pending.${index}.localSeq`;
      throw new MeshError("invalid_request", "A pending read names a lower localSeq than its commit's.", { field });
    }
  });
  if (branch !== undefined) checkBranchId(branch, "branch");
  return {
    localSeq,
    reads,
    ...(encoded.sends !== undefined && { sends }),
    ...(branch !== undefined && { branch }),
    ...(merge !== undefined && { merge }),
    ...(codeCID !== undefined && { codeCID }),
    ...(invocation !== undefined && { invocation: invocation as JsonObject }),
  };
}

/** The wire form of a commit that was built here; throws a MeshError for a value that has none. */
export function encodeCommit(commit: ClientCommit): EncodedCommit {
  const { operations, ...rest } = commit;
  return { ...rest, operations: operations.map(encodeOperation) } as EncodedCommit;
}

/**
 * Two commits with one localSeq are the same if and only if these texts are equal. Every value has one encoding, so
 * equal texts mean equal commits; a new invocation or authorisation does not make another commit.
 */
export function canonicalCommitPayload(encoded: EncodedCommit): string {
  return joinCommitPayload(
    encoded,
    encoded.operations.map((operation) => canonicalJson(operation as JsonValue)),
  );
}

/** The same, where the canonical text of each operation is already available. */
export function joinCommitPayload(encoded: EncodedCommit, operations: readonly string[]): string {
  const { invocation: _, operations: __, ...others } = encoded;
  const members = Object.entries(others).map(([key, value]) => [key, canonicalJson(value as JsonValue)] as const);
  // The keys of a commit are few and in ASCII, so that any sort order equals that of UTF-16 units.
  const sorted = [...members, ["operations", `[${operations.join(",")}]`] as const].sort(([a], [b]) =>
    a < b ? -1 : 1,
  );
  return `{${sorted.map(([key, text]) => `"${key}":${text}`).join(",")}}`;
}

function checkCounts(operations: EncodedCommit["operations"], sends: readonly unknown[]): void {
  const field = "operations";
  if (operations.length === 0 && sends.length === 0) {
    throw new MeshError("invalid_request", "A commit has at least one operation or one send.", { field });
  }
  const patches = operations.reduce((count, operation) => count + (operation.patches?.length ?? 0), 0);
  if (patches > spaceLimits.patchesPerCommit) {
    const message = `A commit has at most ${spaceLimits.patchesPerCommit} patches.`;
    throw new MeshError("invalid_request", message, { field, limit: spaceLimits.patchesPerCommit });
  }
}

function checkEntityId(id: string, field: string): void {
  if (!isEntityId(id))
    throw new MeshError("invalid_request", "An entity id is scheme:rest, 1–512 characters.", { field });
}

function checkBranchId(branch: string, field: string): void {
  if (!isBranchId(branch)) throw new MeshError("invalid_name", undefined, { field });
}
