// The ledger of retries on PostgreSQL: many in two statements. A count in a mesh waits for another in the same one, so
// that an attempt has one row.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { type AttemptRow, assignRows, attemptsByName } from "../../core/attempts.ts";
import type { RecordedAttempt, Retry } from "../../core/records.ts";
import { asMs, type Reading } from "./stored-requests.ts";

export async function countRetries(tx: PostgresTransaction, retries: readonly Retry[]): Promise<void> {
  // In one order everywhere, so that two brokers never wait for each other.
  const meshes = [...new Set(retries.map(({ meshId }) => meshId))].sort();
  for (const meshId of meshes) {
    await tx.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`registrar_attempt/${meshId}`]);
  }
  const keys = [retries.map(({ meshId }) => meshId), retries.map(({ logicalRequestKey }) => logicalRequestKey)];
  const rows = await tx.query<AttemptRow>(
    `SELECT a.mesh_id AS "meshId", a.logical_request_key AS "logicalRequestKey", a.seq, a.attempt_id AS "attemptId"
     FROM (SELECT DISTINCT * FROM unnest($1::uuid[], $2::text[]) AS k (mesh_id, logical_request_key)) k
     JOIN mesh.registrar_attempt a ON a.mesh_id = k.mesh_id AND a.logical_request_key = k.logical_request_key COLLATE "C"`,
    keys,
    "registrar_known_attempts",
  );
  const assigned = assignRows(rows, retries);
  await tx.execute(
    `INSERT INTO mesh.registrar_attempt AS a
       (mesh_id, logical_request_key, seq, attempt_id, member_pubkey, tries, first_at, last_at)
     SELECT r.mesh_id, r.logical_request_key, r.seq, r.attempt_id, r.member_pubkey, r.tries, r.at, r.at
     FROM unnest($1::uuid[], $2::text[], $3::int[], $4::text[], $5::text[], $6::bigint[], $7::timestamptz[])
       AS r (mesh_id, logical_request_key, seq, attempt_id, member_pubkey, tries, at)
     ON CONFLICT (mesh_id, logical_request_key, seq) DO UPDATE
     SET tries = a.tries + excluded.tries, last_at = greatest(a.last_at, excluded.last_at)`,
    [
      assigned.map(({ meshId }) => meshId),
      assigned.map(({ logicalRequestKey }) => logicalRequestKey),
      assigned.map(({ seq }) => seq),
      assigned.map(({ attemptId }) => attemptId),
      assigned.map(({ memberPubkey }) => memberPubkey),
      assigned.map(({ tries }) => tries),
      assigned.map(({ atMs }) => new Date(atMs)),
    ],
    "registrar_count_attempts",
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
