// Base64 (RFC 4648, section 4) with look-up tables, which works in every runtime. base64.ts chooses between this and
// the platform's own functions.

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const NOT_A_DIGIT = 0xff;
const PADDING = 0x3d;

const CODES = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0));
const DIGITS = new Uint8Array(128).fill(NOT_A_DIGIT);
for (const [digit, code] of CODES.entries()) DIGITS[code] = digit;

const asciiDecoder = new TextDecoder("utf-8");

export function encodeBase64WithTable(bytes: Uint8Array): string {
  const out = new Uint8Array(Math.ceil(bytes.length / 3) * 4);
  let end = 0;
  for (let index = 0; index < bytes.length; index += 3) {
    const second = bytes[index + 1];
    const third = bytes[index + 2];
    const bits = ((bytes[index] ?? 0) << 16) | ((second ?? 0) << 8) | (third ?? 0);
    out[end] = CODES[bits >> 18] ?? 0;
    out[end + 1] = CODES[(bits >> 12) & 0x3f] ?? 0;
    out[end + 2] = second === undefined ? PADDING : (CODES[(bits >> 6) & 0x3f] ?? 0);
    out[end + 3] = third === undefined ? PADDING : (CODES[bits & 0x3f] ?? 0);
    end += 4;
  }
  return asciiDecoder.decode(out);
}

/** Undefined unless the text is exactly what encoding the bytes would give. */
export function decodeBase64WithTable(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 4 !== 0) return undefined;
  const paddingLength = countPadding(text);
  const bytes = new Uint8Array((text.length / 4) * 3 - paddingLength);
  const digitEnd = text.length - paddingLength;
  // An impossible digit sets high bits that no valid digit has, so one check at the end finds any of them.
  let seen = 0;
  let end = 0;
  let bits = 0;
  for (let index = 0; index < text.length; index += 4) {
    bits = 0;
    for (let position = index; position < index + 4; position += 1) {
      const digit = position < digitEnd ? (DIGITS[text.charCodeAt(position)] ?? NOT_A_DIGIT) : 0;
      seen |= digit;
      bits = (bits << 6) | digit;
    }
    // In a padded last group, writes past the end have no effect on a typed array.
    bytes[end] = bits >> 16;
    bytes[end + 1] = bits >> 8;
    bytes[end + 2] = bits;
    end += 3;
  }
  // In a padded last group the bits after the last byte must be zero.
  const strayBits = paddingLength === 2 ? bits & 0xffff : paddingLength === 1 ? bits & 0xff : 0;
  return seen > 0x3f || strayBits !== 0 ? undefined : bytes;
}

/** How many `=` the text ends with, at most two. */
export function countPadding(text: string): number {
  if (!text.endsWith("=")) return 0;
  return text.endsWith("==") ? 2 : 1;
}
