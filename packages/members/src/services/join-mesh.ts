// Invites, and joining by one. (invite, public key) is the identity of a join: the same key may ask again after a lost
// answer and gets the same membership; another key is refused.
import { MeshError } from "@claudemesh/protocol/errors";
import { isNewMemberName } from "@claudemesh/protocol/messages/names";
import type { JoinRequest } from "@claudemesh/protocol/wire/invite";
import { joinBytes } from "@claudemesh/protocol/wire/signing";
import { hashSecret, mintSecret, verifySignature } from "../core/credentials.ts";
import { requireOwner } from "../core/require-owner.ts";
import type { JoinOutcome, Member, MembersStore, Mesh } from "../ports.ts";

export const inviteLifetimeSecondsDefault = 7 * 24 * 3600;

type Ports<Method extends keyof MembersStore> = {
  readonly store: Pick<MembersStore, Method>;
  readonly nowMs: () => number;
};

export type InviteTerms = {
  readonly lifetimeSeconds?: number | undefined;
  /** The name that the new member gets; undefined: any name that is free. */
  readonly memberName?: string | undefined;
};

/** Each call makes a new invite; only the hash of its secret is stored. */
export async function createInvite(
  ports: Ports<"addInvite" | "isNameTaken"> & {
    readonly nextId: () => string;
    /** Rejects when the mesh may have no further invite. */
    readonly admit?: (id: string) => Promise<void>;
  },
  creator: Member,
  { lifetimeSeconds = inviteLifetimeSecondsDefault, memberName }: InviteTerms = {},
): Promise<{ readonly id: string; readonly secret: string; readonly expiresAt: number }> {
  requireOwner(creator, "invite");
  if (memberName !== undefined) {
    if (!isNewMemberName(memberName)) throw new MeshError("invalid_name", undefined, { field: "name" });
    // The join checks this again, because another member may take the name until then.
    if (await ports.store.isNameTaken(creator.meshId, memberName)) throw nameTaken(memberName);
  }
  const id = ports.nextId();
  await ports.admit?.(id);
  const secret = mintSecret("cms");
  const nowMs = ports.nowMs();
  const expiresAt = nowMs + lifetimeSeconds * 1000;
  await ports.store.addInvite(
    creator.meshId,
    { id, secretHash: hashSecret(secret), createdBy: creator.pubkey, expiresAt, memberName },
    nowMs,
  );
  return { id, secret, expiresAt };
}

/** Stands for a mesh that does not exist: no mesh has this id. */
const noMeshId = "00000000-0000-0000-0000-000000000000";

/**
 * A mesh that does not exist, a wrong signature and a bad invite get the same answer, and the first does as much work
 * as the second: an outsider learns nothing, not even from the time that an answer takes.
 */
export async function joinMesh(
  ports: Ports<"join">,
  mesh: Mesh | undefined,
  request: JoinRequest,
): Promise<{ readonly joined: boolean; readonly mesh: Mesh; readonly member: Member }> {
  const { secret, name, pubkey, signature } = request;
  if (name !== undefined && !isNewMemberName(name)) throw new MeshError("invalid_name", undefined, { field: "name" });
  const signed = joinBytes({ mesh_id: mesh?.id ?? noMeshId, secret, name: name ?? "", pubkey });
  if (!verifySignature(pubkey, signed, signature) || mesh === undefined) throw refuseInvite();
  const outcome = await ports.store.join(mesh.id, hashSecret(secret), { pubkey, name }, ports.nowMs());
  if (!("member" in outcome)) throw refusalOf(outcome, name);
  return { joined: outcome.type === "joined", mesh, member: outcome.member };
}

function refusalOf(outcome: Exclude<JoinOutcome, { member: Member }>, asked: string | undefined): MeshError {
  switch (outcome.type) {
    case "refused":
      return refuseInvite();
    case "name_taken":
      return nameTaken(asked);
    case "name_missing":
      return new MeshError("invalid_request", "The invite fixes no name; say which one you want.", { field: "name" });
    case "other_name": {
      const message = `The invite is for the name ${outcome.name}; join under that one, or give none.`;
      return new MeshError("invite_names_another", message, { field: "name", name: outcome.name });
    }
  }
}

function nameTaken(name: string | undefined): MeshError {
  const which = name === undefined ? "The name of this invite" : `The name ${name}`;
  const message = `${which} is, or was, another member's of this mesh, where case does not count; choose another name.`;
  return new MeshError("name_taken", message, { field: "name", ...(name !== undefined && { name }) });
}

function refuseInvite(): MeshError {
  return new MeshError("invite_refused", "The invite is not good for this key; ask an owner for a new one.");
}
