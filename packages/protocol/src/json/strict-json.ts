// The one JSON reader for input from outside (HTTP bodies, WebSocket frames, files that others wrote), and a writer
// whose every text the reader accepts. The reader takes RFC 8259 JSON and refuses what two readers could understand
// differently: bytes that are not UTF-8, a byte order mark, duplicate keys, lone surrogates, integers that a double
// cannot hold, numbers that overflow, too much depth. Rules about fields (0x00 in a string, unknown names, sizes of
// parts) are with the messages.
import { utf8Length } from "../encoding/utf8.ts";
import { type JsonObject, type JsonOffence, type JsonValue, readByGrammar } from "./grammar-reader.ts";

export type { JsonObject, JsonValue } from "./grammar-reader.ts";

export interface StrictJsonLimits {
  /** Size of the document in UTF-8 bytes; absent: no limit. */
  readonly maxBytes?: number;
  /** How deeply arrays and objects may be nested; a scalar has depth 0, `[]` depth 1. */
  readonly maxDepth: number;
}

export type StrictJsonReason = "too_large" | "invalid_utf8" | JsonOffence["reason"];

const offences: Readonly<Record<StrictJsonReason, string>> = {
  too_large: "it is too large",
  invalid_utf8: "it is not UTF-8",
  invalid_json: "it is no JSON",
  too_deep: "it is nested too deeply",
  duplicate_key: "a key stands twice in one object",
  lone_surrogate: "half of a surrogate pair stands alone",
  number_out_of_range: "a number is out of range",
};

/** `offset` counts bytes when bytes were read, and UTF-16 code units when text was. */
export class StrictJsonError extends Error {
  override readonly name = "StrictJsonError";
  readonly reason: StrictJsonReason;
  readonly offset: number;
  readonly path: readonly (string | number)[];

  constructor(reason: StrictJsonReason, offset: number, path: readonly (string | number)[] = []) {
    super(`JSON refused: ${offences[reason]} (offset ${offset}).`);
    this.reason = reason;
    this.offset = offset;
    this.path = path;
  }
}

// ignoreBOM keeps a byte order mark in the text, where the grammar refuses it.
const fatalDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const replacingDecoder = new TextDecoder("utf-8", { ignoreBOM: true });
export function parseStrictJson(bytes: Uint8Array, limits: StrictJsonLimits): JsonValue {
  if (limits.maxBytes !== undefined && bytes.length > limits.maxBytes) {
    throw new StrictJsonError("too_large", limits.maxBytes);
  }
  // Text decoded from UTF-8 has no lone surrogates except those that escapes write.
  const text = decodeUtf8(bytes);
  return readText(text, true, limits.maxDepth, (offset) => utf8Length(text.slice(0, offset)));
}

export function parseStrictJsonText(text: string, limits: StrictJsonLimits): JsonValue {
  // A code unit takes one to three bytes, so most texts are judged without being encoded.
  const { maxBytes } = limits;
  if (maxBytes !== undefined && text.length * 3 > maxBytes && (text.length > maxBytes || utf8Length(text) > maxBytes)) {
    throw new StrictJsonError("too_large", Math.min(maxBytes, text.length));
  }
  return readText(text, text.isWellFormed(), limits.maxDepth, (offset) => offset);
}

/**
 * Reads JSON that we wrote and stored ourselves, for example canonical text. Any depth is allowed unless `maxDepth`
 * says otherwise, and large integers are the doubles that were written. JSON.parse is no substitute (see
 * `countMembersInText`).
 */
export function parseOwnJsonText(text: string, maxDepth: number = Number.MAX_SAFE_INTEGER): JsonValue {
  // Without an escape no key can be misread, and text that we wrote, of any depth, needs no other proof.
  const isOurs = maxDepth === Number.MAX_SAFE_INTEGER && !text.includes("\\");
  const quickly = isOurs ? parseOrUndefined(text) : undefined;
  if (quickly !== undefined) return quickly;
  return parseStrictJsonText(markLargeIntegers(text), { maxDepth });
}

/**
 * JSON text that the strict reader accepts. The text of JSON.stringify is not accepted when it has a number like 1e16.
 */
export function writeStrictJson(value: JsonValue | object): string {
  return markLargeIntegers(JSON.stringify(value));
}

