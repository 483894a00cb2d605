// A member's signing key for tests, made with node:crypto alone, so that what the product signs with is not what
// checks it.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export type PeerKeys = {
  /** 32 bytes in lower-case hex. */
  readonly pubkey: string;
  /** The ed25519 signature in lower-case hex. */
  readonly sign: (bytes: Uint8Array) => string;
};

export function createPeerKeys(): PeerKeys {
  return fromPrivateKey(generateKeyPairSync("ed25519").privateKey);
}

/** RFC 8410: what stands before the 32 bytes of an ed25519 secret key in PKCS #8. */
const pkcs8Prefix = "302e020100300506032b657004220420";

/** Of the 32 secret bytes in hex, as a broker's key file and a member's hold them. */
export function peerKeysOf(seed: string): PeerKeys {
  const key = Buffer.from(pkcs8Prefix + seed, "hex");
  return fromPrivateKey(createPrivateKey({ key, format: "der", type: "pkcs8" }));
}

function fromPrivateKey(privateKey: KeyObject): PeerKeys {
  const publicKey = createPublicKey(privateKey);
  const pubkey = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
  return { pubkey, sign: (bytes) => sign(null, bytes, privateKey).toString("hex") };
}
