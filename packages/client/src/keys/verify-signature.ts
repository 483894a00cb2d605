// Checks that the holder of an ed25519 key has signed these bytes.
import { createPublicKey, verify } from "node:crypto";

/** RFC 8410: the bytes before the 32 bytes of a public key in SubjectPublicKeyInfo. */
const spkiPrefix = Buffer.from("302a300506032b6570032100", "hex");

/** Key and signature are lower-case hex of 32 and 64 bytes; in any other form the signature is invalid. */
export function isSignedBy(publicKeyHex: string, bytes: Uint8Array, signatureHex: string): boolean {
  if (!/^[0-9a-f]{64}$/.test(publicKeyHex) || !/^[0-9a-f]{128}$/.test(signatureHex)) return false;
  const der = Buffer.concat([spkiPrefix, Buffer.from(publicKeyHex, "hex")]);
  const key = createPublicKey({ key: der, format: "der", type: "spki" });
  return verify(null, bytes, key, Buffer.from(signatureHex, "hex"));
}
