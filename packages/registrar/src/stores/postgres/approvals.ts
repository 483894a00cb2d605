// Approvals on PostgreSQL. Whether a nonce is spent is read from the record that spent it; no flag could disagree. Who
// uses an approval holds its row, so that a revocation comes before it or waits for it.
import assert from "node:assert/strict";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { Approval, ApprovalRecord } from "../../core/records.ts";
import type { AddedApproval } from "../../ports.ts";
import { type ApprovalRow, approvalColumns, toApproval } from "../rows.ts";
import { asMs, type Reading } from "./stored-requests.ts";

const select = `SELECT ${approvalColumns(asMs)},
  CASE a.purpose
    WHEN 'register' THEN EXISTS (SELECT 1 FROM mesh.registrar_consume c
      WHERE c.mesh_id = a.mesh_id AND c.approval_id = a.approval_id)
    ELSE EXISTS (SELECT 1 FROM mesh.registrar_compensation k
      WHERE k.mesh_id = a.mesh_id AND k.approval_id = a.approval_id)
  END AS spent
  FROM mesh.registrar_approval a`;

export async function selectApproval(
  db: Reading,
  meshId: string,
  approvalId: string,
): Promise<ApprovalRecord | undefined> {
  const text = `${select} WHERE a.mesh_id = $1 AND a.approval_id = $2`;
  const [row] = await db.query<ApprovalRow>(text, [meshId, approvalId], "registrar_approval");
  return row && toApproval(row);
}

/** Held until the transaction ends. A statement of its own: what is read after it sees what was committed before. */
export async function lockApproval(tx: PostgresTransaction, meshId: string, approvalId: string): Promise<void> {
  await tx.query(
    "SELECT 1 FROM mesh.registrar_approval WHERE mesh_id = $1 AND approval_id = $2 FOR SHARE",
    [meshId, approvalId],
    "registrar_lock_approval",
  );
}

export async function selectApprovals(
  db: Reading,
  meshId: string,
  after: string,
  limit: number,
): Promise<ApprovalRecord[]> {
  const rows = await db.query<ApprovalRow>(
    `${select} WHERE a.mesh_id = $1 AND a.approval_id > $2 ORDER BY a.approval_id LIMIT $3`,
    [meshId, after, limit],
  );
  return rows.map(toApproval);
}

export async function insertApproval(
  tx: PostgresTransaction,
  meshId: string,
  approval: Approval,
): Promise<AddedApproval> {
  const { terms } = approval;
  const written = await tx.execute(
    `INSERT INTO mesh.registrar_approval (mesh_id, approval_id, owner_pubkey, operation, target, artifact_hash, run_id,
       purpose, logical_request_key, not_before, not_after, signature, nonce_hash, approved_at,
       signature_version)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING`,
    [
      meshId,
      terms.approval_id,
      approval.ownerPubkey,
      terms.operation,
      terms.target,
      terms.artifact_hash,
      terms.run_id,
      terms.purpose,
      terms.logical_request_key ?? null,
      terms.not_before,
      terms.not_after,
      approval.signature,
      approval.nonceHash,
      new Date(approval.approvedAtMs),
      approval.signatureVersion,
    ],
  );
  if (written === 1) return { type: "added" };
  const stored = await selectApproval(tx, meshId, terms.approval_id);
  assert(stored !== undefined, "an approval that cannot be inserted exists");
  return { type: "stored", approval: stored };
}

export async function revokeApproval(
  tx: PostgresTransaction,
  meshId: string,
  approvalId: string,
  nowMs: number,
): Promise<ApprovalRecord | undefined> {
  await tx.execute(
    `UPDATE mesh.registrar_approval SET revoked_at = $3
     WHERE mesh_id = $1 AND approval_id = $2 AND revoked_at IS NULL`,
    [meshId, approvalId, new Date(nowMs)],
  );
  return selectApproval(tx, meshId, approvalId);
}
