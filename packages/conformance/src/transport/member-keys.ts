// A member's signing key, made for one run.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from "node:crypto";
import { CannotBegin } from "../frame/endings.ts";

export type MemberKeys = {
  /** 32 bytes in lower-case hex. */
  readonly pubkey: string;
  /** The ed25519 signature in lower-case hex. */
  readonly sign: (bytes: Uint8Array) => string;
};

export function createMemberKeys(): MemberKeys {
  return keysOf(generateKeyPairSync("ed25519").privateKey);
}

/** The key that a broker signs with, from the 64 hex characters of its file. */
export function brokerKeysFrom(seedHex: string): MemberKeys {
  if (!/^[0-9a-f]{64}$/.test(seedHex)) throw new CannotBegin("--broker-key is not 64 characters of lower-case hex.");
  // RFC 8410: the bytes before the 32 bytes of a secret key in PKCS #8.
  const der = Buffer.from(`302e020100300506032b657004220420${seedHex}`, "hex");
  return keysOf(createPrivateKey({ key: der, format: "der", type: "pkcs8" }));
}

/** Checks that the holder of this key has signed these bytes. */
export function isSignedBy(pubkey: string, bytes: Uint8Array, signature: string): boolean {
  if (!/^[0-9a-f]{64}$/.test(pubkey) || !/^[0-9a-f]{128}$/.test(signature)) return false;
  const der = Buffer.from(`302a300506032b6570032100${pubkey}`, "hex");
  const key = createPublicKey({ key: der, format: "der", type: "spki" });
  return verify(null, bytes, key, Buffer.from(signature, "hex"));
}

function keysOf(privateKey: KeyObject): MemberKeys {
  const pubkey = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  return { pubkey, sign: (bytes) => sign(null, bytes, privateKey).toString("hex") };
}
