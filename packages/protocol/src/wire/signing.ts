// The exact bytes that a member or a broker signs to prove that it holds its key. Each purpose has its own label, so
// that a signature made for one is never valid for another. Fields are joined by 0x00. At most one field of each
// purpose is free text (the secret, or the operation's input). It cannot shift the others: their forms exclude 0x00,
// and canonical JSON writes that character as an escape. So the joined bytes have only one reading.
// Why: docs/decisions/0123.
import { canonicalJson } from "../canonical/canonical-json.ts";
import { encodeUtf8 } from "../encoding/utf8.ts";
import type { AnnouncedFeatures } from "../features/features.ts";
import type { JsonObject } from "../json/strict-json.ts";

export type ConnectionKind = "daemon" | "client";
export const connectionKinds = ["daemon", "client"] as const satisfies readonly ConnectionKind[];

/**
 * The nonces and keys of both sides of one connection. A party that holds neither key cannot use a signature elsewhere.
 */
export type HelloSession = {
  /** Both nonces are 32 random bytes in lower-case hex. */
  readonly client_nonce: string;
  readonly broker_nonce: string;
  readonly mesh_id: string;
  readonly broker_key: string;
};

const sessionFields = ({ client_nonce, broker_nonce, mesh_id, broker_key }: HelloSession) =>
  [client_nonce, broker_nonce, mesh_id, broker_key] as const;

/** Signed by the broker before a member names itself. `features` is exactly the value of the frame. */
export function proofBytes(proof: HelloSession & { readonly features: AnnouncedFeatures }): Uint8Array {
  const features = canonicalJson(proof.features as JsonObject);
  return signable("claudemesh-proof-2", ...sessionFields(proof), features);
}

/** Signed by the member once the broker has proven itself. */
export function helloBytes(
  hello: HelloSession & { readonly pubkey: string; readonly kind: ConnectionKind },
): Uint8Array {
  return signable("claudemesh-hello-2", ...sessionFields(hello), hello.pubkey, hello.kind);
}

/** Signed by the broker for a caller over HTTP. `mesh_id` is empty where the caller named none. */
export function httpProofBytes(proof: {
  readonly nonce: string;
  readonly mesh_id: string;
  readonly broker_key: string;
}): Uint8Array {
  return signable("claudemesh-http-proof-1", proof.nonce, proof.mesh_id, proof.broker_key);
}

/**
 * Signed by the member for an operation that a relay must not be able to insert into its session. The nonces bind it to
 * one connection, and the request's id to one request on it. `input` is the frame without type, id and signature.
 */
export function operationBytes(
  request: HelloSession & { readonly operation: string; readonly id: number; readonly input: JsonObject },
): Uint8Array {
  const { operation, id, input } = request;
  return signable("claudemesh-operation-1", ...sessionFields(request), operation, String(id), canonicalJson(input));
}

export function joinBytes(join: {
  readonly mesh_id: string;
  readonly secret: string;
  readonly name: string;
  readonly pubkey: string;
}): Uint8Array {
  return signable("claudemesh-join-1", join.mesh_id, join.secret, join.name, join.pubkey);
}

export function createMeshBytes(create: {
  readonly name: string;
  readonly owner_name: string;
  readonly owner_pubkey: string;
}): Uint8Array {
  return signable("claudemesh-create-1", create.name, create.owner_name, create.owner_pubkey);
}

function signable(...fields: readonly string[]): Uint8Array {
  return encodeUtf8(fields.join("\0"));
}
