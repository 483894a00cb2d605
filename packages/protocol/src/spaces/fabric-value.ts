// The values that entities hold: JSON and three more leaves (bigint, undefined, bytes), their one JSON form on the wire
// and on disk, and their equality. Every value has exactly one encoding, so that canonical JSON of the encoding stands
// for the value. entity.ts defines documents and their size limits.
import { decodeBase64Url, encodeBase64Url } from "../encoding/base64url.ts";
import { MeshError } from "../errors/errors.ts";
import type { JsonObject, JsonValue } from "../json/strict-json.ts";

/** An object's keys have no order: two objects with the same keys and values are the same value. */
export type FabricObject = { readonly [key: string]: FabricValue };
export type FabricValue =
  | null
  | boolean
  | number
  | string
  | bigint
  | undefined
  | Uint8Array
  | readonly FabricValue[]
  | FabricObject;

/** How deeply arrays and objects may be nested; a leaf has depth 0, `[]` depth 1. */
export const maxFabricDepth = 128;
/** An escape takes two levels where the value has one, and a leaf's escape may be inside the deepest container. */
export const maxEncodedDepth = maxFabricDepth * 2 + 2;
/** Reading digits takes longer than linear time, so their number is limited. */
export const maxBigintDigits = 8_192;

const escapeKey = "/";
const tags = { bigint: "bigint@1", undefined: "undefined@1", bytes: "bytes@1", object: "object@1" } as const;
const bigintPattern = /^(0|-?[1-9][0-9]*)$/;

type ValuePath = (string | number)[];

/**
 * The JSON form of a value; throws a MeshError with the path for a value that has none. −0 becomes 0. Parts of the
 * value that are their own JSON form are shared, so neither may be changed afterwards.
 */
export function encodeFabric(value: FabricValue): JsonValue {
  return encodeAt(value, [], 0);
}

/**
 * The value of a JSON form, sharing parts of it where possible; throws a MeshError for anything that encodeFabric does
 * not write.
 */
export function decodeFabric(json: JsonValue): FabricValue {
  return decodeAt(json, [], 0);
}

/** `seen` is called with the number of keys that were listed, which may be large where the other value is small. */
export function fabricEqual(a: FabricValue, b: FabricValue, seen?: (keys: number) => void): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (isBytes(a) || isBytes(b)) return isBytes(a) && isBytes(b) && bytesEqual(a, b);
  if (isFabricArray(a) || isFabricArray(b)) {
    if (!isFabricArray(a) || !isFabricArray(b) || a.length !== b.length) return false;
    return a.every((item, index) => fabricEqual(item, b[index], seen));
  }
  const keys = Object.keys(a);
  seen?.(keys.length);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && fabricEqual(a[key], b[key], seen));
}

/** Bytes of any realm, including Node's Buffer. */
export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === "[object Uint8Array]";
}

export function isFabricArray(value: FabricValue): value is readonly FabricValue[] {
  return Array.isArray(value);
}

/** An object with keys: no array, no bytes, not null. */
export function isFabricObject(value: FabricValue): value is FabricObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}

/** `__proto__` is a key like any other here; an assignment would set the prototype instead. */
export function setOwn<T>(target: { [key: string]: T }, key: string, value: T): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}

/**
 * The depth of a value, counted until it exceeds `limit`. `seen` is called with the number of members of each
 * container.
 */
export function fabricDepth(value: FabricValue, limit = maxFabricDepth, seen?: (members: number) => void): number {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return 0;
  if (limit <= 0) return 1;
  let deepest = 0;
  const members: readonly FabricValue[] = Array.isArray(value) ? value : Object.values(value);
  seen?.(members.length);
  for (const member of members) {
    deepest = Math.max(deepest, fabricDepth(member, limit - 1, seen));
    if (deepest >= limit) break;
  }
  return deepest + 1;
}

function encodeAt(value: FabricValue, path: ValuePath, depth: number): JsonValue {
  switch (typeof value) {
    case "boolean":
      return value;
    case "string":
      return checkText(value, path);
    case "number":
      return checkNumber(value, path);
    case "bigint":
      return escapeLeaf(tags.bigint, checkDigits(String(value), path));
    case "undefined":
      return escapeLeaf(tags.undefined, null);
    case "object":
      break;
    default:
      throw refuse("invalid_request", `A ${typeof value} is no value that a space can hold.`, path);
  }
  if (value === null) return null;
  if (isBytes(value)) return escapeLeaf(tags.bytes, encodeBase64Url(value));
  checkDepth(depth, path);
  if (isFabricArray(value)) {
    checkPlainArray(value, path);
    return changedItems(value, (item) => encodeAt(item, path, depth + 1), path) as JsonValue;
  }
  checkPlainObject(value, path);
  const keys = Object.keys(value);
  const encoded = changedMembers(
    value,
    keys,
    (key, member) => {
      checkText(key, path);
      return encodeAt(member, path, depth + 1);
    },
    path,
  ) as { [key: string]: JsonValue };
  const isEscape = keys.length === 1 && keys[0] === escapeKey;
  return isEscape ? escapeLeaf(tags.object, encoded[escapeKey] as JsonValue) : encoded;
}

