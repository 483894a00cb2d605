// Invites, and joining by one. (invite, public key) is the identity of a join: the same key may ask again after a lost
// answer and gets the same membership; another key is refused.
import { MeshError } from "@claudemesh/protocol/errors";
import { isMemberName } from "@claudemesh/protocol/messages/names";
import type { JoinRequest } from "@claudemesh/protocol/wire/invite";
import { joinBytes } from "@claudemesh/protocol/wire/signing";
import { hashSecret, mintSecret, verifySignature } from "../core/credentials.ts";
import { requireOwner } from "../core/require-owner.ts";
import type { Member, MembersStore, Mesh } from "../ports.ts";

export const inviteLifetimeSecondsDefault = 7 * 24 * 3600;

type Ports = { readonly store: Pick<MembersStore, "addInvite" | "join">; readonly nowMs: () => number };

/** Each call makes a new invite; of its secret only the hash is kept. */
export async function createInvite(
  ports: Ports & { readonly nextId: () => string },
  creator: Member,
  lifetimeSeconds: number = inviteLifetimeSecondsDefault,
): Promise<{ readonly id: string; readonly secret: string; readonly expiresAt: number }> {
  requireOwner(creator, "invite");
  const id = ports.nextId();
  const secret = mintSecret("cms");
  const nowMs = ports.nowMs();
  const expiresAt = nowMs + lifetimeSeconds * 1000;
  await ports.store.addInvite(
    creator.meshId,
    { id, secretHash: hashSecret(secret), createdBy: creator.pubkey, expiresAt },
    nowMs,
  );
  return { id, secret, expiresAt };
}

/** Stands for a mesh that is not there: an id that none has. */
const noMeshId = "00000000-0000-0000-0000-000000000000";

/**
 * A mesh that does not exist, a wrong signature and a bad invite look alike, and the first costs as much work as the second:
 * an outsider learns nothing, by the clock neither.
 */
export async function joinMesh(
  ports: Ports,
  mesh: Mesh | undefined,
  request: JoinRequest,
): Promise<{ readonly joined: boolean; readonly mesh: Mesh; readonly member: Member }> {
  const { secret, name, pubkey, signature } = request;
  if (!isMemberName(name)) throw new MeshError("invalid_name", undefined, { field: "name" });
  const signed = joinBytes({ mesh_id: mesh?.id ?? noMeshId, secret, name, pubkey });
  if (!verifySignature(pubkey, signed, signature) || mesh === undefined) throw refuseInvite();
  const outcome = await ports.store.join(mesh.id, hashSecret(secret), { pubkey, name }, ports.nowMs());
  if (outcome.type === "refused") throw refuseInvite();
  return { joined: outcome.type === "joined", mesh, member: outcome.member };
}

function refuseInvite(): MeshError {
  return new MeshError("invite_refused", "The invite is not good for this key; ask an owner for a new one.");
}
