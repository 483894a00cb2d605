// The audit on PostgreSQL: rows that are appended, and beside them how far each member's window is. Who counts a refusal
// holds the member's window, so that brokers side by side keep one count.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { auditWindowMs, countRefusal } from "../../core/audit-window.ts";
import type { AuditEntry, Refusal } from "../../core/records.ts";
import { type AuditRow, toAuditEntry } from "../rows.ts";
import { asMs, firstId, type Reading } from "./stored-requests.ts";

export async function insertRefusal(
  tx: PostgresTransaction,
  meshId: string,
  refusal: Refusal,
  nowMs: number,
  nextId: () => string,
): Promise<void> {
  const { memberPubkey } = refusal;
  const started = await tx.execute(
    `INSERT INTO mesh.registrar_audit_window (mesh_id, member_pubkey, window_start, written, suppressed)
     VALUES ($1, $2, $3, 1, 0) ON CONFLICT DO NOTHING`,
    [meshId, memberPubkey, nowMs],
  );
  const [found] =
    started === 1
      ? []
      : await tx.query<{ window_start: number; written: number; suppressed: number }>(
          `SELECT window_start, written, suppressed FROM mesh.registrar_audit_window
           WHERE mesh_id = $1 AND member_pubkey = $2 FOR UPDATE`,
          [meshId, memberPubkey],
        );
  const window = found && { windowStartMs: found.window_start, written: found.written, suppressed: found.suppressed };
  const step = countRefusal(window, nowMs);
  if (step.summarise > 0) await insertSummary(tx, meshId, memberPubkey, step.summarise, nowMs, nextId());
  if (step.write) await insertEntry(tx, meshId, refusal, nowMs);
  if (window === undefined) return;
  const { windowStartMs, written, suppressed } = step.window;
  await tx.execute(
    `UPDATE mesh.registrar_audit_window SET window_start = $3, written = $4, suppressed = $5
     WHERE mesh_id = $1 AND member_pubkey = $2`,
    [meshId, memberPubkey, windowStartMs, written, suppressed],
  );
}

async function insertEntry(tx: PostgresTransaction, meshId: string, refusal: Refusal, nowMs: number): Promise<void> {
  const { auditId, memberPubkey, code, conflict, logicalRequestKey, approvalId, attemptId } = refusal;
  await tx.execute(
    `INSERT INTO mesh.registrar_audit (mesh_id, audit_id, kind, member_pubkey, at, code, conflict, logical_request_key,
       approval_id, attempt_id, suppressed)
     VALUES ($1, $2, 'refusal', $3, $4, $5, $6, $7, $8, $9, 0)`,
    [meshId, auditId, memberPubkey, new Date(nowMs), code, conflict, logicalRequestKey, approvalId, attemptId],
  );
}

async function insertSummary(
  tx: PostgresTransaction,
  meshId: string,
  memberPubkey: string,
  suppressed: number,
  nowMs: number,
  auditId: string,
): Promise<void> {
  await tx.execute(
    `INSERT INTO mesh.registrar_audit (mesh_id, audit_id, kind, member_pubkey, at, suppressed)
     VALUES ($1, $2, 'summary', $3, $4, $5)`,
    [meshId, auditId, memberPubkey, new Date(nowMs), suppressed],
  );
}

type OverRow = { readonly mesh_id: string; readonly member_pubkey: string; readonly suppressed: number };

export async function summariseWindows(
  tx: PostgresTransaction,
  nowMs: number,
  limit: number,
  nextId: () => string,
): Promise<number> {
  const over = await tx.query<OverRow>(
    `SELECT mesh_id, member_pubkey, suppressed FROM mesh.registrar_audit_window
     WHERE suppressed > 0 AND (window_start <= $1 OR window_start > $2) LIMIT $3 FOR UPDATE SKIP LOCKED`,
    [nowMs - auditWindowMs, nowMs, limit],
  );
  for (const { mesh_id, member_pubkey, suppressed } of over) {
    await insertSummary(tx, mesh_id, member_pubkey, suppressed, nowMs, nextId());
    await tx.execute(
      "UPDATE mesh.registrar_audit_window SET suppressed = 0 WHERE mesh_id = $1 AND member_pubkey = $2",
      [mesh_id, member_pubkey],
    );
  }
  return over.length;
}

export async function selectAudit(db: Reading, meshId: string, after: string, limit: number): Promise<AuditEntry[]> {
  const rows = await db.query<AuditRow>(
    `SELECT audit_id, kind, member_pubkey, ${asMs("at")} AS at, code, conflict, logical_request_key, approval_id,
       attempt_id, suppressed
     FROM mesh.registrar_audit WHERE mesh_id = $1 AND audit_id > $2 ORDER BY audit_id LIMIT $3`,
    [meshId, after === "" ? firstId : after, limit],
  );
  return rows.map(toAuditEntry);
}
