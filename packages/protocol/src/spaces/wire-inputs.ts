// The requests about a space, as schemas of their inputs on HTTP and WebSocket. Each contains the name of the space; on
// HTTP it comes from the path. The parts of a commit are in commit.ts, and what a schema cannot express is checked
// where the input is read.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { MeshError } from "../errors/errors.ts";
import type { JsonValue } from "../json/strict-json.ts";
import { limits } from "../messages/limits.ts";
import { branchIdSchema, clientCommitSchema, entityIdSchema, localSeqSchema } from "./commit.ts";
import { type EntityDocument, fitsDocument, isEntityDocument, isEntityId, spaceLimits } from "./entity.ts";
import { decodeFabric } from "./fabric-value.ts";
import type { MergeResolutions } from "./merge.ts";

/** Not every store can hold U+0000, so no name may contain it. */
const withoutNul = "^[^\\u0000]*$";
const spaceName = { type: "string", minLength: 1, maxLength: limits.nameCharacters, pattern: withoutNul } as const;
const seq = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const limit = { type: "integer", minimum: 1, maximum: spaceLimits.pageItems } as const;
const opaque = { type: "string", minLength: 1, maxLength: 128, pattern: "^[!-~]+$" } as const;
const cursor = { type: "string", minLength: 1, maxLength: 4_096, pattern: withoutNul } as const;
/** Only the beginning of an id; the empty prefix matches every id. */
const idPrefix = { type: "string", maxLength: spaceLimits.entityIdCharacters, pattern: withoutNul } as const;
const newBranchName = { ...spaceName } as const;

function input<const R extends readonly string[], const P>(required: R, properties: P) {
  return { type: "object", additionalProperties: false, required, properties } as const;
}

const holder = { sessionId: opaque, sessionToken: opaque } as const;

export const spaceCreateInputSchema = input(["name"], { name: spaceName }) satisfies JSONSchema;
export type SpaceCreateInput = FromSchema<typeof spaceCreateInputSchema>;

export const spaceListInputSchema = input([], { after: spaceName, limit }) satisfies JSONSchema;
export type SpaceListInput = FromSchema<typeof spaceListInputSchema>;

/** Only an owner may change the policy. */
export const spacePolicyInputSchema = input(["space", "signedWrites"], {
  space: spaceName,
  signedWrites: { type: "string", enum: ["optional", "required"] },
}) satisfies JSONSchema;
export type SpacePolicyInput = FromSchema<typeof spacePolicyInputSchema>;

/** The same openId again gets the same session and token while that session is current. */
export const sessionOpenInputSchema = input(["space", "openId"], {
  space: spaceName,
  openId: { ...opaque, maxLength: spaceLimits.openIdCharacters },
  ...holder,
  seenSeq: seq,
}) satisfies JSONSchema;
export type SessionOpenInput = FromSchema<typeof sessionOpenInputSchema>;

export const commitInputSchema = input(["space", "sessionId", "sessionToken", "commit"], {
  space: spaceName,
  ...holder,
  commit: clientCommitSchema,
}) satisfies JSONSchema;
export type CommitInput = FromSchema<typeof commitInputSchema>;

export const verdictInputSchema = input(["space", "sessionId", "localSeq"], {
  space: spaceName,
  sessionId: opaque,
  localSeq: localSeqSchema,
}) satisfies JSONSchema;
export type VerdictInput = FromSchema<typeof verdictInputSchema>;

/** Replaces what the session watches on the branch. Frames begin after `seenSeq`. */
export const watchInputSchema = input(["space", "sessionId", "sessionToken"], {
  space: spaceName,
  ...holder,
  branch: branchIdSchema,
  ids: { type: "array", maxItems: spaceLimits.watchedIds, items: entityIdSchema },
  prefixes: { type: "array", maxItems: spaceLimits.watchedPrefixes, items: idPrefix },
  seenSeq: seq,
}) satisfies JSONSchema;
export type WatchInput = FromSchema<typeof watchInputSchema>;

/** The field is `entityId` and not `id`, because `id` on a frame is that of the request. */
export const entityInputSchema = input(["space", "entityId"], {
  space: spaceName,
  entityId: entityIdSchema,
  branch: branchIdSchema,
  atSeq: seq,
}) satisfies JSONSchema;
export type EntityInput = FromSchema<typeof entityInputSchema>;

