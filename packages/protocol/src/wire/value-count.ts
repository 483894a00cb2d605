// Counts the values in a JSON text before it is parsed: a megabyte of text can hold half a million values, each of
// which costs far more than its bytes, and parsing cannot be interrupted.
// Why: docs/decisions/0119.
import { MeshError } from "../errors/errors.ts";
import { limits } from "../messages/limits.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;

/** A shorter text cannot hold more values than are allowed. */
const looked = limits.jsonMembers;

/**
 * The refusal of a request with more members of objects, or more values, than any request may have. It takes linear
 * time and does not check that the text is JSON: the reader refuses what is not.
 */
export function refuseManyValues(bytes: Uint8Array): MeshError | undefined {
  if (bytes.length < looked) return undefined;
  let members = 0;
  let separators = 0;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index];
    if (byte === QUOTE) index = endOfString(bytes, index + 1);
    else if (byte === COMMA) separators += 1;
    else if (byte === COLON) members += 1;
  }
  if (members <= limits.jsonMembers && separators <= limits.jsonValues) return undefined;
  const message = `A request holds at most ${limits.jsonMembers} members of objects and ${limits.jsonValues} values; send it in parts.`;
  return new MeshError("payload_too_large", message, {
    limit_members: limits.jsonMembers,
    limit_values: limits.jsonValues,
  });
}

/** The index of the closing quote; of the end of the text where there is none. */
function endOfString(bytes: Uint8Array, start: number): number {
  let index = start;
  while (index < bytes.length && bytes[index] !== QUOTE) index += bytes[index] === BACKSLASH ? 2 : 1;
  return index;
}
