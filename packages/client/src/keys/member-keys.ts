// A member's key pairs: created once, stored in keypair.json, used to sign. The x25519 pair follows from the ed25519
// pair, so that a sender that knows a member's public key can seal for it. Sealing itself is in seal.ts.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signWithKey,
} from "node:crypto";
import { decodeHex, encodeHex } from "@claudemesh/protocol/encoding/hex";
import { createPrivateFile, LocalFileError, readPrivateFile } from "../home/private-files.ts";
import type { MemberIdentity } from "../link/link-contract.ts";
import type { SealSend } from "../seal/outgoing.ts";

/** 32 bytes each, in lower-case hex. */
export type KeyPair = { readonly public_key: string; readonly secret_key: string };

/** The ed25519 secret is the seed. */
export type MemberKeys = { readonly ed25519: KeyPair; readonly x25519: KeyPair };

const keyBytes = 32;
const keyFileVersion = 1;

// The bytes before the 32 bytes of a secret key in PKCS #8, and of a public key in SPKI (RFC 8410).
const pkcs8Prefix = { ed25519: "302e020100300506032b657004220420", x25519: "302e020100300506032b656e04220420" };

export function generateMemberKeys(): MemberKeys {
  const { privateKey } = generateKeyPairSync("ed25519");
  return memberKeysFromSeed(privateKey.export({ format: "der", type: "pkcs8" }).subarray(-keyBytes));
}

/** The same seed gives the same keys. */
export function memberKeysFromSeed(seed: Uint8Array): MemberKeys {
  if (seed.length !== keyBytes) throw new RangeError(`a seed has ${keyBytes} bytes`);
  const scalar = x25519Secret(seed);
  return {
    ed25519: { public_key: encodeHex(publicKeyOf("ed25519", seed)), secret_key: encodeHex(seed) },
    x25519: { public_key: encodeHex(publicKeyOf("x25519", scalar)), secret_key: encodeHex(scalar) },
  };
}

/** Makes ed25519 signatures of 64 bytes. */
export function signerOf(keys: MemberKeys): (bytes: Uint8Array) => Uint8Array {
  const seed = decodeHex(keys.ed25519.secret_key);
  if (seed?.length !== keyBytes) throw new RangeError("the ed25519 secret key is not 32 bytes in hex");
  const key = privateKeyOf("ed25519", seed);
  return (bytes) => signWithKey(null, bytes, key);
}

/** The member as which a link connects, and whose keys seal what it sends. */
export function identityOf(keys: MemberKeys, meshId: string): MemberIdentity {
  const publicKey = keys.ed25519.public_key;
  return { meshId, publicKey, sign: signerOf(keys), loadSealing: () => loadSealingWith(keys) };
}

/** Loaded only in programs that send direct messages themselves. */
async function loadSealingWith(keys: MemberKeys): Promise<SealSend> {
  const [{ loadSealer, sealRequest }, { nodeSha256 }] = await Promise.all([
    import("../seal/seal.ts"),
    import("./node-sha256.ts"),
  ]);
  const sealer = await loadSealer(keys);
  return (request) => sealRequest({ sealer, sha256: nodeSha256 }, request);
}

const wayOut = "Restore it from a backup, or join the mesh again with a new invite.";

/** Creates a key file that must not exist yet; it is complete and durable before this returns. */
export function writeKeyFile(path: string, keys: MemberKeys): void {
  createPrivateFile(path, `${JSON.stringify({ version: keyFileVersion, ...keys }, undefined, 2)}\n`);
}

/** Throws a LocalFileError when the file is missing, open to others, or its keys do not belong together. */
export function readKeyFile(path: string): MemberKeys {
  const keys = parseKeyFile(readPresent(path), path);
  const seed = decodeHex(keys.ed25519.secret_key);
  if (seed?.length !== keyBytes) throw unreadable(path, "its ed25519 secret key is not 32 bytes in hex");
  const derived = memberKeysFromSeed(seed);
  const same =
    derived.ed25519.public_key === keys.ed25519.public_key &&
    derived.x25519.public_key === keys.x25519.public_key &&
    derived.x25519.secret_key === keys.x25519.secret_key;
  if (!same) throw unreadable(path, "its public keys do not belong to its secret key");
  return derived;
}

function readPresent(path: string): string {
  try {
    return readPrivateFile(path);
  } catch (error) {
    if (!(error instanceof LocalFileError) || error.problem !== "missing") throw error;
    throw new LocalFileError("missing", path, `${error.message} ${wayOut}`, error);
  }
}

function parseKeyFile(text: string, path: string): MemberKeys {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw unreadable(path, "it is not JSON", cause);
  }
  const { version, ed25519, x25519 } = (value ?? {}) as Record<string, unknown>;
  if (version !== keyFileVersion) throw unreadable(path, `its version is not ${keyFileVersion}`);
  if (!isKeyPair(ed25519) || !isKeyPair(x25519)) throw unreadable(path, "a key pair is missing");
  return { ed25519, x25519 };
}

function isKeyPair(value: unknown): value is KeyPair {
  const { public_key, secret_key } = (value ?? {}) as Record<string, unknown>;
  return typeof public_key === "string" && typeof secret_key === "string";
}

function unreadable(path: string, why: string, cause?: unknown): LocalFileError {
  return new LocalFileError("unreadable", path, `${path} cannot be used: ${why}. ${wayOut}`, cause);
}

/** As libsodium converts: the clamped first half of the SHA-512 of the seed. */
function x25519Secret(seed: Uint8Array): Uint8Array {
  const scalar = new Uint8Array(createHash("sha512").update(seed).digest().subarray(0, keyBytes));
  scalar[0] = (scalar[0] ?? 0) & 0xf8;
  scalar[31] = ((scalar[31] ?? 0) & 0x7f) | 0x40;
  return scalar;
}

function privateKeyOf(type: keyof typeof pkcs8Prefix, secret: Uint8Array): KeyObject {
  const der = Buffer.concat([Buffer.from(pkcs8Prefix[type], "hex"), secret]);
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}

function publicKeyOf(type: keyof typeof pkcs8Prefix, secret: Uint8Array): Uint8Array {
  const spki = createPublicKey(privateKeyOf(type, secret)).export({ format: "der", type: "spki" });
  return spki.subarray(-keyBytes);
}
