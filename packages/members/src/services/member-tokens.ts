// Bearer tokens for direct HTTP calls as a member: shown once, stored hashed, listed and revocable.
import { MeshError } from "@claudemesh/protocol/errors";
import { hashToken, mintSecret } from "../core/credentials.ts";
import type { MembersStore, MeshMember, PlainMember } from "../ports.ts";

export type TokenPorts = {
  readonly store: Pick<MembersStore, "addToken" | "revokeToken">;
  readonly nowMs: () => number;
  readonly nextId: () => string;
};

/** `admit` rejects when the member may have no further token. */
export async function createToken(
  ports: TokenPorts & { readonly admit?: (id: string) => Promise<void> },
  member: PlainMember,
  label: string,
): Promise<{ readonly token: string; readonly tokenId: string }> {
  const token = mintSecret("cmt");
  const tokenId = ports.nextId();
  await ports.admit?.(tokenId);
  await ports.store.addToken(
    member.meshId,
    { id: tokenId, tokenHash: hashToken(token), pubkey: member.pubkey, label },
    ports.nowMs(),
  );
  return { token, tokenId };
}

export async function revokeToken(ports: TokenPorts, member: PlainMember, tokenId: string): Promise<void> {
  const isRevoked = await ports.store.revokeToken(member.meshId, member.pubkey, tokenId, ports.nowMs());
  if (!isRevoked) throw new MeshError("not_found", "You have no token with this id.");
}

type CallerPorts = { readonly store: Pick<MembersStore, "findByToken"> };

/**
 * The live member behind a bearer token of a mesh; every way in which mesh or token can be wrong gets the same answer.
 */
export async function authenticateTokenHash(
  { store }: CallerPorts,
  meshNameOrId: string,
  tokenHash: string,
): Promise<MeshMember> {
  const caller = await store.findByToken(meshNameOrId, tokenHash);
  if (caller === undefined || caller.member.revoked) throw new MeshError("unauthorized");
  return caller;
}
