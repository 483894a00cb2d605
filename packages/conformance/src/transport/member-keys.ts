// A member's signing key, made for one run.
import { generateKeyPairSync, sign } from "node:crypto";

export type MemberKeys = {
  /** 32 bytes in lower-case hex. */
  readonly pubkey: string;
  /** The ed25519 signature in lower-case hex. */
  readonly sign: (bytes: Uint8Array) => string;
};

export function createMemberKeys(): MemberKeys {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const pubkey = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  return { pubkey, sign: (bytes) => sign(null, bytes, privateKey).toString("hex") };
}