function checkPlainArray(value: readonly FabricValue[], path: ValuePath): void {
  // Holes, and properties beside the elements, have no JSON form.
  if (Object.keys(value).length !== value.length) {
    throw refuse("invalid_request", "An array with holes or keys is no value that a space can hold.", path);
  }
}

/** Returns the same array where no item changes: nearly all values are their own JSON form. */
function changedItems<T, R>(items: readonly T[], change: (item: T) => R, path: ValuePath): readonly T[] | readonly R[] {
  let changed: R[] | undefined;
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index] as T;
    path.push(index);
    const other = change(item);
    path.pop();
    if (changed === undefined && !Object.is(other, item)) changed = items.slice(0, index) as unknown as R[];
    changed?.push(other);
  }
  return changed ?? items;
}

/** Returns the same object where no member changes. */
function changedMembers<T, R>(
  members: { readonly [key: string]: T },
  keys: readonly string[],
  change: (key: string, member: T) => R,
  path: ValuePath,
): { readonly [key: string]: T } | { readonly [key: string]: R } {
  let changed: { [key: string]: R } | undefined;
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] as string;
    const member = members[key] as T;
    path.push(key);
    const other = change(key, member);
    path.pop();
    if (changed === undefined && !Object.is(other, member)) {
      changed = {};
      for (const before of keys.slice(0, index)) setOwn(changed, before, members[before] as unknown as R);
    }
    if (changed !== undefined) setOwn(changed, key, other);
  }
  return changed ?? members;
}

function decodeAt(json: JsonValue, path: ValuePath, depth: number): FabricValue {
  if (typeof json === "string") return checkText(json, path);
  if (typeof json === "number") return checkNumber(json, path);
  if (typeof json !== "object" || json === null) return json;
  const keys = Array.isArray(json) ? [] : Object.keys(json);
  const isEscape = keys.length === 1 && keys[0] === escapeKey;
  if (isEscape) return decodeEscape((json as JsonObject)[escapeKey] as JsonValue, path, depth);
  checkDepth(depth, path);
  if (Array.isArray(json)) {
    return changedItems(json, (item) => decodeAt(item, path, depth + 1), path) as FabricValue;
  }
  return changedMembers(
    json as { readonly [key: string]: JsonValue },
    keys,
    (key, member) => {
      checkText(key, path);
      return decodeAt(member, path, depth + 1);
    },
    path,
  ) as FabricValue;
}

function decodeEscape(inner: JsonValue, path: ValuePath, depth: number): FabricValue {
  const entries = typeof inner === "object" && inner !== null && !Array.isArray(inner) ? Object.entries(inner) : [];
  const [tag, content] = entries.length === 1 ? (entries[0] as [string, JsonValue]) : [undefined, null];
  switch (tag) {
    case tags.undefined:
      if (content === null) return undefined;
      break;
    case tags.bigint:
      if (typeof content === "string" && bigintPattern.test(content)) return BigInt(checkDigits(content, path));
      break;
    case tags.bytes: {
      const bytes = typeof content === "string" ? decodeBase64Url(content) : undefined;
      if (bytes !== undefined) return bytes;
      break;
    }
    case tags.object: {
      checkDepth(depth, path);
      path.push(escapeKey);
      const value = { [escapeKey]: decodeAt(content, path, depth + 1) };
      path.pop();
      return value;
    }
  }
  const known = Object.values(tags).join(", ");
  throw refuse("invalid_request", `An object whose only key is "/" holds one of ${known} in its one form.`, path);
}

function escapeLeaf(tag: string, content: JsonValue): JsonValue {
  return { [escapeKey]: { [tag]: content } };
}

function checkText(text: string, path: ValuePath): string {
  if (!text.isWellFormed()) throw refuse("lone_surrogate", undefined, path);
  return text;
}

function checkNumber(value: number, path: ValuePath): number {
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
    throw refuse("number_out_of_range", "A number is finite, and an integer beyond ±(2^53 − 1) is a bigint.", path);
  }
  // Negative zero plus zero is zero.
  return value + 0;
}

function checkDigits(digits: string, path: ValuePath): string {
  if (digits.length > maxBigintDigits) {
    throw refuse("number_out_of_range", `A bigint has at most ${maxBigintDigits} digits.`, path);
  }
  return digits;
}

function checkDepth(depth: number, path: ValuePath): void {
  if (depth >= maxFabricDepth) throw refuse("too_deep", `A value is at most ${maxFabricDepth} levels deep.`, path);
}

function checkPlainObject(value: object, path: ValuePath): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  // Object.prototype of this realm or of another one is the only prototype that has none itself.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (!isPlain || Object.getOwnPropertySymbols(value).length > 0) {
    throw refuse("invalid_request", "An object with a class or symbols is no value that a space can hold.", path);
  }
}

function refuse(
  code: "invalid_request" | "lone_surrogate" | "number_out_of_range" | "too_deep",
  message: string | undefined,
  path: ValuePath,
): MeshError {
  return new MeshError(code, message, { path: path.map(String) });
}

function bytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
