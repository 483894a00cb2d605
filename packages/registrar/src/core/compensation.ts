// Compensation as a pure decision: once per key, only where verification has failed, under an approval for exactly that.
// It records that a failed registration was made good; the key and the effect stay taken.
// Why: docs/decisions/0012.
import { isCompensable } from "@claudemesh/protocol/registrar/registration-state";
import { type AuthorityFacts, judgeAuthority, type UnboundReason } from "./authority.ts";
import type { Compensation, StoredRequest } from "./records.ts";
import { stateOf } from "./stored-state.ts";

export type CompensationRequest = {
  readonly meshId: string;
  readonly memberPubkey: string;
  readonly logicalRequestKey: string;
  readonly attemptId: string;
  readonly approvalId: string;
  readonly nonceHash: Uint8Array;
};

export type CompensationFacts = AuthorityFacts & {
  readonly stored: StoredRequest | undefined;
  /** The owner that asks is one still. */
  readonly memberLive: boolean;
};

export type CompensationDecision =
  | { readonly type: "compensate"; readonly stored: StoredRequest; readonly compensation: Compensation }
  /** It was compensated under this approval before. */
  | { readonly type: "prior"; readonly stored: StoredRequest }
  | { readonly type: "already_compensated"; readonly stored: StoredRequest }
  | { readonly type: "unknown_key" }
  | { readonly type: "not_compensable"; readonly stored: StoredRequest }
  | { readonly type: "unauthorized" }
  | { readonly type: "unbound"; readonly reason: UnboundReason }
  | { readonly type: "nonce_consumed" };

export function decideCompensation(
  request: CompensationRequest,
  facts: CompensationFacts,
  nowMs: number,
): CompensationDecision {
  const { stored } = facts;
  if (stored === undefined) return { type: "unknown_key" };
  if (stored.compensation !== undefined) {
    const same = stored.compensation.approvalId === request.approvalId;
    return same ? { type: "prior", stored } : { type: "already_compensated", stored };
  }
  if (!facts.memberLive) return { type: "unauthorized" };
  if (!isCompensable(stateOf(stored))) return { type: "not_compensable", stored };
  const { logicalRequestKey, nonceHash } = request;
  const claimed = { purpose: "compensate", effect: stored.registration, logicalRequestKey, nonceHash } as const;
  const authority = judgeAuthority(claimed, facts, nowMs);
  if (authority.type !== "good") return authority;
  const { approvalId, attemptId, memberPubkey } = request;
  const compensation = { approvalId, attemptId, compensatedBy: memberPubkey, compensatedAtMs: nowMs };
  return { type: "compensate", stored: { ...stored, compensation }, compensation };
}
