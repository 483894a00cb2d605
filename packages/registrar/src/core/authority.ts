// Whether a nonce authorises something now: the checks of an approval, in the order in which they answer. A nonce never
// decides whether an effect exists; that is asked before and after.
// Why: docs/decisions/0014.
import { sameFingerprint } from "@claudemesh/protocol/messages/fingerprint";
import type { ApprovalTerms } from "@claudemesh/protocol/registrar/approval";
import type { Effect } from "@claudemesh/protocol/registrar/digests";
import type { Approval } from "./records.ts";

/** What a nonce is offered for. */
export type Claimed = {
  readonly purpose: ApprovalTerms["purpose"];
  readonly effect: Effect;
  /** Of a compensation. */
  readonly logicalRequestKey?: string;
  readonly nonceHash: Uint8Array;
};

/** What the store knows of it. */
export type AuthorityFacts = {
  readonly approval: Approval | undefined;
  readonly spent: boolean;
  /** The member that approved it is a live owner of the mesh. */
  readonly ownerLive: boolean;
};

/** Why a nonce is not bound. */
export type UnboundReason =
  | "unknown"
  | "other_purpose"
  | "other_envelope"
  | "owner_gone"
  | "not_yet"
  | "expired"
  | "revoked";

export type Authority =
  | { readonly type: "good"; readonly approval: Approval }
  | { readonly type: "unbound"; readonly reason: UnboundReason }
  | { readonly type: "nonce_consumed" };

export function judgeAuthority(claimed: Claimed, facts: AuthorityFacts, nowMs: number): Authority {
  const { approval } = facts;
  // An approval that does not exist and a nonce that is not its own look alike: a guesser learns nothing.
  if (approval === undefined || !sameFingerprint(approval.nonceHash, claimed.nonceHash)) return unbound("unknown");
  const { terms } = approval;
  if (terms.purpose !== claimed.purpose) return unbound("other_purpose");
  if (!isEnvelopeOf(terms, claimed)) return unbound("other_envelope");
  if (facts.spent) return { type: "nonce_consumed" };
  if (!facts.ownerLive) return unbound("owner_gone");
  if (nowMs < terms.not_before) return unbound("not_yet");
  if (nowMs >= terms.not_after) return unbound("expired");
  if (approval.revokedAtMs !== undefined) return unbound("revoked");
  return { type: "good", approval };
}

function unbound(reason: UnboundReason): Authority {
  return { type: "unbound", reason };
}

function isEnvelopeOf(terms: ApprovalTerms, { effect, logicalRequestKey }: Claimed): boolean {
  return (
    terms.operation === effect.operation &&
    terms.target === effect.target &&
    terms.artifact_hash === effect.artifactHash &&
    terms.run_id === effect.runId &&
    terms.logical_request_key === logicalRequestKey
  );
}
