// Approvals on SQLite. Whether a nonce is spent is read from the record that spent it; no flag could disagree.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { Approval, ApprovalRecord } from "../../core/records.ts";
import type { AddedApproval } from "../../ports.ts";
import { type ApprovalRow, approvalColumns, toApproval } from "../rows.ts";

const select = `SELECT ${approvalColumns((column) => column)},
  CASE purpose
    WHEN 'register' THEN EXISTS (SELECT 1 FROM registrar_consume c
      WHERE c.mesh_id = a.mesh_id AND c.approval_id = a.approval_id)
    ELSE EXISTS (SELECT 1 FROM registrar_compensation k
      WHERE k.mesh_id = a.mesh_id AND k.approval_id = a.approval_id)
  END AS spent
  FROM registrar_approval a`;

const byId = `${select} WHERE a.mesh_id = ? AND a.approval_id = ?`;
const page = `${select} WHERE a.mesh_id = ? AND a.approval_id > ? ORDER BY a.approval_id LIMIT ?`;

export function selectApproval(db: Sqlite, meshId: string, approvalId: string): ApprovalRecord | undefined {
  const row = db.sql<ApprovalRow>(byId).get(meshId, approvalId);
  return row && toApproval(row);
}

export function selectApprovals(db: Sqlite, meshId: string, after: string, limit: number): ApprovalRecord[] {
  return db.sql<ApprovalRow>(page).all(meshId, after, limit).map(toApproval);
}

export function insertApproval(tx: Sqlite, meshId: string, approval: Approval): AddedApproval {
  const { terms } = approval;
  const stored = selectApproval(tx, meshId, terms.approval_id);
  if (stored !== undefined) return { type: "stored", approval: stored };
  tx.sql(
    `INSERT INTO registrar_approval (mesh_id, approval_id, owner_pubkey, operation, target, artifact_hash, run_id, purpose,
       logical_request_key, not_before, not_after, signature, signature_version, nonce_hash, approved_at, revoked_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)`,
  ).run(
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
    approval.signatureVersion,
    approval.nonceHash,
    approval.approvedAtMs,
  );
  return { type: "added" };
}

export function revokeApproval(
  tx: Sqlite,
  meshId: string,
  approvalId: string,
  nowMs: number,
): ApprovalRecord | undefined {
  tx.sql(
    "UPDATE registrar_approval SET revoked_at = ? WHERE mesh_id = ? AND approval_id = ? AND revoked_at IS NULL",
  ).run(nowMs, meshId, approvalId);
  return selectApproval(tx, meshId, approvalId);
}
