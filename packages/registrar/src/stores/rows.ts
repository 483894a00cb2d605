// Rows as both stores read them, and the records they make. Statements are each store's own.
import type { ApprovalPurpose } from "@claudemesh/protocol/registrar/approval";
import type { VerifiedState } from "@claudemesh/protocol/registrar/registration-state";
import type { ApprovalRecord, AuditEntry, StoredRequest } from "../core/records.ts";
import { readReasons } from "./reasons.ts";

export type StoredRow = {
  readonly logical_request_key: string;
  readonly registration_id: string;
  readonly operation: string;
  readonly target: string;
  readonly artifact_hash: string;
  readonly run_id: string;
  readonly binding: string;
  readonly registered_by: string;
  readonly registered_at: number;
  readonly protocol_version: string;
  readonly replay_key: Uint8Array;
  readonly effect_key: Uint8Array;
  readonly c_operation: string;
  readonly c_target: string;
  readonly c_artifact_hash: string;
  readonly c_run_id: string;
  readonly c_binding: string;
  readonly approval_id: string;
  readonly attempt_id: string;
  readonly consumed_at: number;
  readonly state: VerifiedState | null;
  readonly verifier: string | null;
  readonly reasons: string | null;
  readonly verified_at: number | null;
  readonly compensation_approval_id: string | null;
  readonly compensation_attempt_id: string | null;
  readonly compensated_by: string | null;
  readonly compensated_at: number | null;
};

/** Times are read as integers of milliseconds: `ms` says how a store does that. */
export const storedColumns = (ms: (column: string) => string) =>
  `r.logical_request_key, r.registration_id, r.operation, r.target, r.artifact_hash, r.run_id, r.binding, r.registered_by,
   ${ms("r.registered_at")} AS registered_at, c.protocol_version, c.replay_key, c.effect_key,
   c.operation AS c_operation, c.target AS c_target, c.artifact_hash AS c_artifact_hash, c.run_id AS c_run_id,
   c.binding AS c_binding, c.approval_id, c.attempt_id, ${ms("c.consumed_at")} AS consumed_at, v.state, v.verifier,
   v.reasons, ${ms("v.verified_at")} AS verified_at, k.approval_id AS compensation_approval_id,
   k.attempt_id AS compensation_attempt_id, k.compensated_by, ${ms("k.compensated_at")} AS compensated_at`;

export function toStoredRequest(row: StoredRow): StoredRequest {
  const { logical_request_key: logicalRequestKey, verified_at, compensated_at } = row;
  return {
    registration: {
      registrationId: row.registration_id,
      logicalRequestKey,
      operation: row.operation,
      target: row.target,
      artifactHash: row.artifact_hash,
      runId: row.run_id,
      binding: row.binding,
      registeredBy: row.registered_by,
      registeredAtMs: row.registered_at,
    },
    consumption: {
      protocolVersion: row.protocol_version,
      replayKey: row.replay_key,
      effectKey: row.effect_key,
      operation: row.c_operation,
      target: row.c_target,
      artifactHash: row.c_artifact_hash,
      runId: row.c_run_id,
      binding: row.c_binding,
      approvalId: row.approval_id,
      attemptId: row.attempt_id,
      consumedAtMs: row.consumed_at,
    },
    verification:
      row.state === null || verified_at === null
        ? undefined
        : {
            state: row.state,
            verifier: row.verifier ?? "",
            reasons: readReasons(row.reasons),
            verifiedAtMs: verified_at,
          },
    compensation:
      row.compensation_approval_id === null || compensated_at === null
        ? undefined
        : {
            approvalId: row.compensation_approval_id,
            attemptId: row.compensation_attempt_id ?? "",
            compensatedBy: row.compensated_by ?? "",
            compensatedAtMs: compensated_at,
          },
  };
}

export type ApprovalRow = {
  readonly approval_id: string;
  readonly owner_pubkey: string;
  readonly operation: string;
  readonly target: string;
  readonly artifact_hash: string;
  readonly run_id: string;
  readonly purpose: ApprovalPurpose;
  readonly logical_request_key: string | null;
  readonly not_before: number;
  readonly not_after: number;
  readonly signature: string;
  readonly nonce_hash: Uint8Array;
  readonly approved_at: number;
  readonly revoked_at: number | null;
  readonly spent: number | boolean;
};

export const approvalColumns = (ms: (column: string) => string) =>
  `a.approval_id, a.owner_pubkey, a.operation, a.target, a.artifact_hash, a.run_id, a.purpose, a.logical_request_key,
   a.not_before, a.not_after, a.signature, a.nonce_hash, ${ms("a.approved_at")} AS approved_at,
   ${ms("a.revoked_at")} AS revoked_at`;

export function toApproval(row: ApprovalRow): ApprovalRecord {
  const { logical_request_key } = row;
  return {
    terms: {
      approval_id: row.approval_id,
      operation: row.operation,
      target: row.target,
      artifact_hash: row.artifact_hash,
      run_id: row.run_id,
      purpose: row.purpose,
      ...(logical_request_key === null ? {} : { logical_request_key }),
      not_before: row.not_before,
      not_after: row.not_after,
    },
    ownerPubkey: row.owner_pubkey,
    signature: row.signature,
    nonceHash: row.nonce_hash,
    approvedAtMs: row.approved_at,
    revokedAtMs: row.revoked_at ?? undefined,
    spent: row.spent === 1 || row.spent === true,
  };
}

export type AuditRow = {
  readonly audit_id: string;
  readonly kind: AuditEntry["kind"];
  readonly member_pubkey: string;
  readonly at: number;
  readonly code: string | null;
  readonly conflict: string | null;
  readonly logical_request_key: string | null;
  readonly approval_id: string | null;
  readonly attempt_id: string | null;
  readonly suppressed: number;
};

export function toAuditEntry(row: AuditRow): AuditEntry {
  const common = { auditId: row.audit_id, memberPubkey: row.member_pubkey, atMs: row.at };
  if (row.kind === "summary") return { ...common, kind: "summary", suppressed: row.suppressed };
  return {
    ...common,
    kind: "refusal",
    code: row.code ?? "",
    conflict: row.conflict ?? undefined,
    logicalRequestKey: row.logical_request_key ?? undefined,
    approvalId: row.approval_id ?? undefined,
    attemptId: row.attempt_id ?? undefined,
  };
}
