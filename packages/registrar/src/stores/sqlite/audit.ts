// The audit on SQLite: rows that are appended, and beside them how far each member's window is.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { auditWindowMs, countRefusal } from "../../core/audit-window.ts";
import type { AuditEntry, Refusal } from "../../core/records.ts";
import { type AuditRow, toAuditEntry } from "../rows.ts";

export function insertRefusal(tx: Sqlite, meshId: string, refusal: Refusal, nowMs: number, nextId: () => string): void {
  const { memberPubkey } = refusal;
  const row = tx
    .sql<{ window_start: number; written: number; suppressed: number }>(
      "SELECT window_start, written, suppressed FROM registrar_audit_window WHERE mesh_id = ? AND member_pubkey = ?",
    )
    .get(meshId, memberPubkey);
  const window = row && { windowStartMs: row.window_start, written: row.written, suppressed: row.suppressed };
  const step = countRefusal(window, nowMs);
  if (step.summarise > 0) insertSummary(tx, meshId, memberPubkey, step.summarise, nowMs, nextId());
  if (step.write) {
    tx.sql(
      `INSERT INTO registrar_audit (mesh_id, audit_id, kind, member_pubkey, at, code, conflict, logical_request_key,
         approval_id, attempt_id, suppressed)
       VALUES (?, ?, 'refusal', ?, ?, ?, ?, ?, ?, ?, 0)`,
    ).run(
      meshId,
      refusal.auditId,
      memberPubkey,
      nowMs,
      refusal.code,
      refusal.conflict ?? null,
      refusal.logicalRequestKey ?? null,
      refusal.approvalId ?? null,
      refusal.attemptId ?? null,
    );
  }
  const { windowStartMs, written, suppressed } = step.window;
  tx.sql(
    `INSERT INTO registrar_audit_window (mesh_id, member_pubkey, window_start, written, suppressed) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (mesh_id, member_pubkey) DO UPDATE
     SET window_start = excluded.window_start, written = excluded.written, suppressed = excluded.suppressed`,
  ).run(meshId, memberPubkey, windowStartMs, written, suppressed);
}

export function summariseWindows(tx: Sqlite, nowMs: number, limit: number, nextId: () => string): number {
  const over = selectOver(tx, nowMs, limit);
  for (const { mesh_id, member_pubkey, suppressed } of over) {
    insertSummary(tx, mesh_id, member_pubkey, suppressed, nowMs, nextId());
    tx.sql("UPDATE registrar_audit_window SET suppressed = 0 WHERE mesh_id = ? AND member_pubkey = ?").run(
      mesh_id,
      member_pubkey,
    );
  }
  return over.length;
}

export function hasWindowsOver(db: Sqlite, nowMs: number): boolean {
  return selectOver(db, nowMs, 1).length > 0;
}

type OverRow = { readonly mesh_id: string; readonly member_pubkey: string; readonly suppressed: number };

function selectOver(db: Sqlite, nowMs: number, limit: number): OverRow[] {
  return db
    .sql<OverRow>(
      `SELECT mesh_id, member_pubkey, suppressed FROM registrar_audit_window
       WHERE suppressed > 0 AND (window_start <= ? OR window_start > ?) LIMIT ?`,
    )
    .all(nowMs - auditWindowMs, nowMs, limit);
}

function insertSummary(
  tx: Sqlite,
  meshId: string,
  memberPubkey: string,
  suppressed: number,
  nowMs: number,
  auditId: string,
): void {
  tx.sql(
    `INSERT INTO registrar_audit (mesh_id, audit_id, kind, member_pubkey, at, suppressed)
     VALUES (?, ?, 'summary', ?, ?, ?)`,
  ).run(meshId, auditId, memberPubkey, nowMs, suppressed);
}

export function selectAudit(db: Sqlite, meshId: string, after: string, limit: number): AuditEntry[] {
  return db
    .sql<AuditRow>(
      `SELECT audit_id, kind, member_pubkey, at, code, conflict, logical_request_key, approval_id, attempt_id, suppressed
       FROM registrar_audit WHERE mesh_id = ? AND audit_id > ? ORDER BY audit_id LIMIT ?`,
    )
    .all(meshId, after, limit)
    .map(toAuditEntry);
}
