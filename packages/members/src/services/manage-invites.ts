// What an owner sees of the mesh's invites, and how one is revoked. Revoking an invite does not end a membership that
// came of it: a member that has joined is revoked as a member.
import { MeshError } from "@claudemesh/protocol/errors";
import { type InviteState, inviteStateOf } from "../core/invite-state.ts";
import { ownerOnly, requireOwner } from "../core/require-owner.ts";
import type { InviteRecord, Member, MembersStore, Page } from "../ports.ts";

type Ports<Method extends keyof MembersStore> = {
  readonly store: Pick<MembersStore, Method>;
  readonly nowMs: () => number;
};

export type ListedInvite = InviteRecord & { readonly state: InviteState };

export async function listInvites(
  { store, nowMs }: Ports<"listInvites">,
  caller: Member,
  after: string,
  limit: number,
): Promise<Page<ListedInvite>> {
  requireOwner(caller, "list invites");
  const { items, nextCursor } = await store.listInvites(caller.meshId, after, limit);
  const now = nowMs();
  return { items: items.map((invite) => ({ ...invite, state: inviteStateOf(invite, now) })), nextCursor };
}

/** Safe to repeat: the answer may have been lost, or another owner may have revoked it first. */
export async function revokeInvite(ports: Ports<"revokeInvite">, caller: Member, inviteId: string): Promise<void> {
  const outcome = await ports.store.revokeInvite(caller.meshId, caller.pubkey, inviteId, ports.nowMs());
  switch (outcome.type) {
    case "revoked":
    case "already_revoked":
      return;
    case "used":
      throw new MeshError("invite_used", undefined, { invite_id: inviteId, used_by: outcome.by });
    case "not_found":
      throw new MeshError("not_found", "The mesh has no invite with this id.");
    case "not_an_owner":
      throw ownerOnly("revoke an invite");
  }
}
