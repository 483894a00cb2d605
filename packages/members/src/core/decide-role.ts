// Decides whether one member may change the role of another. It runs under the mesh's lock, so that two owners who step
// down at once cannot leave a mesh without an owner.
import type { Member, Role, RoleOutcome } from "../ports.ts";

type Question = {
  /** The member that asks; undefined where the caller is no member of the mesh. */
  readonly caller: Member | undefined;
  readonly member: Member | undefined;
  readonly role: Role;
  /** The number of live owners of the mesh. */
  readonly owners: number;
};

export function decideRole({ caller, member, role, owners }: Question): RoleOutcome {
  // An owner that stepped down and did not get the answer asks again as a plain member.
  const isOwnRetry = caller?.revoked === false && caller.pubkey === member?.pubkey && caller.role === role;
  if (!isLiveOwner(caller) && !isOwnRetry) return "not_an_owner";
  if (member === undefined || member.revoked) return "not_found";
  if (member.role === role) return "unchanged";
  return member.role === "owner" && owners === 1 ? "last_owner" : "changed";
}

export function isLiveOwner(member: Member | undefined): member is Member {
  return member?.role === "owner" && !member.revoked;
}
