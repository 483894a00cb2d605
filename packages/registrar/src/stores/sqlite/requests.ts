// Phase 1, verification and compensation on SQLite. The database's write lock makes transactions serial, so that what is
// read here is still so when it is written; the unique indexes would refuse it otherwise.
import { isLiveMember } from "@claudemesh/members/sqlite";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { type CompensationDecision, type CompensationRequest, decideCompensation } from "../../core/compensation.ts";
import {
  decideRequest,
  type NewRegistration,
  type RegistrationRequest,
  type RequestDecision,
} from "../../core/phase-one.ts";
import type { Verification } from "../../core/records.ts";
import type { UnverifiedRequest } from "../../ports.ts";
import { writeReasons } from "../reasons.ts";
import { selectApproval } from "./approvals.ts";
import { selectByEffect, selectRequest } from "./stored-requests.ts";

export function consumeInTransaction(tx: Sqlite, request: RegistrationRequest, nowMs: number): RequestDecision {
  const { meshId, memberPubkey, approvalId, logicalRequestKey } = request;
  const approval = selectApproval(tx, meshId, approvalId);
  const decision = decideRequest(
    request,
    {
      stored: selectRequest(tx, meshId, logicalRequestKey),
      approval,
      spent: approval?.spent === true,
      ownerLive: approval !== undefined && isLiveOwner(tx, meshId, approval.ownerPubkey),
      memberLive: isLiveMember(tx, meshId, memberPubkey),
      sameEffect: selectByEffect(tx, meshId, request.effectKey),
    },
    nowMs,
  );
  if (decision.type === "consume") insertRegistration(tx, meshId, decision.row);
  return decision;
}

function insertRegistration(tx: Sqlite, meshId: string, { consumption, registration }: NewRegistration): void {
  tx.sql(
    `INSERT INTO registrar_consume (mesh_id, logical_request_key, protocol_version, replay_key, effect_key, operation,
       target, artifact_hash, run_id, binding, approval_id, attempt_id, registration_id, member_pubkey, consumed_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    meshId,
    registration.logicalRequestKey,
    consumption.protocolVersion,
    consumption.replayKey,
    consumption.effectKey,
    registration.operation,
    registration.target,
    registration.artifactHash,
    registration.runId,
    consumption.binding,
    consumption.approvalId,
    consumption.attemptId,
    registration.registrationId,
    registration.registeredBy,
    consumption.consumedAtMs,
  );
  tx.sql(
    `INSERT INTO registrar_registration (mesh_id, logical_request_key, registration_id, operation, target, artifact_hash,
       run_id, binding, registered_by, registered_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    meshId,
    registration.logicalRequestKey,
    registration.registrationId,
    registration.operation,
    registration.target,
    registration.artifactHash,
    registration.runId,
    registration.binding,
    registration.registeredBy,
    registration.registeredAtMs,
  );
}

export function compensateInTransaction(tx: Sqlite, request: CompensationRequest, nowMs: number): CompensationDecision {
  const { meshId, memberPubkey, approvalId, logicalRequestKey } = request;
  const approval = selectApproval(tx, meshId, approvalId);
  const decision = decideCompensation(
    request,
    {
      stored: selectRequest(tx, meshId, logicalRequestKey),
      approval,
      spent: approval?.spent === true,
      ownerLive: approval !== undefined && isLiveOwner(tx, meshId, approval.ownerPubkey),
      memberLive: isLiveOwner(tx, meshId, memberPubkey),
    },
    nowMs,
  );
  if (decision.type !== "compensate") return decision;
  const { compensation } = decision;
  tx.sql(
    `INSERT INTO registrar_compensation
       (mesh_id, logical_request_key, approval_id, attempt_id, compensated_by, compensated_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  ).run(
    meshId,
    logicalRequestKey,
    compensation.approvalId,
    compensation.attemptId,
    compensation.compensatedBy,
    compensation.compensatedAtMs,
  );
  return decision;
}

function isLiveOwner(tx: Sqlite, meshId: string, pubkey: string): boolean {
  const row = tx
    .sql("SELECT 1 FROM member WHERE mesh_id = ? AND pubkey = ? AND role = 'owner' AND revoked_at IS NULL")
    .get(meshId, pubkey);
  return row !== undefined;
}

const verdictOf = "SELECT 1 FROM registrar_verification WHERE mesh_id = ? AND logical_request_key = ?";

/** The verdict that stands, this one or an earlier one. */
export function insertVerification(
  tx: Sqlite,
  meshId: string,
  logicalRequestKey: string,
  verification: Verification,
): Verification {
  if (tx.sql(verdictOf).get(meshId, logicalRequestKey) !== undefined) {
    return selectRequest(tx, meshId, logicalRequestKey)?.verification ?? verification;
  }
  tx.sql(
    `INSERT INTO registrar_verification (mesh_id, logical_request_key, state, verifier, reasons, verified_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  ).run(
    meshId,
    logicalRequestKey,
    verification.state,
    verification.verifier,
    writeReasons(verification.reasons),
    verification.verifiedAtMs,
  );
  return verification;
}

// By mesh, so that what is old is passed over in the index of each.
export function selectUnverified(
  db: Sqlite,
  sinceId: string,
  after: UnverifiedRequest | undefined,
  limit: number,
): UnverifiedRequest[] {
  return db
    .sql<UnverifiedRequest>(
      `SELECT r.mesh_id AS meshId, r.registration_id AS registrationId, r.logical_request_key AS logicalRequestKey
       FROM mesh m CROSS JOIN registrar_registration r ON r.mesh_id = m.id AND r.registration_id >= ?
       WHERE m.id >= ? AND (r.mesh_id, r.registration_id) > (?, ?) AND NOT EXISTS (
         SELECT 1 FROM registrar_verification v
         WHERE v.mesh_id = r.mesh_id AND v.logical_request_key = r.logical_request_key)
       ORDER BY m.id, r.registration_id LIMIT ?`,
    )
    .all(sinceId, after?.meshId ?? "", after?.meshId ?? "", after?.registrationId ?? "", limit);
}

export function selectFailed(db: Sqlite, meshId: string, limit: number): string[] {
  return db
    .sql<{ key: string }>(
      `SELECT v.logical_request_key AS key FROM registrar_verification v INDEXED BY registrar_verification_failed
       WHERE v.mesh_id = ? AND v.state = 'verify_failed' AND NOT EXISTS (SELECT 1 FROM registrar_compensation k
         WHERE k.mesh_id = v.mesh_id AND k.logical_request_key = v.logical_request_key)
       ORDER BY v.logical_request_key LIMIT ?`,
    )
    .all(meshId, limit)
    .map(({ key }) => key);
}
