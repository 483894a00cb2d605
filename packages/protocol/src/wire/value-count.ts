// How many values a JSON text holds, judged before it is parsed: a megabyte of text can be half a million values, each of
// which costs far more than its bytes, and parsing cannot be interrupted.
// Why: docs/decisions/0119.
import { MeshError } from "../errors/errors.ts";
import { limits } from "../messages/limits.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;

/** From so many bytes on, a text can hold more than is allowed. */
const looked = limits.jsonMembers;

/**
 * The refusal of a request with more members of objects, or more values, than any may hold. In linear time, and without
 * judging whether it is JSON: what is none is refused by its reader.
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

/** Of its closing quote; of the text where there is none. */
function endOfString(bytes: Uint8Array, start: number): number {
  let index = start;
  while (index < bytes.length && bytes[index] !== QUOTE) index += bytes[index] === BACKSLASH ? 2 : 1;
  return index;
}
