// Ends a membership. From the moment this resolves the key can do nothing in the mesh; what it still had coming is
// ended by the packages that keep it.
import { MeshError } from "@claudemesh/protocol/errors";
import { requireOwner } from "../core/require-owner.ts";
import type { Member, MembersStore } from "../ports.ts";

type Ports = { readonly store: Pick<MembersStore, "revokeMember">; readonly nowMs: () => number };

/** The same again is fine: the answer was lost, or another owner came first. */
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
