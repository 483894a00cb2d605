// Phase 1, verification and compensation on PostgreSQL. An insert that finds its row taken has lost to a transaction that it
// could not see: the request is rolled back and decided again, and then sees it.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
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
import { lockApproval, selectApproval } from "./approvals.ts";
import { firstId, type Reading, selectByEffect, selectRequest } from "./stored-requests.ts";

/** Rolls the transaction back; never leaves this file. */
class RowTaken extends Error {
  override readonly name = "RowTaken";
}

/** One round finds the request ahead; more are needed only where several keys of one request are taken at once. */
const roundsMax = 5;

/** Runs `body` until no row was taken from under it. */
export async function decideAgainWhenTaken<T>(transact: () => Promise<T>): Promise<T> {
  for (let round = 1; ; round++) {
    try {
      return await transact();
    } catch (error) {
      if (!(error instanceof RowTaken) || round === roundsMax) throw error;
    }
  }
}

export async function consumeInTransaction(
  tx: PostgresTransaction,
  request: RegistrationRequest,
  nowMs: number,
): Promise<RequestDecision> {
  const { meshId, memberPubkey, approvalId, logicalRequestKey } = request;
  // Sent together, in the reverse order of the checks, behind the approval's lock. Every statement sees what is committed
  // when it begins, and rows are only added: a request that sees an effect taken must also see the nonce that was spent
  // for it and the key that was consumed, or a collision would be answered as a refusal.
  const [, sameEffect, members, owners, approval, stored] = await Promise.all([
    lockApproval(tx, meshId, approvalId),
    selectByEffect(tx, meshId, request.effectKey),
    selectLive(tx, meshId, memberPubkey),
    selectApprovingOwner(tx, meshId, approvalId),
    selectApproval(tx, meshId, approvalId),
    selectRequest(tx, meshId, logicalRequestKey),
  ]);
  const facts = {
    stored,
    approval,
    spent: approval?.spent === true,
    ownerLive: owners.length > 0,
    memberLive: members.length > 0,
    sameEffect,
  };
  const decision = decideRequest(request, facts, nowMs);
  if (decision.type === "consume") await insertRegistration(tx, meshId, decision.row);
  return decision;
}

// A revocation of either waits for this transaction, or was committed before and is seen.
function selectApprovingOwner(tx: PostgresTransaction, meshId: string, approvalId: string): Promise<unknown[]> {
  return tx.query(
    `SELECT 1 FROM mesh.registrar_approval a JOIN mesh.member m ON m.mesh_id = a.mesh_id AND m.pubkey = a.owner_pubkey
     WHERE a.mesh_id = $1 AND a.approval_id = $2 AND m.role = 'owner' AND m.revoked_at IS NULL FOR SHARE OF m`,
    [meshId, approvalId],
    "registrar_approving_owner",
  );
}

function selectLive(tx: PostgresTransaction, meshId: string, pubkey: string): Promise<{ role: string }[]> {
  return tx.query<{ role: string }>(
    "SELECT role FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 AND revoked_at IS NULL FOR SHARE",
    [meshId, pubkey],
    "registrar_member",
  );
}

