// What can still become of an invite. One answer for the list that an owner reads and for whoever tries to join by it.
import type { InviteRecord, InviteRevokeOutcome, JoinOutcome, Member } from "../ports.ts";
import { isLiveOwner } from "./decide-role.ts";

export type InviteState =
  /** It lets one key in. */
  | "live"
  | "used"
  | "revoked"
  | "expired"
  /** Whoever made it is no owner any more. */
  | "void";

type Ends = Pick<InviteRecord, "expiresAt" | "usedBy" | "revokedAt">;

export function inviteStateOf(invite: Ends & Pick<InviteRecord, "madeByOwner">, nowMs: number): InviteState {
  if (invite.usedBy !== undefined) return "used";
  if (invite.revokedAt !== undefined) return "revoked";
  if (invite.expiresAt <= nowMs) return "expired";
  return invite.madeByOwner ? "live" : "void";
}

/** (invite, public key) is a join's identity: its own key is a member already, whatever became of the invite since. */
export function decideJoin(
  invite: InviteRecord,
  joining: { readonly pubkey: string; readonly present: Member | undefined },
  nowMs: number,
): "joined" | "already_member" | "refused" {
  const state = inviteStateOf(invite, nowMs);
  const { pubkey, present } = joining;
  if (present === undefined) return state === "live" ? "joined" : "refused";
  const mayKnow = invite.usedBy === pubkey || state === "live" || state === "void";
  return mayKnow && !present.revoked ? "already_member" : "refused";
}

type NameRefusal = { readonly type: "name_missing" } | Extract<JoinOutcome, { type: "other_name" }>;

/**
 * The name that a new member gets by this invite. The same name in other letters' case is another wish than the inviter's,
 * and is refused like any other.
 */
export function decideName(
  { memberName }: Pick<InviteRecord, "memberName">,
  asked: string | undefined,
): { readonly type: "named"; readonly name: string } | NameRefusal {
  const name = asked ?? memberName;
  if (name === undefined) return { type: "name_missing" };
  return memberName === undefined || memberName === name
    ? { type: "named", name }
    : { type: "other_name", name: memberName };
}

/** Decided under the mesh's lock, as joins are: an invite is used or revoked, never both. */
export function decideInviteRevoke(
  caller: Member | undefined,
  invite: Pick<InviteRecord, "usedBy" | "revokedAt"> | undefined,
): InviteRevokeOutcome {
  if (!isLiveOwner(caller)) return { type: "not_an_owner" };
  if (invite === undefined) return { type: "not_found" };
  if (invite.usedBy !== undefined) return { type: "used", by: invite.usedBy };
  return { type: invite.revokedAt === undefined ? "revoked" : "already_revoked" };
}
