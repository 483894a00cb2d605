// A member's signing key for tests, made with node:crypto alone, so that what the product signs with is not what
// checks it.
import { generateKeyPairSync, sign } from "node:crypto";

export type PeerKeys = {
  /** 32 bytes in lower-case hex. */
  readonly pubkey: string;
  /** The ed25519 signature in lower-case hex. */
  readonly sign: (bytes: Uint8Array) => string;
};

export function createPeerKeys(): PeerKeys {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const pubkey = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  return { pubkey, sign: (bytes) => sign(null, bytes, privateKey).toString("hex") };
}
