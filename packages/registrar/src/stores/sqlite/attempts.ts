// The ledger of retries on SQLite.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { attemptsByName, rowOfAttempt } from "../../core/attempts.ts";
import type { RecordedAttempt, Retry } from "../../core/records.ts";

export function countRetries(tx: Sqlite, retries: readonly Retry[]): void {
  for (const retry of retries) countRetry(tx, retry);
}

function countRetry(tx: Sqlite, retry: Retry): void {
  const { meshId, logicalRequestKey, tries, atMs, memberPubkey } = retry;
  const rows = tx
    .sql<{ seq: number; attemptId: string }>(
      "SELECT seq, attempt_id AS attemptId FROM registrar_attempt WHERE mesh_id = ? AND logical_request_key = ?",
    )
    .all(meshId, logicalRequestKey);
  const { seq, attemptId } = rowOfAttempt(rows, retry.attemptId);
  tx.sql(
    `INSERT INTO registrar_attempt
       (mesh_id, logical_request_key, seq, attempt_id, member_pubkey, tries, first_at, last_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (mesh_id, logical_request_key, seq) DO UPDATE
     SET tries = tries + excluded.tries, last_at = max(last_at, excluded.last_at)`,
  ).run(meshId, logicalRequestKey, seq, attemptId, memberPubkey, tries, atMs, atMs);
}

export function selectAttempts(db: Sqlite, meshId: string, logicalRequestKey: string): RecordedAttempt[] {
  return db
    .sql<Omit<RecordedAttempt, "attemptId"> & { seq: number; attemptId: string }>(
      `SELECT seq, attempt_id AS attemptId, member_pubkey AS memberPubkey, tries, first_at AS firstAtMs,
         last_at AS lastAtMs
       FROM registrar_attempt WHERE mesh_id = ? AND logical_request_key = ? ORDER BY seq`,
    )
    .all(meshId, logicalRequestKey)
    .map(({ seq, attemptId, ...rest }) => ({ ...rest, attemptId: seq < attemptsByName ? attemptId : undefined }));
}
