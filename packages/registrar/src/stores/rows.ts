// Rows as both stores read them, and the records they make. Statements are each store's own.
import type { ApprovalPurpose, ApprovalSignatureVersion } from "@claudemesh/protocol/registrar/approval";
import type { VerifiedState } from "@claudemesh/protocol/registrar/registration-state";
import type { ApprovalRecord, AuditEntry, StoredRequest } from "../core/records.ts";
import { readReasons } from "./reasons.ts";

/** A store whose lists hold nothing but text writes it as such. */
type ListedTime = number | string;

/** What stands under a key, in the order of storedValues. */
export type StoredValues = readonly [
  logicalRequestKey: string,
  registrationId: string,
  operation: string,
  target: string,
  artifactHash: string,
  runId: string,
  binding: string,
  registeredBy: string,
  registeredAtMs: ListedTime,
  protocolVersion: string,
  replayKeyHex: string,
  effectKeyHex: string,
  consumedBinding: string,
  approvalId: string,
  attemptId: string,
  consumedAtMs: ListedTime,
  state: VerifiedState | null,
  verifier: string | null,
  reasons: string | null,
  verifiedAtMs: ListedTime | null,
  compensationApprovalId: string | null,
  compensationAttemptId: string | null,
  compensatedBy: string | null,
  compensatedAtMs: ListedTime | null,
];

/** How a store writes values of a list in JSON that are no text: an id, a time in milliseconds, and bytes. */
export type ListDialect = Readonly<Record<"id" | "ms" | "hex", (column: string) => string>>;

/**
 * In this order, as columns or as a list in JSON: a driver that takes longer over each column than a parser over all of
 * them gets one value of a row instead of two dozen.
 */
export const storedValues = (d: ListDialect) => listValues(d, "r", `r.registered_by, ${d.ms("r.registered_at")}`);

/** The same without the registration's table: the consume row repeats all of it, and neither ever changes (REG-4). */
export const consumedValues = (d: ListDialect) => listValues(d, "c", `c.member_pubkey, ${d.ms("c.consumed_at")}`);

const listValues = ({ id, ms, hex }: ListDialect, effect: "r" | "c", registered: string) =>
  `${effect}.logical_request_key, ${id(`${effect}.registration_id`)}, ${effect}.operation, ${effect}.target,
   ${effect}.artifact_hash, ${effect}.run_id, ${effect}.binding, ${registered},
   c.protocol_version, ${hex("c.replay_key")}, ${hex("c.effect_key")}, c.binding, c.approval_id,
   c.attempt_id, ${ms("c.consumed_at")}, v.state, v.verifier, v.reasons, ${ms("v.verified_at")}, k.approval_id,
   k.attempt_id, k.compensated_by, ${ms("k.compensated_at")}`;

export function toStoredRequest(values: StoredValues): StoredRequest {
  const [logicalRequestKey, registrationId, operation, target, artifactHash, runId, binding, registeredBy] = values;
  return {
    registration: {
      registrationId,
      logicalRequestKey,
      operation,
      target,
      artifactHash,
      runId,
      binding,
      registeredBy,
      registeredAtMs: Number(values[8]),
    },
    consumption: {
      protocolVersion: values[9],
      replayKey: Buffer.from(values[10], "hex"),
      effectKey: Buffer.from(values[11], "hex"),
      binding: values[12],
      approvalId: values[13],
      attemptId: values[14],
      consumedAtMs: Number(values[15]),
    },
    verification: toVerification(values),
    compensation: toCompensation(values),
  };
}

function toVerification(values: StoredValues): StoredRequest["verification"] {
  const [state, verifier, reasons, verifiedAtMs] = [values[16], values[17], values[18], values[19]];
  if (state === null || verifiedAtMs === null) return undefined;
  return { state, verifier: verifier ?? "", reasons: readReasons(reasons), verifiedAtMs: Number(verifiedAtMs) };
}

function toCompensation(values: StoredValues): StoredRequest["compensation"] {
  const [approvalId, attemptId, compensatedBy, compensatedAtMs] = [values[20], values[21], values[22], values[23]];
  if (approvalId === null || compensatedAtMs === null) return undefined;
  return {
    approvalId,
    attemptId: attemptId ?? "",
    compensatedBy: compensatedBy ?? "",
    compensatedAtMs: Number(compensatedAtMs),
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
  readonly signature_version: ApprovalSignatureVersion;
  readonly nonce_hash: Uint8Array;
  readonly approved_at: number;
  readonly revoked_at: number | null;
  readonly spent: number | boolean;
};

export const approvalColumns = (ms: (column: string) => string) =>
  `a.approval_id, a.owner_pubkey, a.operation, a.target, a.artifact_hash, a.run_id, a.purpose, a.logical_request_key,
   a.not_before, a.not_after, a.signature, a.signature_version, a.nonce_hash, ${ms("a.approved_at")} AS approved_at,
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
    signatureVersion: row.signature_version,
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
