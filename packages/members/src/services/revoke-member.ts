// Ends a membership. From the moment this resolves the key can do nothing in the mesh. What was still on its way to the
// member is ended by the packages that keep it.
import { MeshError } from "@claudemesh/protocol/errors";
import { requireOwner } from "../core/require-owner.ts";
import type { Member, MembersStore } from "../ports.ts";

type Ports = { readonly store: Pick<MembersStore, "revokeMember">; readonly nowMs: () => number };

/** Safe to repeat: the answer may have been lost, or another owner may have revoked it first. */
export async function revokeMember(ports: Ports, caller: Member, pubkey: string): Promise<void> {
  requireOwner(caller, "revoke a member");
  const outcome = await ports.store.revokeMember(caller.meshId, caller.pubkey, pubkey, ports.nowMs());
  switch (outcome) {
    case "revoked":
    case "already_revoked":
      return;
    case "not_found":
      throw new MeshError("not_found", "The mesh has no member with this public key.");
    case "last_owner":
      throw new MeshError("last_owner", undefined, { pubkey });
    case "not_an_owner":
      throw new MeshError("unauthorized");
  }
}