async function insertRegistration(
  tx: PostgresTransaction,
  meshId: string,
  { consumption, registration }: NewRegistration,
): Promise<void> {
  const [consumed, registered] = await Promise.all([
    tx.execute(
      `INSERT INTO mesh.registrar_consume (mesh_id, logical_request_key, protocol_version, replay_key, effect_key,
         operation, target, artifact_hash, run_id, binding, approval_id, attempt_id, registration_id, member_pubkey,
         consumed_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING`,
      [
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
        new Date(consumption.consumedAtMs),
      ],
      "registrar_consume",
    ),
    tx.execute(
      `INSERT INTO mesh.registrar_registration (mesh_id, logical_request_key, registration_id, operation, target,
         artifact_hash, run_id, binding, registered_by, registered_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
      [
        meshId,
        registration.logicalRequestKey,
        registration.registrationId,
        registration.operation,
        registration.target,
        registration.artifactHash,
        registration.runId,
        registration.binding,
        registration.registeredBy,
        new Date(registration.registeredAtMs),
      ],
      "registrar_register",
    ),
  ]);
  if (consumed !== 1 || registered !== 1) throw new RowTaken("the key, the effect or the nonce was taken meanwhile");
}

export async function compensateInTransaction(
  tx: PostgresTransaction,
  request: CompensationRequest,
  nowMs: number,
): Promise<CompensationDecision> {
  const { meshId, memberPubkey, approvalId, logicalRequestKey } = request;
  const [, approval, owners, members, stored] = await Promise.all([
    lockApproval(tx, meshId, approvalId),
    selectApproval(tx, meshId, approvalId),
    selectApprovingOwner(tx, meshId, approvalId),
    selectLive(tx, meshId, memberPubkey),
    selectRequest(tx, meshId, logicalRequestKey),
  ]);
  const memberLive = members.some(({ role }) => role === "owner");
  const facts = { stored, approval, spent: approval?.spent === true, ownerLive: owners.length > 0, memberLive };
  const decision = decideCompensation(request, facts, nowMs);
  if (decision.type !== "compensate") return decision;
  const { compensation } = decision;
  const written = await tx.execute(
    `INSERT INTO mesh.registrar_compensation
       (mesh_id, logical_request_key, approval_id, attempt_id, compensated_by, compensated_at)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
    [
      meshId,
      logicalRequestKey,
      compensation.approvalId,
      compensation.attemptId,
      compensation.compensatedBy,
      new Date(compensation.compensatedAtMs),
    ],
  );
  if (written !== 1) throw new RowTaken("the request was compensated, or the nonce spent, meanwhile");
  return decision;
}

/** The verdict that stands, this one or an earlier one. */
export async function insertVerification(
  tx: PostgresTransaction,
  meshId: string,
  logicalRequestKey: string,
  verification: Verification,
): Promise<Verification> {
  const written = await tx.execute(
    `INSERT INTO mesh.registrar_verification (mesh_id, logical_request_key, state, verifier, reasons, verified_at)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
    [
      meshId,
      logicalRequestKey,
      verification.state,
      verification.verifier,
      writeReasons(verification.reasons),
      new Date(verification.verifiedAtMs),
    ],
    "registrar_verify",
  );
  if (written === 1) return verification;
  return (await selectRequest(tx, meshId, logicalRequestKey))?.verification ?? verification;
}

// By mesh, so that what is old is passed over in the index of each.
export function selectUnverified(
  db: Reading,
  sinceId: string,
  after: UnverifiedRequest | undefined,
  limit: number,
): Promise<UnverifiedRequest[]> {
  return db.query<UnverifiedRequest>(
    `SELECT r.mesh_id AS "meshId", r.registration_id AS "registrationId",
       r.logical_request_key AS "logicalRequestKey"
     FROM mesh.mesh m JOIN mesh.registrar_registration r ON r.mesh_id = m.id AND r.registration_id >= $1
     WHERE (r.mesh_id, r.registration_id) > ($2, $3) AND NOT EXISTS (
       SELECT 1 FROM mesh.registrar_verification v
       WHERE v.mesh_id = r.mesh_id AND v.logical_request_key = r.logical_request_key)
     ORDER BY r.mesh_id, r.registration_id LIMIT $4`,
    [sinceId === "" ? firstId : sinceId, after?.meshId ?? firstId, after?.registrationId ?? firstId, limit],
  );
}

export async function selectFailed(db: Reading, meshId: string, limit: number): Promise<string[]> {
  const rows = await db.query<{ key: string }>(
    `SELECT v.logical_request_key AS key FROM mesh.registrar_verification v
     WHERE v.mesh_id = $1 AND v.state = 'verify_failed' AND NOT EXISTS (SELECT 1 FROM mesh.registrar_compensation k
       WHERE k.mesh_id = v.mesh_id AND k.logical_request_key = v.logical_request_key)
     ORDER BY v.logical_request_key LIMIT $2`,
    [meshId, limit],
  );
  return rows.map(({ key }) => key);
}