/**
 * JSON.stringify writes doubles from 2^53 to 1e21 as integers, which the strict reader refuses; an exponent marks them
 * as doubles. Most texts have none. The text is scanned step by step, because a regular expression that looks for
 * strings would start again at every quote of a text that is not JSON.
 */
function markLargeIntegers(text: string): string {
  if (!holdsLongNumber(text)) return text;
  let marked = "";
  let markedEnd = 0;
  let index = 0;
  while (index < text.length) {
    if (text.charCodeAt(index) === QUOTE) {
      const closing = findClosingQuote(text, index + 1);
      if (closing < 0) break;
      index = closing + 1;
    } else if (isDigit(text, index)) {
      const digitsEnd = endOfDigits(text, index);
      const end = endOfNumber(text, digitsEnd);
      if (end === digitsEnd && !Number.isSafeInteger(Number(text.slice(index, end)))) {
        marked += `${text.slice(markedEnd, end)}e0`;
        markedEnd = end;
      }
      index = end;
    } else {
      index += 1;
    }
  }
  return marked + text.slice(markedEnd);
}

/** The digits of the smallest integer that a double cannot hold. */
const LARGE_INTEGER_DIGITS = 16;

/**
 * A run of this many digits contains at least one position that is a multiple of their number, so only those positions
 * are checked. Digits that begin like a number count; those of an id or a hash do not, because they follow a quote or a
 * letter.
 */
function holdsLongNumber(text: string): boolean {
  for (let index = LARGE_INTEGER_DIGITS - 1; index < text.length; index += LARGE_INTEGER_DIGITS) {
    if (!isDigit(text, index)) continue;
    let start = index;
    while (isDigit(text, start - 1)) start -= 1;
    const end = endOfDigits(text, index);
    if (end - start >= LARGE_INTEGER_DIGITS && beginsNumber(text, start)) return true;
    // The digits of this run have been checked: go on with the next position behind them.
    index += Math.floor((end - 1 - index) / LARGE_INTEGER_DIGITS) * LARGE_INTEGER_DIGITS;
  }
  return false;
}

function beginsNumber(text: string, digitsStart: number): boolean {
  const start = text.charCodeAt(digitsStart - 1) === MINUS ? digitsStart - 1 : digitsStart;
  return start === 0 || "[:, \n\r\t".includes(text.charAt(start - 1));
}

/** False before the start and past the end. */
function isDigit(text: string, index: number): boolean {
  const code = text.charCodeAt(index);
  return code >= 0x30 && code <= 0x39;
}

function endOfDigits(text: string, start: number): number {
  let end = start;
  while (isDigit(text, end)) end += 1;
  return end;
}

/** The end of the fraction and exponent that follow the digits. */
function endOfNumber(text: string, digitsEnd: number): number {
  let end = digitsEnd;
  while (isDigit(text, end) || (end < text.length && ".eE+-".includes(text.charAt(end)))) end += 1;
  return end;
}

function readText(
  text: string,
  isWellFormed: boolean,
  maxDepth: number,
  offsetToReport: (offset: number) => number,
): JsonValue {
  if (!Number.isInteger(maxDepth) || maxDepth < 0) throw new RangeError("maxDepth must be a whole number");
  const quickly = isWellFormed ? readQuickly(text, maxDepth) : undefined;
  if (quickly !== undefined) return quickly;
  const reading = readByGrammar(text, maxDepth);
  if (reading.offence === undefined) return reading.value;
  const { reason, offset, path } = reading.offence;
  throw new StrictJsonError(reason, offsetToReport(offset), path);
}

/**
 * The engine's own parser checks the grammar and builds the value; two cheap passes prove the rest. In valid JSON every
 * colon outside a string belongs to one member, so the value has as many keys as the text has such colons, unless a key
 * came twice. Undefined means unproven, not wrong.
 */
function readQuickly(text: string, maxDepth: number): JsonValue | undefined {
  const memberCount = countMembersInText(text, maxDepth);
  if (memberCount === undefined) return undefined;
  const value = parseOrUndefined(text);
  if (value === undefined) return undefined;
  return countMembersIfPlain(value, text.includes("\\u")) === memberCount ? value : undefined;
}

