// The few DER encodings (X.690) of which a certificate is made.
import { isIPv4 } from "node:net";

const tags = { integer: 0x02, bitString: 0x03, octetString: 0x04, oid: 0x06, utf8: 0x0c, sequence: 0x30 } as const;

export function der(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.of(tag), lengthOf(content.length), content]);
}

export function sequence(...parts: readonly Buffer[]): Buffer {
  return der(tags.sequence, Buffer.concat(parts));
}

/** The bytes of a number that is not negative, most significant first. */
export function integer(bytes: Buffer): Buffer {
  const isNegative = ((bytes[0] ?? 0) & 0x80) !== 0;
  return der(tags.integer, isNegative ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

export function bitString(bytes: Buffer, unusedBits: number): Buffer {
  return der(tags.bitString, Buffer.concat([Buffer.of(unusedBits), bytes]));
}

export function octetString(bytes: Buffer): Buffer {
  return der(tags.octetString, bytes);
}

export function utf8(text: string): Buffer {
  return der(tags.utf8, Buffer.from(text, "utf8"));
}

/** A field that has a number of its own and keeps its own tag inside. */
export function explicit(number: number, content: Buffer): Buffer {
  return der(0xa0 | number, content);
}

/** A field that has a number of its own instead of its own tag. */
export function context(number: number, content: Buffer): Buffer {
  return der(0x80 | number, content);
}

export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return der(tags.oid, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

/** UTCTime up to 2049 and GeneralizedTime from 2050 on, as RFC 5280 4.1.2.5 says. */
export function time(at: Date): Buffer {
  const digits = at.toISOString().replaceAll(/[-:T]/g, "").slice(0, 14);
  return at.getUTCFullYear() < 2050
    ? der(0x17, Buffer.from(`${digits.slice(2)}Z`, "ascii"))
    : der(0x18, Buffer.from(`${digits}Z`, "ascii"));
}

/** Four bytes of an IPv4 address, sixteen of an IPv6 address. */
export function addressBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  // The URL parser writes the one canonical form, without dotted quads.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = "", tail] = canonical.split("::");
  const before = groupsOf(head);
  const after = tail === undefined ? [] : groupsOf(tail);
  const groups = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

function groupsOf(text: string): number[] {
  return text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
}

function base128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let rest = value >> 7; rest > 0; rest >>= 7) bytes.unshift((rest & 0x7f) | 0x80);
  return bytes;
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>= 8) bytes.unshift(rest & 0xff);
  return Buffer.of(0x80 | bytes.length, ...bytes);
}
