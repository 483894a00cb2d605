// The registrar's records as the API shows them. A registration reads the same in every answer that carries it; what may
// change, its state, stands beside it.
import type { ApprovalRecord, AuditEntry, StoredRequest } from "../core/records.ts";
import { stateOf } from "../core/stored-state.ts";

type Body = Readonly<Record<string, unknown>>;

export function registrationBody({ registration, consumption }: StoredRequest): Body {
  return {
    registration_id: registration.registrationId,
    logical_request_key: registration.logicalRequestKey,
    protocol_version: consumption.protocolVersion,
    operation: registration.operation,
    target: registration.target,
    artifact_hash: registration.artifactHash,
    run_id: registration.runId,
    binding: registration.binding,
    replay_key: hexOf(consumption.replayKey),
    effect_key: hexOf(consumption.effectKey),
    approval_id: consumption.approvalId,
    attempt_id: consumption.attemptId,
    registered_by: registration.registeredBy,
    registered_at: registration.registeredAtMs,
  };
}

function hexOf({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
}

/** A request with all that became of it. */
export function requestBody(stored: StoredRequest): Body {
  const { verification, compensation } = stored;
  return {
    registration: registrationBody(stored),
    state: stateOf(stored),
    ...(verification && {
      verification: {
        state: verification.state,
        verifier: verification.verifier,
        reasons: verification.reasons,
        verified_at: verification.verifiedAtMs,
      },
    }),
    ...(compensation && {
      compensation: {
        approval_id: compensation.approvalId,
        attempt_id: compensation.attemptId,
        compensated_by: compensation.compensatedBy,
        compensated_at: compensation.compensatedAtMs,
      },
    }),
  };
}

export function approvalBody(approval: ApprovalRecord, nowMs: number): Body {
  return {
    ...approval.terms,
    approved_by: approval.ownerPubkey,
    approved_at: approval.approvedAtMs,
    ...(approval.revokedAtMs === undefined ? {} : { revoked_at: approval.revokedAtMs }),
    state: approvalState(approval, nowMs),
  };
}

function approvalState({ spent, revokedAtMs, terms }: ApprovalRecord, nowMs: number): string {
  if (spent) return "spent";
  if (revokedAtMs !== undefined) return "revoked";
  if (nowMs >= terms.not_after) return "expired";
  return nowMs < terms.not_before ? "not_yet" : "open";
}

export function auditBody(entry: AuditEntry): Body {
  const common = { audit_id: entry.auditId, kind: entry.kind, member_pubkey: entry.memberPubkey, at: entry.atMs };
  if (entry.kind === "summary") return { ...common, suppressed: entry.suppressed };
  const { code, conflict, logicalRequestKey, approvalId, attemptId } = entry;
  return {
    ...common,
    error: code,
    code: code.toUpperCase(),
    ...(conflict === undefined ? {} : { conflict }),
    ...(logicalRequestKey === undefined ? {} : { logical_request_key: logicalRequestKey }),
    ...(approvalId === undefined ? {} : { approval_id: approvalId }),
    ...(attemptId === undefined ? {} : { attempt_id: attemptId }),
  };
}
