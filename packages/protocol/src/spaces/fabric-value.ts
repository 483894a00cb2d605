// The values that entities hold: JSON and three more leaves (bigint, undefined, bytes), their one JSON form on the wire
// and on disk, and their equality. Every value has exactly one encoding, so that canonical JSON of the encoding stands
// for the value. What a document is, and how large it may be, is in entity.ts.
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

/** Arrays and objects inside one another; a leaf has depth 0, `[]` depth 1. */
export const maxFabricDepth = 128;
/** An escape costs two levels where the value has one, and a leaf's escape stands below the deepest container. */
export const maxEncodedDepth = maxFabricDepth * 2 + 2;
/** Reading digits takes longer than linear time, so their number is bounded. */
export const maxBigintDigits = 8_192;

const escapeKey = "/";
const tags = { bigint: "bigint@1", undefined: "undefined@1", bytes: "bytes@1", object: "object@1" } as const;
const bigintPattern = /^(0|-?[1-9][0-9]*)$/;

type Place = (string | number)[];

/**
 * The JSON form; a MeshError that names the place for what has none. −0 becomes 0. Shares with the value whatever is its own
 * JSON form, so that neither is to be changed.
 */
export function encodeFabric(value: FabricValue): JsonValue {
  return encodeAt(value, [], 0);
}

/** The value of a JSON form, which shares with it what it can; a MeshError for anything that encodeFabric does not write. */
export function decodeFabric(json: JsonValue): FabricValue {
  return decodeAt(json, [], 0);
}

/** `seen` is told how many keys were listed, which may be many where the other value is small. */
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

/** Bytes of any realm, Node's Buffer among them. */
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

/** `__proto__` is a key like any other: an assignment would reach the prototype instead. */
export function setOwn<T>(target: { [key: string]: T }, key: string, value: T): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}

/** How deep a value is, counted until it passes `limit`. `seen` is told how many members each container has. */
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

function encodeAt(value: FabricValue, place: Place, depth: number): JsonValue {
  switch (typeof value) {
    case "boolean":
      return value;
    case "string":
      return checkText(value, place);
    case "number":
      return checkNumber(value, place);
    case "bigint":
      return escapeLeaf(tags.bigint, checkDigits(String(value), place));
    case "undefined":
      return escapeLeaf(tags.undefined, null);
    case "object":
      break;
    default:
      throw refuse("invalid_request", `A ${typeof value} is no value that a space can hold.`, place);
  }
  if (value === null) return null;
  if (isBytes(value)) return escapeLeaf(tags.bytes, encodeBase64Url(value));
  checkDepth(depth, place);
  if (isFabricArray(value)) {
    checkPlainArray(value, place);
    return changedItems(value, (item) => encodeAt(item, place, depth + 1), place) as JsonValue;
  }
  checkPlainObject(value, place);
  const keys = Object.keys(value);
  const encoded = changedMembers(
    value,
    keys,
    (key, member) => {
      checkText(key, place);
      return encodeAt(member, place, depth + 1);
    },
    place,
  ) as { [key: string]: JsonValue };
  const isEscape = keys.length === 1 && keys[0] === escapeKey;
  return isEscape ? escapeLeaf(tags.object, encoded[escapeKey] as JsonValue) : encoded;
}

function checkPlainArray(value: readonly FabricValue[], place: Place): void {
  // Holes and properties beside the elements have no JSON form.
  if (Object.keys(value).length !== value.length) {
    throw refuse("invalid_request", "An array with holes or keys is no value that a space can hold.", place);
  }
}

/** The same array where no item becomes another one: nearly all values are their own JSON. */
function changedItems<T, R>(items: readonly T[], change: (item: T) => R, place: Place): readonly T[] | readonly R[] {
  let changed: R[] | undefined;
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index] as T;
    place.push(index);
    const other = change(item);
    place.pop();
    if (changed === undefined && !Object.is(other, item)) changed = items.slice(0, index) as unknown as R[];
    changed?.push(other);
  }
  return changed ?? items;
}