function parseOrUndefined(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const QUOTE = 0x22;
const MINUS = 0x2d;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
/** `[` and `]` differ from `{` and `}` in this one bit. */
const BRACE_BIT = 0x20;

/**
 * Counts colons outside strings. Undefined beyond the depth limit, in an open string, or when a key has an escape: V8
 * can decode such a key as another one that it met in an object of the same shape (nodejs/node issue 63785). For a text
 * that is not JSON the number has no meaning. Each key is searched once, for its own colon.
 */
function countMembersInText(text: string, maxDepth: number): number | undefined {
  let count = 0;
  let depth = 0;
  let keyStart = -1;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      keyStart = index;
      index = findClosingQuote(text, index + 1);
      if (index < 0) return undefined;
    } else if (code === COLON) {
      count += 1;
      if (keyStart < 0 || hasBackslash(text, keyStart, index)) return undefined;
      keyStart = -1;
    } else if ((code | BRACE_BIT) === OPEN_OBJECT) {
      depth += 1;
      if (depth > maxDepth) return undefined;
    } else if ((code | BRACE_BIT) === CLOSE_OBJECT) {
      depth -= 1;
    }
  }
  return count;
}

/**
 * Steps through the characters, because keys are short and because V8 may hoist a search of the whole text into the
 * loop.
 */
function hasBackslash(text: string, start: number, end: number): boolean {
  for (let index = start; index < end; index += 1) {
    if (text.charCodeAt(index) === BACKSLASH) return true;
  }
  return false;
}

/** Keys and short strings are stepped through; in a long string the engine's own search finds the quotes. */
const STEPPED_CHARACTERS = 24;

function findClosingQuote(text: string, start: number): number {
  let index = start;
  for (const steppedEnd = Math.min(start + STEPPED_CHARACTERS, text.length); index < steppedEnd; index += 1) {
    const code = text.charCodeAt(index);
    if (code === QUOTE) return index;
    if (code === BACKSLASH) index += 1;
  }
  for (;;) {
    index = text.indexOf('"', index);
    if (index < 0) return -1;
    let runStart = index;
    while (text.charCodeAt(runStart - 1) === BACKSLASH) runStart -= 1;
    // A quote is escaped when an odd number of backslashes precedes it; the opening quote ends any such run.
    if ((index - runStart) % 2 === 0) return index;
    index += 1;
  }
}

/** From this many keys on, V8 stores a parsed object as a hash table. */
const hashTableKeys = 1_024;

/**
 * The number of keys of all objects inside; undefined when a number is suspect, or a string where escapes can hide a
 * surrogate.
 */
function countMembersIfPlain(root: JsonValue, mayHideSurrogates: boolean): number | undefined {
  let count = 0;
  const pending: (JsonValue[] | JsonObject)[] = [];
  let members: JsonValue[] = [root];
  for (;;) {
    for (const member of members) {
      if (typeof member === "object") {
        if (member !== null) pending.push(member);
      } else if (typeof member === "number") {
        if (member > Number.MAX_SAFE_INTEGER || member < Number.MIN_SAFE_INTEGER) return undefined;
      } else if (mayHideSurrogates && typeof member === "string" && !member.isWellFormed()) {
        return undefined;
      }
    }
    const container = pending.pop();
    if (container === undefined) return count;
    if (Array.isArray(container)) {
      members = container;
    } else {
      // Keys before values: V8 finds the values of a new shape faster once its keys have been listed. An object with
      // many keys is a hash table, whose values take as long to list as its keys did, and much less time to look up one
      // by one.
      const keys = Object.keys(container);
      count += keys.length;
      members = keys.length > hashTableKeys ? keys.map((key) => container[key] as JsonValue) : Object.values(container);
    }
  }
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return fatalDecoder.decode(bytes);
  } catch {
    throw new StrictJsonError("invalid_utf8", findInvalidUtf8(bytes));
  }
}

/** Finds the first replacement character that is not in the bytes themselves: it marks the first invalid sequence. */
function findInvalidUtf8(bytes: Uint8Array): number {
  let offset = 0;
  for (const character of replacingDecoder.decode(bytes)) {
    const code = character.codePointAt(0) ?? 0;
    const isReplacement = code === 0xfffd;
    if (isReplacement && (bytes[offset] !== 0xef || bytes[offset + 1] !== 0xbf || bytes[offset + 2] !== 0xbd)) break;
    offset += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4;
  }
  return offset;
}
