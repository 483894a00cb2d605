// The ledger of retries on PostgreSQL. A count of a key waits for another of the same key, so that an attempt has one
// place.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { attemptsByName, placeOfAttempt } from "../../core/attempts.ts";
import type { RecordedAttempt, Retry } from "../../core/records.ts";
import { asMs, type Reading } from "./stored-requests.ts";

export async function countRetries(tx: PostgresTransaction, retries: readonly Retry[]): Promise<void> {
  // In one order everywhere, so that two brokers never wait for each other.
  const keyOf = ({ meshId, logicalRequestKey }: Retry) => `${meshId}/${logicalRequestKey}`;
  const ordered = retries.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  for (const key of new Set(ordered.map(keyOf))) {
    await tx.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`registrar/${key}`]);
  }
  for (const retry of ordered) await countRetry(tx, retry);
}

async function countRetry(tx: PostgresTransaction, retry: Retry): Promise<void> {
  const { meshId, logicalRequestKey, memberPubkey, tries, atMs } = retry;
  const rows = await tx.query<{ seq: number; attemptId: string }>(
    `SELECT seq, attempt_id AS "attemptId" FROM mesh.registrar_attempt
     WHERE mesh_id = $1 AND logical_request_key = $2`,
    [meshId, logicalRequestKey],
  );
  const { seq, attemptId } = placeOfAttempt(rows, retry.attemptId);
  await tx.execute(
    `INSERT INTO mesh.registrar_attempt AS a
       (mesh_id, logical_request_key, seq, attempt_id, member_pubkey, tries, first_at, last_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
     ON CONFLICT (mesh_id, logical_request_key, seq) DO UPDATE
     SET tries = a.tries + excluded.tries, last_at = greatest(a.last_at, excluded.last_at)`,
    [meshId, logicalRequestKey, seq, attemptId, memberPubkey, tries, new Date(atMs)],
  );
}

export async function selectAttempts(
  db: Reading,
  meshId: string,
  logicalRequestKey: string,
): Promise<RecordedAttempt[]> {
  const rows = await db.query<Omit<RecordedAttempt, "attemptId"> & { seq: number; attemptId: string }>(
    `SELECT seq, attempt_id AS "attemptId", member_pubkey AS "memberPubkey", tries,
       ${asMs("first_at")} AS "firstAtMs", ${asMs("last_at")} AS "lastAtMs"
     FROM mesh.registrar_attempt WHERE mesh_id = $1 AND logical_request_key = $2 ORDER BY seq`,
    [meshId, logicalRequestKey],
  );
  return rows.map(({ seq, attemptId, ...rest }) => ({
    ...rest,
    attemptId: seq < attemptsByName ? attemptId : undefined,
  }));
}
