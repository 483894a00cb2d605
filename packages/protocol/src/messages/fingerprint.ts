// The two fingerprints of a message, by one formula. They differ in the envelope that is hashed: the plaintext request,
// or the sealed envelope that leaves the host.
import { encodeHex } from "../encoding/hex.ts";
import type { Envelope } from "./envelope.ts";

/** SHA-256, synchronous. It is passed in because browsers and Node offer it differently. */
export type Sha256 = {
  readonly bytes: (data: Uint8Array | string) => Uint8Array;
  readonly hex: (data: Uint8Array | string) => string;
};

export const fingerprintBytes = 32;

/** Over the envelope's fields joined by 0x00. The checks at the boundary exclude 0x00 from every field but the body. */
export function fingerprint(sha256: Sha256, envelope: Envelope): Uint8Array {
  return sha256.bytes(fingerprintPreimage(sha256, envelope));
}

export function fingerprintPreimage(sha256: Sha256, envelope: Envelope): string {
  const { version, destination, replyToId, priority, canonicalMeta, body } = envelope;
  const { kind, ref } = destination;
  return `${version}\0${kind}\0${ref}\0${replyToId ?? ""}\0${priority}\0${canonicalMeta}\0${sha256.hex(body)}`;
}

/** The form that people and conflict answers see: 16 hex characters. */
export function fingerprintPrefix(bytes: Uint8Array): string {
  return encodeHex(bytes.subarray(0, 8));
}

export function sameFingerprint(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}