/** The same object where no member becomes another one. */
function changedMembers<T, R>(
  members: { readonly [key: string]: T },
  keys: readonly string[],
  change: (key: string, member: T) => R,
  place: Place,
): { readonly [key: string]: T } | { readonly [key: string]: R } {
  let changed: { [key: string]: R } | undefined;
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] as string;
    const member = members[key] as T;
    place.push(key);
    const other = change(key, member);
    place.pop();
    if (changed === undefined && !Object.is(other, member)) {
      changed = {};
      for (const before of keys.slice(0, index)) setOwn(changed, before, members[before] as unknown as R);
    }
    if (changed !== undefined) setOwn(changed, key, other);
  }
  return changed ?? members;
}

function decodeAt(json: JsonValue, place: Place, depth: number): FabricValue {
  if (typeof json === "string") return checkText(json, place);
  if (typeof json === "number") return checkNumber(json, place);
  if (typeof json !== "object" || json === null) return json;
  const keys = Array.isArray(json) ? [] : Object.keys(json);
  const isEscape = keys.length === 1 && keys[0] === escapeKey;
  if (isEscape) return decodeEscape((json as JsonObject)[escapeKey] as JsonValue, place, depth);
  checkDepth(depth, place);
  if (Array.isArray(json)) {
    return changedItems(json, (item) => decodeAt(item, place, depth + 1), place) as FabricValue;
  }
  return changedMembers(
    json as { readonly [key: string]: JsonValue },
    keys,
    (key, member) => {
      checkText(key, place);
      return decodeAt(member, place, depth + 1);
    },
    place,
  ) as FabricValue;
}

function decodeEscape(inner: JsonValue, place: Place, depth: number): FabricValue {
  const entries = typeof inner === "object" && inner !== null && !Array.isArray(inner) ? Object.entries(inner) : [];
  const [tag, content] = entries.length === 1 ? (entries[0] as [string, JsonValue]) : [undefined, null];
  switch (tag) {
    case tags.undefined:
      if (content === null) return undefined;
      break;
    case tags.bigint:
      if (typeof content === "string" && bigintPattern.test(content)) return BigInt(checkDigits(content, place));
      break;
    case tags.bytes: {
      const bytes = typeof content === "string" ? decodeBase64Url(content) : undefined;
      if (bytes !== undefined) return bytes;
      break;
    }
    case tags.object: {
      checkDepth(depth, place);
      place.push(escapeKey);
      const value = { [escapeKey]: decodeAt(content, place, depth + 1) };
      place.pop();
      return value;
    }
  }
  const known = Object.values(tags).join(", ");
  throw refuse("invalid_request", `An object whose only key is "/" holds one of ${known} in its one form.`, place);
}

function escapeLeaf(tag: string, content: JsonValue): JsonValue {
  return { [escapeKey]: { [tag]: content } };
}

function checkText(text: string, place: Place): string {
  if (!text.isWellFormed()) throw refuse("lone_surrogate", undefined, place);
  return text;
}

function checkNumber(value: number, place: Place): number {
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
    throw refuse("number_out_of_range", "A number is finite, and an integer beyond ±(2^53 − 1) is a bigint.", place);
  }
  // Negative zero plus zero is zero.
  return value + 0;
}

function checkDigits(digits: string, place: Place): string {
  if (digits.length > maxBigintDigits) {
    throw refuse("number_out_of_range", `A bigint has at most ${maxBigintDigits} digits.`, place);
  }
  return digits;
}

function checkDepth(depth: number, place: Place): void {
  if (depth >= maxFabricDepth) throw refuse("too_deep", `A value is at most ${maxFabricDepth} levels deep.`, place);
}

function checkPlainObject(value: object, place: Place): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  // Object.prototype of this realm or of another one: the only prototype without a prototype.
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (!isPlain || Object.getOwnPropertySymbols(value).length > 0) {
    throw refuse("invalid_request", "An object with a class or symbols is no value that a space can hold.", place);
  }
}

function refuse(
  code: "invalid_request" | "lone_surrogate" | "number_out_of_range" | "too_deep",
  message: string | undefined,
  place: Place,
): MeshError {
  return new MeshError(code, message, { path: place.map(String) });
}

function bytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
