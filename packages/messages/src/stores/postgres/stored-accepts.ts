// Dedupe rows read back on PostgreSQL, many at once: for the look-up before any limit, for sends that lost a
// race, and for fates.
// Why: docs/decisions/0007.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { textArray, uuidArray } from "@claudemesh/storage/postgres-arrays";
import type { StoredAccept } from "../../ports.ts";

export type ClientKey = { readonly meshId: string; readonly clientMessageId: string };

/** Where a statement runs: on its own, or inside a transaction. */
export type Reading = Pick<PostgresTransaction, "query">;

export type DedupeRow = {
  broker_message_id: string;
  history_id: number;
  request_fingerprint: Uint8Array;
  sender_pubkey: string;
  history_available: boolean;
  first_seen_ms: number;
};

/**
 * Of `mesh.client_message_dedupe d`. A claim is made before its history id is known, and is not written twice for its
 * sake. The time as a number: a date would be spelled and parsed.
 */
export const dedupeColumns = `d.broker_message_id, coalesce((SELECT h.history_id FROM mesh.message_history h
    WHERE h.mesh_id = d.mesh_id AND h.broker_message_id = d.broker_message_id), 0) AS history_id,
  d.request_fingerprint, d.sender_pubkey, d.history_available,
  date_part('epoch', d.first_seen_at) * 1000 AS first_seen_ms`;

// Planned once for each connection, maybe when the tables were empty. Each look-up is a subquery of its own (OFFSET keeps
// the outer one so), which can use nothing but its whole key: a join would read a young mesh's whole history for each id.
const selectStatement = `
  SELECT k.n::int AS n, s.*
  FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS k (mesh_id, client_message_id, n)
  CROSS JOIN LATERAL (
    SELECT ${dedupeColumns} FROM mesh.client_message_dedupe d
    WHERE d.mesh_id = k.mesh_id AND d.client_message_id = k.client_message_id OFFSET 0
  ) AS s`;

/** One entry per key, in their order; undefined where the id is free. */
export async function selectAccepted(
  db: Reading,
  keys: readonly ClientKey[],
): Promise<readonly (StoredAccept | undefined)[]> {
  const rows = await db.query<DedupeRow & { n: number }>(
    selectStatement,
    [uuidArray(keys.map((key) => key.meshId)), textArray(keys.map((key) => key.clientMessageId))],
    "find_accepted",
  );
  const stored: (StoredAccept | undefined)[] = keys.map(() => undefined);
  for (const row of rows) stored[row.n - 1] = toStoredAccept(row);
  return stored;
}

export function toStoredAccept(row: DedupeRow): StoredAccept {
  return {
    brokerMessageId: row.broker_message_id,
    historyId: row.history_id,
    fingerprint: row.request_fingerprint,
    senderPubkey: row.sender_pubkey,
    historyAvailable: row.history_available,
    firstSeenAtMs: Math.round(row.first_seen_ms),
  };
}
