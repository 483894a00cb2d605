// Bearer tokens for direct HTTP calls as a member: shown once, stored hashed, listed and revocable.
import { MeshError } from "@claudemesh/protocol/errors";
import { hashSecret, mintSecret } from "../core/credentials.ts";
import type { MembersStore, MeshMember, PlainMember } from "../ports.ts";

export type TokenPorts = {
  readonly store: Pick<MembersStore, "addToken" | "revokeToken" | "findByToken">;
  readonly nowMs: () => number;
  readonly nextId: () => string;
};

export async function createToken(
  ports: TokenPorts,
  member: PlainMember,
  label: string,
): Promise<{ readonly token: string; readonly tokenId: string }> {
  const token = mintSecret("cmt");
  const tokenId = ports.nextId();
  await ports.store.addToken(
    member.meshId,
    { id: tokenId, tokenHash: hashSecret(token), pubkey: member.pubkey, label },
    ports.nowMs(),
  );
  return { token, tokenId };
}

export async function revokeToken(ports: TokenPorts, member: PlainMember, tokenId: string): Promise<void> {
  const found = await ports.store.revokeToken(member.meshId, member.pubkey, tokenId, ports.nowMs());
  if (!found) throw new MeshError("not_found", "You have no token with this id.");
}

/** The live member behind a bearer token of a mesh; one answer for every way in which either can be wrong. */
export function authenticateToken(
  ports: Pick<TokenPorts, "store">,
  meshNameOrId: string,
  token: string,
): Promise<MeshMember> {
  return authenticateTokenHash(ports, meshNameOrId, hashSecret(token));
}

export async function authenticateTokenHash(
  { store }: Pick<TokenPorts, "store">,
  meshNameOrId: string,
  tokenHash: Uint8Array,
): Promise<MeshMember> {
  const found = await store.findByToken(meshNameOrId, tokenHash);
  if (found === undefined || found.member.revoked) throw new MeshError("unauthorized");
  return found;
}
