// Node's SHA-256 for the digests of the protocol.
import { hash } from "node:crypto";
import type { Sha256 } from "@claudemesh/protocol/messages/fingerprint";

const digestBytes = 32;

export const sha256: Sha256 = {
  bytes: digest,
  hex: (data) => hash("sha256", data, "hex"),
};

/**
 * A small typed array lives in the engine's own heap; a Buffer would allocate memory outside it, which costs twice as
 * much.
 */
export function digest(data: Uint8Array | string): Uint8Array {
  const text = hash("sha256", data, "binary");
  const bytes = new Uint8Array(digestBytes);
  for (let at = 0; at < digestBytes; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
