// Entities: their ids, their documents, branches, and the limits on sizes and counts that server and replica share.
// apply.ts changes documents.
import { utf8Length } from "../encoding/utf8.ts";
import { MeshError } from "../errors/errors.ts";
import { parseOwnJsonText } from "../json/strict-json.ts";
import { isName } from "../messages/names.ts";
import { decodeFabric, encodeFabric, type FabricObject, type FabricValue, isFabricObject } from "./fabric-value.ts";

/** `scheme:rest`, for example `task:1`. */
export type EntityId = string;
/** Application data under `value`, with metadata beside it. Paths start here. */
export type EntityDocument = FabricObject;
/** The default branch is the empty string. */
export type BranchId = string;
/** Keys from the document's root; an index of an array in decimal digits. */
export type ReadPath = readonly string[];

export const defaultBranch: BranchId = "";
/** The name of the default branch for people. No other branch gets this name. */
export const defaultBranchName = "main";

export const spaceLimits = {
  entityIdCharacters: 512,
  documentBytes: 1_048_576,
  commitBytes: 4_194_304,
  operationsPerCommit: 5_000,
  /** The patches of all operations of a commit together. One patch may have to copy an array as large as a document. */
  patchesPerCommit: 5_000,
  spliceItems: 100_000,
  confirmedReadsPerCommit: 20_000,
  /** Fewer, because each read is compared with every patch of the layers that it names. */
  pendingReadsPerCommit: 2_000,
  sendsPerCommit: 32,
  /** A path deeper than the deepest document cannot read anything. */
  pathSegments: 128,
  pathCharacters: 8_192,
  branchDepth: 8,
  idsPerQuery: 1_000,
  watchedIds: 10_000,
  watchedPrefixes: 1_000,
  pageItems: 1_000,
  pageItemsDefault: 100,
  openIdCharacters: 128,
  codeCidCharacters: 256,
  resolutionsPerMerge: 1_000,
} as const;

/** A scheme, a colon and at least one more character, without control characters, which would be dangerous in logs. */
export const entityIdPattern = "^[A-Za-z][A-Za-z0-9+._-]*:[^\\u0000-\\u001f\\u007f]+$";
const entityIdExpression = new RegExp(entityIdPattern, "u");

export function isEntityId(text: string): boolean {
  // Characters are code points, as in JSON Schema.
  if (text.length > spaceLimits.entityIdCharacters && [...text].length > spaceLimits.entityIdCharacters) return false;
  return text.isWellFormed() && entityIdExpression.test(text);
}

export function isBranchId(text: string): boolean {
  return text === defaultBranch || isName(text);
}

/** A name that a new branch may have. */
export function isNewBranchName(text: string): boolean {
  return isName(text) && text !== defaultBranchName;
}

/** The branch that a caller means: absent, empty and `main` are the default branch. */
export function readBranchId(text: string | undefined): BranchId {
  return text === undefined || text === defaultBranchName ? defaultBranch : text;
}

export function isEntityDocument(value: FabricValue): value is EntityDocument {
  return isFabricObject(value);
}

/** The text that is stored for a document and whose size counts. `fitsDocument` checks the size. */
export function writeDocument(document: EntityDocument): string {
  // Encoded numbers are never integers that the strict reader refuses, so no marking is needed.
  return JSON.stringify(encodeFabric(document));
}

export function readDocument(text: string): EntityDocument {
  const value = decodeFabric(parseOwnJsonText(text));
  if (!isEntityDocument(value)) throw new MeshError("invalid_request", "A document is an object.");
  return value;
}

export function fitsDocument(text: string): boolean {
  return fitsBytes(text, spaceLimits.documentBytes);
}

/** Whether a text's UTF-8 form has at most this many bytes; most texts are judged without being encoded. */
export function fitsBytes(text: string, maxBytes: number): boolean {
  if (text.length * 3 <= maxBytes) return true;
  return text.length <= maxBytes && utf8Length(text) <= maxBytes;
}
