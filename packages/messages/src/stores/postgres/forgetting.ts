// Forgetting ids whose time is over, on PostgreSQL, with the rows that were kept because of them: fences, history rows,
// deliveries, leases and settlements. Inside the caller's transaction, a bounded number of each.
// Why: docs/decisions/0030.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { SweepTally } from "../sweep-tally.ts";

const idsPerStep = 500;
const deliveriesPerStep = 2_000;
const rowsPerStep = 500;

type ExpiredId = { client_message_id: string; history_id: number | null; history_available: boolean };

/**
 * A row leaves at its expires_at or later, with its history row where no message needs that. A send that
 * claims such an id meanwhile waits for this transaction and then finds it free, with nothing left of it.
 */
export async function forgetIds(
  tx: PostgresTransaction,
  meshId: string,
  nowMs: number,
  tally: SweepTally,
): Promise<void> {
  const expired = await tx.query<ExpiredId>(
    `SELECT d.client_message_id, d.history_available, (SELECT h.history_id FROM mesh.message_history h
         WHERE h.mesh_id = d.mesh_id AND h.broker_message_id = d.broker_message_id) AS history_id
     FROM mesh.client_message_dedupe d WHERE d.mesh_id = $1 AND d.expires_at <= $2
     ORDER BY d.expires_at LIMIT $3 FOR UPDATE OF d SKIP LOCKED`,
    [meshId, new Date(nowMs), idsPerStep],
  );
  if (expired.length === idsPerStep) tally.setMore();
  const unneeded = expired.flatMap((row) => (row.history_available || row.history_id === null ? [] : [row.history_id]));
  const left = await deleteDeliveries(tx, meshId, unneeded, deliveriesPerStep, tally);
  await deleteHistory(
    tx,
    meshId,
    unneeded.filter((historyId) => !left.has(historyId)),
    tally,
  );
  const free = expired.filter(({ history_id }) => history_id === null || !left.has(history_id));
  const forgotten = await tx.execute(
    "DELETE FROM mesh.client_message_dedupe WHERE mesh_id = $1 AND client_message_id = ANY ($2::text[])",
    [meshId, free.map((row) => row.client_message_id)],
  );
  tally.add("dedupe_rows", forgotten);
}

export async function forgetFences(
  tx: PostgresTransaction,
  meshId: string,
  nowMs: number,
  tally: SweepTally,
): Promise<void> {
  const forgotten = await tx.execute(
    `DELETE FROM mesh.client_message_fence f
     USING (SELECT sender_pubkey, client_message_id FROM mesh.client_message_fence
       WHERE mesh_id = $1 AND expires_at <= $2 ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED) AS e
     WHERE f.mesh_id = $1 AND f.sender_pubkey = e.sender_pubkey AND f.client_message_id = e.client_message_id`,
    [meshId, new Date(nowMs), rowsPerStep],
  );
  tally.addUpTo("fences", forgotten, rowsPerStep);
}

export async function forgetLeases(
  tx: PostgresTransaction,
  meshId: string,
  beforeMs: number,
  tally: SweepTally,
): Promise<void> {
  const forgotten = await tx.execute(
    `DELETE FROM mesh.queue_lease l
     USING (SELECT queue, holder_pubkey, lease_request_id FROM mesh.queue_lease
       WHERE mesh_id = $1 AND expires_at < $2 ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED) AS e
     WHERE l.mesh_id = $1 AND l.queue = e.queue AND l.holder_pubkey = e.holder_pubkey
       AND l.lease_request_id = e.lease_request_id`,
    [meshId, new Date(beforeMs), rowsPerStep],
  );
  tally.addUpTo("queue_leases", forgotten, rowsPerStep);
}

/** Returns those of these history rows that still have deliveries. */
export async function deleteDeliveries(
  tx: PostgresTransaction,
  meshId: string,
  historyIds: readonly number[],
  limit: number,
  tally: SweepTally,
): Promise<Set<number>> {
  if (historyIds.length === 0) return new Set();
  const deleted = await tx.execute(
    `DELETE FROM mesh.delivery_queue d
     USING (SELECT history_id, recipient_pubkey FROM mesh.delivery_queue
       WHERE mesh_id = $1 AND history_id = ANY ($2::bigint[]) ORDER BY history_id LIMIT $3) AS e
     WHERE d.mesh_id = $1 AND d.history_id = e.history_id AND d.recipient_pubkey = e.recipient_pubkey`,
    [meshId, historyIds, limit],
  );
  tally.addUpTo("deliveries", deleted, limit);
  const left = await tx.query<{ history_id: number }>(
    `SELECT h.history_id FROM unnest($2::bigint[]) AS h (history_id)
     WHERE EXISTS (SELECT 1 FROM mesh.delivery_queue d WHERE d.mesh_id = $1 AND d.history_id = h.history_id)`,
    [meshId, historyIds],
  );
  return new Set(left.map((row) => row.history_id));
}

/** The history rows of messages that are gone, after their deliveries. */
export async function deleteHistory(
  tx: PostgresTransaction,
  meshId: string,
  historyIds: readonly number[],
  tally: SweepTally,
): Promise<void> {
  if (historyIds.length === 0) return;
  const queued = await tx.execute(
    `DELETE FROM mesh.queue_message q USING mesh.message_history h
     WHERE h.mesh_id = $1 AND h.history_id = ANY ($2::bigint[]) AND h.destination_kind = 'queue'
       AND q.mesh_id = $1 AND q.queue = h.destination_ref AND q.history_id = h.history_id`,
    [meshId, historyIds],
  );
  tally.add("queue_messages", queued);
  const settlements = "DELETE FROM mesh.queue_settlement WHERE mesh_id = $1 AND history_id = ANY ($2::bigint[])";
  tally.add("queue_settlements", await tx.execute(settlements, [meshId, historyIds]));
  const history = "DELETE FROM mesh.message_history WHERE mesh_id = $1 AND history_id = ANY ($2::bigint[])";
  tally.add("history_rows", await tx.execute(history, [meshId, historyIds]));
}
