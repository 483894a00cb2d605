// Makes a member an owner, or an owner a plain member. It takes effect from the moment this resolves: everything that
// needs an owner checks the role again when it runs.
import { MeshError } from "@claudemesh/protocol/errors";
import { ownerOnly } from "../core/require-owner.ts";
import type { Member, MembersStore, Role } from "../ports.ts";

/** Safe to repeat: the answer may have been lost, or another owner may have made the change first. */
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
