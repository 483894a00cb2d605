// Entities: their ids, their documents, branches, and the bounds on sizes and counts that server and replica share.
// How documents change is in apply.ts.
import { utf8Length } from "../encoding/utf8.ts";
import { MeshError } from "../errors/errors.ts";
import { parseOwnJsonText } from "../json/strict-json.ts";
import { isName } from "../messages/names.ts";
import { decodeFabric, encodeFabric, type FabricObject, type FabricValue, isFabricObject } from "./fabric-value.ts";

/** `scheme:rest`, for example `task:1`. */
export type EntityId = string;
/** Application data under `value`, metadata beside it. Paths start here. */
export type EntityDocument = FabricObject;
/** The default branch is the empty string. */
export type BranchId = string;
/** Keys from the document's root; an array's index in decimal digits. */
export type ReadPath = readonly string[];

export const defaultBranch: BranchId = "";
/** What people see for the default branch, and may write for it. No other branch gets this name. */
export const defaultBranchName = "main";

export const spaceLimits = {
  entityIdCharacters: 512,
  documentBytes: 1_048_576,
  commitBytes: 4_194_304,
  operationsPerCommit: 5_000,
  /** Of all its operations together. One patch may have to copy an array as large as a document. */
  patchesPerCommit: 5_000,
  spliceItems: 100_000,
  confirmedReadsPerCommit: 20_000,
  /** Fewer, because each is compared with every patch of the layers that it names. */
  pendingReadsPerCommit: 2_000,
  sendsPerCommit: 32,
  /** A path deeper than the deepest document reads nothing. */
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

/** A scheme and something behind the colon, without control characters, which no id needs and no log wants. */
export const entityIdPattern = "^[A-Za-z][A-Za-z0-9+._-]*:[^\\u0000-\\u001f\\u007f]+$";
const entityIdExpression = new RegExp(entityIdPattern, "u");

export function isEntityId(text: string): boolean {
  // Characters are code points, as JSON Schema counts them.
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

/** The branch that a caller means: left out, empty and `main` are the default one. */
export function readBranchId(text: string | undefined): BranchId {
  return text === undefined || text === defaultBranchName ? defaultBranch : text;
}

export function isEntityDocument(value: FabricValue): value is EntityDocument {
  return isFabricObject(value);
}

/** The text in which a document is stored and counted. `fitsDocument` judges its size. */
export function writeDocument(document: EntityDocument): string {
  // Fabric numbers have no integer that the strict reader refuses, so no marking is needed.
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

/** Whether a text's UTF-8 form has at most so many bytes; most texts are judged without being encoded. */
export function fitsBytes(text: string, maxBytes: number): boolean {
  if (text.length * 3 <= maxBytes) return true;
  return text.length <= maxBytes && utf8Length(text) <= maxBytes;
}
