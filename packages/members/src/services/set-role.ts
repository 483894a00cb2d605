// Makes a member an owner, or an owner a plain member. It holds from the moment this resolves: whatever needs an owner
// asks for the role again when its turn comes.
import { MeshError } from "@claudemesh/protocol/errors";
import { ownerOnly } from "../core/require-owner.ts";
import type { Member, MembersStore, Role } from "../ports.ts";

/** The same again is fine: the answer was lost, or another owner came first. */
export async function setRole(
  store: Pick<MembersStore, "setRole">,
  caller: Member,
  pubkey: string,
  role: Role,
): Promise<void> {
  const outcome = await store.setRole(caller.meshId, caller.pubkey, pubkey, role);
  switch (outcome) {
    case "changed":
    case "unchanged":
      return;
    case "not_found":
      throw new MeshError("not_found", "The mesh has no member with this public key.");
    case "last_owner":
      throw new MeshError("last_owner", undefined, { pubkey });
    case "not_an_owner":
      throw ownerOnly("change a role");
  }
}
