// What can still become of an invite. One answer for the list that an owner reads and for whoever tries to join by it.
import type { InviteRecord, InviteRevokeOutcome, Member } from "../ports.ts";
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
