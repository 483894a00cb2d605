// The key by which members know their broker. All brokers of a store share it: it lies beside a SQLite file, or in a table
// of a PostgreSQL. A program that has it can pose as the broker, and homes of members accept no other key.
// Why: docs/decisions/0121.
import { createPrivateKey, createPublicKey, type KeyObject, randomBytes, sign } from "node:crypto";
import type { AnnouncedFeatures } from "@claudemesh/protocol/features";
import { isPublicKey } from "@claudemesh/protocol/messages/names";
import { type HelloSession, httpProofBytes, proofBytes } from "@claudemesh/protocol/wire/signing";
import { ensureSecretFile } from "./private-secret-file.ts";

export type BrokerKey = {
  /** 32 bytes in lower-case hex. */
  readonly publicKey: string;
  /** The signature over what one connection is made of, in hex. */
  readonly prove: (session: Omit<HelloSession, "broker_key">, features: AnnouncedFeatures) => string;
  /** The same for who asks over HTTP. */
  readonly proveOverHttp: (nonce: string, meshId: string) => string;
};

/** RFC 8410: what stands before the 32 bytes of an ed25519 secret key in PKCS #8. */
const pkcs8Prefix = Buffer.from("302e020100300506032b657004220420", "hex");

/** 32 random bytes in hex, of which an ed25519 key is made. */
export function mintBrokerSeed(): string {
  return randomBytes(32).toString("hex");
}

/** Of the SQLite store at this path. */
export function ensureBrokerSeedFile(path: string): string {
  const seed = ensureSecretFile(path, mintBrokerSeed);
  if (isSeed(seed)) return seed;
  throw new Error(
    `${path} does not hold a broker's key; put it back from a backup. Only where there is none, remove it: the next start makes another key, which every home must be told to trust.`,
  );
}

export function brokerKeyOf(seedHex: string): BrokerKey {
  if (!isSeed(seedHex)) throw new Error("The store holds a broker's key that is not 32 bytes in hex.");
  const der = Buffer.concat([pkcs8Prefix, Buffer.from(seedHex, "hex")]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const broker_key = publicHexOf(privateKey);
  const signHex = (bytes: Uint8Array) => sign(null, bytes, privateKey).toString("hex");
  return {
    publicKey: broker_key,
    prove: (session, features) => signHex(proofBytes({ ...session, broker_key, features })),
    proveOverHttp: (nonce, mesh_id) => signHex(httpProofBytes({ nonce, mesh_id, broker_key })),
  };
}

function publicHexOf(privateKey: KeyObject): string {
  return createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
}

/** A seed has the form of a public key. */
const isSeed = isPublicKey;
