// Secrets and signatures: how they are made, hashed and checked. Stores see only hashes.
import { createPublicKey, type KeyObject, randomBytes, timingSafeEqual, verify } from "node:crypto";
import { digest, sha256 } from "./sha256.ts";

/** 32 random bytes behind a readable prefix, so that a leaked secret can be recognised for what it is. */
export function mintSecret(
  prefix: "cmt" | "cma" | "cms" | "cmw" | "cmn",
  random: (length: number) => Uint8Array = randomBytes,
): string {
  return `${prefix}_${Buffer.from(random(32)).toString("base64url")}`;
}

/** Secrets carry 256 random bits, so that one pass of SHA-256 is enough to store them safely. */
export function hashSecret(secret: string): Uint8Array {
  return digest(secret);
}

/** The same for a token, in hex: the hash serves as a key for the requests that show the same token. */
export function hashToken(token: string): string {
  return sha256.hex(token);
}

export function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(hashSecret(a), hashSecret(b));
}

// RFC 8410: an ed25519 public key in SubjectPublicKeyInfo is these bytes followed by the 32 of the key.
const ed25519SpkiPrefix = Buffer.from("302a300506032b6570032100", "hex");

export function verifySignature(pubkeyHex: string, bytes: Uint8Array, signatureHex: string): boolean {
  return verify(null, bytes, ed25519PublicKey(pubkeyHex), Buffer.from(signatureHex, "hex"));
}

/** The same off the event loop: a check takes a tenth of a millisecond, in which a busy broker does other work. */
export function verifySignatureAside(pubkeyHex: string, bytes: Uint8Array, signatureHex: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    verify(null, bytes, ed25519PublicKey(pubkeyHex), Buffer.from(signatureHex, "hex"), (error, good) =>
      error === null ? resolve(good) : reject(error),
    );
  });
}

function ed25519PublicKey(pubkeyHex: string): KeyObject {
  const key = Buffer.concat([ed25519SpkiPrefix, Buffer.from(pubkeyHex, "hex")]);
  return createPublicKey({ key, format: "der", type: "spki" });
}
