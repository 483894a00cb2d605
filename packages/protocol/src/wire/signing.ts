// The exact bytes that a member signs to prove that it holds its key. Each purpose has its own label, so that a
// signature made for one is never good for another. Fields are joined by 0x00; at most one of each purpose is free text
// (the nonce, the secret) and the forms of the others exclude 0x00, so that the joining has one reading.
import { encodeUtf8 } from "../encoding/utf8.ts";

export type ConnectionKind = "daemon" | "client";
export const connectionKinds = ["daemon", "client"] as const satisfies readonly ConnectionKind[];

export function helloBytes(hello: {
  readonly nonce: string;
  readonly mesh_id: string;
  readonly pubkey: string;
  readonly kind: ConnectionKind;
}): Uint8Array {
  return signable("claudemesh-hello-1", hello.nonce, hello.mesh_id, hello.pubkey, hello.kind);
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