/** Either ids or a prefix. A listing by prefix is not a transactional read. */
export const queryInputSchema = input(["space"], {
  space: spaceName,
  ids: { type: "array", minItems: 1, maxItems: spaceLimits.idsPerQuery, items: entityIdSchema },
  prefix: idPrefix,
  branch: branchIdSchema,
  atSeq: seq,
  cursor,
  limit,
}) satisfies JSONSchema;
export type QueryInput = FromSchema<typeof queryInputSchema>;

export type ReadQuery =
  | { readonly kind: "ids"; readonly ids: readonly string[] }
  | { readonly kind: "prefix"; readonly prefix: string; readonly cursor: string | undefined };

/** Without ids and without a prefix, every entity is listed. */
export function readQuery({ ids, prefix, cursor }: QueryInput): ReadQuery {
  if (ids === undefined) return { kind: "prefix", prefix: prefix ?? "", cursor };
  if (prefix !== undefined || cursor !== undefined) {
    throw new MeshError("invalid_request", "A query has ids, or a prefix and a cursor, not both.", { field: "ids" });
  }
  return { kind: "ids", ids };
}

/** From the beginning, after a seq, before one, or with `newest` from the end. */
export const logInputSchema = input(["space"], {
  space: spaceName,
  after: seq,
  before: seq,
  newest: { type: "boolean" },
  limit,
}) satisfies JSONSchema;
export type LogInput = FromSchema<typeof logInputSchema>;

export function readLogCursor({ after, before, newest = false }: LogInput): { after: number } | { before: number } {
  if ([after !== undefined, before !== undefined, newest].filter(Boolean).length > 1) {
    const message = "after, before and newest exclude each other: a page of the log has one place.";
    throw new MeshError("invalid_request", message, { field: before === undefined ? "newest" : "before" });
  }
  if (newest) return { before: Number.MAX_SAFE_INTEGER };
  return before === undefined ? { after: after ?? 0 } : { before };
}

/** Reads what a commit's invocationRef or authorizationRef names. */
export const invocationInputSchema = input(["space", "ref"], { space: spaceName, ref: opaque }) satisfies JSONSchema;
export type InvocationInput = FromSchema<typeof invocationInputSchema>;

export const branchCreateInputSchema = input(["space", "sessionId", "sessionToken", "localSeq", "name"], {
  space: spaceName,
  ...holder,
  localSeq: localSeqSchema,
  name: newBranchName,
  fromBranch: branchIdSchema,
  atSeq: seq,
  invocation: { type: "object" },
}) satisfies JSONSchema;
export type BranchCreateInput = FromSchema<typeof branchCreateInputSchema>;

export const branchDeleteInputSchema = input(["space", "sessionId", "sessionToken", "localSeq", "name"], {
  space: spaceName,
  ...holder,
  localSeq: localSeqSchema,
  name: newBranchName,
  invocation: { type: "object" },
}) satisfies JSONSchema;
export type BranchDeleteInput = FromSchema<typeof branchDeleteInputSchema>;

export const branchListInputSchema = input(["space"], {
  space: spaceName,
  after: branchIdSchema,
  limit,
}) satisfies JSONSchema;
export type BranchListInput = FromSchema<typeof branchListInputSchema>;

export const mergeProposeInputSchema = input(["space", "source", "target"], {
  space: spaceName,
  source: branchIdSchema,
  target: branchIdSchema,
  resolutions: { type: "object", maxProperties: spaceLimits.resolutionsPerMerge },
}) satisfies JSONSchema;
export type MergeProposeInput = FromSchema<typeof mergeProposeInputSchema>;

/** Decoded resolutions: a document, or null for a deletion. */
export function readResolutions(resolutions: { readonly [id: string]: unknown } | undefined): MergeResolutions {
  const read = new Map<string, EntityDocument | null>();
  for (const [id, encoded] of Object.entries(resolutions ?? {})) {
    const field = `resolutions.${id}`;
    const value = encoded === null ? null : decodeFabric(encoded as JsonValue);
    if (!isEntityId(id) || (value !== null && !isEntityDocument(value))) {
      throw new MeshError("invalid_request", "A resolution is a document or null, under an entity id.", { field });
    }
    if (value !== null && !fitsDocument(JSON.stringify(encoded))) {
      throw new MeshError("payload_too_large", "A document is at most 1 MiB.", {
        field,
        limit_bytes: spaceLimits.documentBytes,
      });
    }
    read.set(id, value);
  }
  return read;
}

export const diffInputSchema = input(["space", "source", "target"], {
  space: spaceName,
  source: branchIdSchema,
  target: branchIdSchema,
}) satisfies JSONSchema;
export type DiffInput = FromSchema<typeof diffInputSchema>;
