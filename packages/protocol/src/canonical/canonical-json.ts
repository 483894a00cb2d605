// Canonical JSON (RFC 8785): one text per value, so that a hash of the text stands for the value.
// The serialisation is the `canonicalize` package's; here lives the guard in front of it, because it would
// drop, convert or replace what JSON has no form for, and two different values would then hash alike.
import canonicalize from "canonicalize";
import type { JsonObject, JsonValue } from "../json/strict-json.ts";

/** The RFC 8785 text of a JSON value; a TypeError for anything that is not exactly JSON. */
export function canonicalJson(value: JsonValue): string {
  const quickly = writeQuickly(value, 0);
  if (quickly !== undefined) return quickly;
  assertJson(value);
  const text = canonicalize(value);
  if (text === undefined) throw new TypeError("not JSON: the value has no canonical form");
  return text;
}

/** Meta as the fingerprints see it: absent and empty are the same, and are the empty string. */
export function canonicalMeta(meta: JsonObject | undefined): string {
  if (meta === undefined) return "";
  if (meta === null || typeof meta !== "object" || Array.isArray(meta)) throw new TypeError("meta is not an object");
  const text = canonicalJson(meta);
  return text === "{}" ? "" : text;
}

/** Deeper values are rare; they are checked without recursion. */
const quickDepth = 64;

/**
 * Checks and writes in one pass a value that is plainly JSON, as nearly every value is: every commit and every send is
 * written this way before it is hashed. Undefined means that the value is not plain, not that it is wrong: the full
 * check and the package decide.
 */
function writeQuickly(value: unknown, depth: number): string | undefined {
  if (typeof value === "string") return quoteQuickly(value);
  // Numbers as ECMAScript writes them, which is what RFC 8785 asks for; −0 becomes 0.
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : undefined;
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value !== "object" || depth > quickDepth) return undefined;
  if (Object.getOwnPropertySymbols(value).length > 0) return undefined;
  return Array.isArray(value) ? writeArrayQuickly(value, depth) : writeObjectQuickly(value, depth);
}

/** Printable ASCII that needs no escape. */
const plainText = /^[ !#-[\]-~]*$/;

function quoteQuickly(text: string): string | undefined {
  if (plainText.test(text)) return `"${text}"`;
  return text.isWellFormed() ? JSON.stringify(text) : undefined;
}

function writeArrayQuickly(array: readonly unknown[], depth: number): string | undefined {
  if (Object.keys(array).length !== array.length) return undefined;
  let text = "";
  for (const item of array) {
    const written = writeQuickly(item, depth + 1);
    if (written === undefined) return undefined;
    text += text === "" ? written : `,${written}`;
  }
  return `[${text}]`;
}

function writeObjectQuickly(object: object, depth: number): string | undefined {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null) return undefined;
  let text = "";
  // Keys sorted by UTF-16 units, as RFC 8785 orders them.
  for (const key of Object.keys(object).sort()) {
    const name = quoteQuickly(key);
    const written = writeQuickly((object as Readonly<Record<string, unknown>>)[key], depth + 1);
    if (name === undefined || written === undefined) return undefined;
    text += text === "" ? `${name}:${written}` : `,${name}:${written}`;
  }
  return `{${text}}`;
}

/** An open array or object of the walk: its members, and how many of them have been checked. */
interface Frame {
  readonly container: object;
  readonly members: readonly unknown[];
  next: number;
}

/** Walks with a stack of its own, so that depth costs memory and never overflows the call stack. */
function assertJson(root: unknown): void {
  const open = new Set<object>();
  const frames: Frame[] = [];
  let value = root;
  for (;;) {
    if (typeof value === "object" && value !== null) {
      if (open.has(value)) throw new TypeError("not JSON: a value contains itself");
      open.add(value);
      frames.push({ container: value, members: membersOf(value), next: 0 });
    } else {
      assertScalar(value);
    }
    let frame = frames.at(-1);
    while (frame !== undefined && frame.next === frame.members.length) {
      open.delete(frame.container);
      frames.pop();
      frame = frames.at(-1);
    }
    if (frame === undefined) return;
    value = frame.members[frame.next];
    frame.next += 1;
  }
}

function assertScalar(value: unknown): void {
  if (value === null || typeof value === "boolean") return;
  if (typeof value === "string") {
    assertWellFormed(value);
  } else if (typeof value !== "number") {
    throw new TypeError(`not JSON: ${typeof value}`);
  } else if (!Number.isFinite(value)) {
    throw new TypeError("not JSON: a number that is not finite");
  }
}

function assertWellFormed(text: string): void {
  if (!text.isWellFormed()) throw new TypeError("not JSON: a lone surrogate");
}

function membersOf(container: object): unknown[] {
  if (Object.getOwnPropertySymbols(container).length > 0) throw new TypeError("not JSON: a symbol as a key");
  if (Array.isArray(container)) {
    // A hole in an array reads as undefined, which no JSON value is; the key count reveals a property beside the
    // elements.
    if (Object.keys(container).length !== container.length)
      throw new TypeError("not JSON: an array with holes or keys");
    return container;
  }
  const prototype: unknown = Object.getPrototypeOf(container);
  // Object.prototype of this realm or of another one is the only prototype that has none itself.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new TypeError("not JSON: an object with a class");
  }
  for (const key of Object.keys(container)) assertWellFormed(key);
  return Object.values(container);
}
