// Phase 1 as a pure decision over what the transaction has read: the checks in the contract's order, and the first that
// fails answers. The key is asked before the nonce, so that a nonce, fresh or not, never buys an effect a second time.

import { sha256 } from "@claudemesh/members/sha256";
import { decideClaim } from "@claudemesh/protocol/messages/claim";
import { type Effect, replayKey } from "@claudemesh/protocol/registrar/digests";
import { type AuthorityFacts, judgeAuthority, type UnboundReason } from "./authority.ts";
import type { Approval, Consumption, Registration, StoredRequest } from "./records.ts";

/** As far as a retry is looked at: a consumed key answers without its nonce. */
export type AskedRequest = Effect & {
  readonly meshId: string;
  readonly memberPubkey: string;
  readonly protocolVersion: string;
  readonly logicalRequestKey: string;
  readonly attemptId: string;
  readonly approvalId: string;
  readonly expiresAtMs: number | undefined;
};

export type RegistrationRequest = AskedRequest & {
  readonly nonceHash: Uint8Array;
  readonly effectKey: Uint8Array;
  /** The registration's id, should this be the first. */
  readonly registrationId: string;
};

export type RequestFacts = AuthorityFacts & {
  readonly stored: StoredRequest | undefined;
  /** Whatever holds the effect's key. */
  readonly sameEffect: StoredRequest | undefined;
  /** The member that asks has not been revoked meanwhile. */
  readonly memberLive: boolean;
};

export type NewRegistration = { readonly consumption: Consumption; readonly registration: Registration };

export type RequestDecision =
  | { readonly type: "consume"; readonly row: NewRegistration }
  | { readonly type: "prior"; readonly stored: StoredRequest }
  | { readonly type: "mismatch"; readonly stored: StoredRequest }
  | { readonly type: "stale"; readonly prior: StoredRequest | undefined }
  | { readonly type: "unauthorized" }
  | { readonly type: "unbound"; readonly reason: UnboundReason }
  | { readonly type: "nonce_consumed" }
  | { readonly type: "effect_exists"; readonly stored: StoredRequest };

/** What a key that is consumed answers; undefined: it is free and the request is not stale. */
export function answerConsumed(
  request: AskedRequest,
  stored: StoredRequest | undefined,
  binding: string | undefined,
  nowMs: number,
): Extract<RequestDecision, { type: "prior" | "mismatch" | "stale" }> | undefined {
  if (request.expiresAtMs !== undefined && nowMs > request.expiresAtMs) return { type: "stale", prior: stored };
  if (stored === undefined) return undefined;
  if (binding === undefined) return { type: "mismatch", stored };
  const offered = { fingerprint: replayKey(sha256, { ...request, binding }) };
  const decision = decideClaim({ fingerprint: stored.consumption.replayKey }, offered);
  return decision === "same" ? { type: "prior", stored } : { type: "mismatch", stored };
}

export function decideRequest(request: RegistrationRequest, facts: RequestFacts, nowMs: number): RequestDecision {
  const { stored, approval, sameEffect } = facts;
  const consumed = answerConsumed(request, stored, approval?.ownerPubkey, nowMs);
  if (consumed !== undefined) return consumed;
  if (!facts.memberLive) return { type: "unauthorized" };
  const claimed = { purpose: "register", effect: request, nonceHash: request.nonceHash } as const;
  const authority = judgeAuthority(claimed, facts, nowMs);
  if (authority.type !== "good") return authority;
  if (sameEffect !== undefined) return { type: "effect_exists", stored: sameEffect };
  return { type: "consume", row: newRegistration(request, authority.approval, nowMs) };
}

function newRegistration(request: RegistrationRequest, approval: Approval, nowMs: number): NewRegistration {
  const { operation, target, artifactHash, runId, logicalRequestKey, protocolVersion } = request;
  const effect = { operation, target, artifactHash, runId };
  const binding = approval.ownerPubkey;
  return {
    consumption: {
      protocolVersion,
      replayKey: replayKey(sha256, { ...effect, protocolVersion, logicalRequestKey, binding }),
      effectKey: request.effectKey,
      binding,
      approvalId: request.approvalId,
      attemptId: request.attemptId,
      consumedAtMs: nowMs,
    },
    registration: {
      ...effect,
      registrationId: request.registrationId,
      logicalRequestKey,
      binding,
      registeredBy: request.memberPubkey,
      registeredAtMs: nowMs,
    },
  };
}
