// Decides what an invite is still good for. The list that an owner reads and the join both ask here, so they never
// disagree.
import type { InviteRecord, InviteRevokeOutcome, JoinOutcome, Member } from "../ports.ts";
import { isLiveOwner } from "./decide-role.ts";

export type InviteState =
  /** It can still let one key in. */
  | "live"
  | "used"
  | "revoked"
  | "expired"
  /** The member that made it is no owner any more. */
  | "void";

type Ends = Pick<InviteRecord, "expiresAt" | "usedBy" | "revokedAt">;

export function inviteStateOf(invite: Ends & Pick<InviteRecord, "madeByOwner">, nowMs: number): InviteState {
  if (invite.usedBy !== undefined) return "used";
  if (invite.revokedAt !== undefined) return "revoked";
  if (invite.expiresAt <= nowMs) return "expired";
  return invite.madeByOwner ? "live" : "void";
}

/**
 * A join is identified by (invite, public key). The key that used the invite is a member already, whatever became of
 * the invite since.
 */
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
 * The name that a new member gets by this invite. A name that differs from the inviter's only in upper or lower case is
 * a different name, and is refused like any other.
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

/** Runs under the mesh's lock, as joins do: an invite is used or revoked, never both. */
export function decideInviteRevoke(
  caller: Member | undefined,
  invite: Pick<InviteRecord, "usedBy" | "revokedAt"> | undefined,
): InviteRevokeOutcome {
  if (!isLiveOwner(caller)) return { type: "not_an_owner" };
  if (invite === undefined) return { type: "not_found" };
  if (invite.usedBy !== undefined) return { type: "used", by: invite.usedBy };
  return { type: invite.revokedAt === undefined ? "revoked" : "already_revoked" };
}
