// Forgetting ids whose time is over, on SQLite, with what was kept for their sake: fences, places in history, deliveries,
// leases and settlements. Inside the caller's transaction, a bounded number of each.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { SweepTally } from "../sweep-tally.ts";

const idsPerStep = 64;
const deliveriesPerStep = 512;
const rowsPerStep = 128;

type ExpiredId = { clientMessageId: string; historyId: number; available: number };

/** A row leaves at its expires_at or later, with its place in history where no message needs that. */
export function forgetIds(tx: Sqlite, meshId: string, nowMs: number, tally: SweepTally): void {
  const expired = tx
    .sql<ExpiredId>(
      `SELECT client_message_id AS clientMessageId, history_id AS historyId, history_available AS available
       FROM client_message_dedupe WHERE mesh_id = ? AND expires_at <= ? ORDER BY expires_at LIMIT ?`,
    )
    .all(meshId, nowMs, idsPerStep);
  let room = deliveriesPerStep;
  for (const { clientMessageId, historyId, available } of expired) {
    if (available === 0) {
      room -= deleteDeliveries(tx, meshId, historyId, room, tally);
      if (room <= 0) break;
      deleteHistory(tx, meshId, historyId, selectDestination(tx, meshId, historyId), tally);
    }
    const { changes } = tx
      .sql("DELETE FROM client_message_dedupe WHERE mesh_id = ? AND client_message_id = ?")
      .run(meshId, clientMessageId);
    tally.add("dedupe_rows", changes);
  }
  if (expired.length === idsPerStep || room <= 0) tally.setMore();
}

export function forgetFences(tx: Sqlite, meshId: string, nowMs: number, tally: SweepTally): void {
  const { changes } = tx
    .sql(
      `DELETE FROM client_message_fence WHERE mesh_id = ?1 AND (sender_pubkey, client_message_id) IN
         (SELECT f.sender_pubkey, f.client_message_id FROM client_message_fence f
          WHERE f.mesh_id = ?1 AND f.expires_at <= ?2 ORDER BY f.expires_at LIMIT ?3)`,
    )
    .run(meshId, nowMs, rowsPerStep);
  tally.addUpTo("fences", changes, rowsPerStep);
}

export function forgetLeases(tx: Sqlite, meshId: string, beforeMs: number, tally: SweepTally): void {
  const { changes } = tx
    .sql(
      `DELETE FROM queue_lease WHERE mesh_id = ?1 AND (queue, holder_pubkey, lease_request_id) IN
         (SELECT l.queue, l.holder_pubkey, l.lease_request_id FROM queue_lease l
          WHERE l.mesh_id = ?1 AND l.expires_at < ?2 ORDER BY l.expires_at LIMIT ?3)`,
    )
    .run(meshId, beforeMs, rowsPerStep);
  tally.addUpTo("queue_leases", changes, rowsPerStep);
}

/** Returns how many went; as many as the limit: there may be more. */
export function deleteDeliveries(
  tx: Sqlite,
  meshId: string,
  historyId: number,
  limit: number,
  tally: SweepTally,
): number {
  if (limit <= 0) return 0;
  const { changes } = tx
    .sql(
      `DELETE FROM delivery_queue WHERE mesh_id = ?1 AND history_id = ?2 AND recipient_pubkey IN
         (SELECT d.recipient_pubkey FROM delivery_queue d WHERE d.mesh_id = ?1 AND d.history_id = ?2 LIMIT ?3)`,
    )
    .run(meshId, historyId, limit);
  tally.add("deliveries", changes);
  return changes;
}

type Destination = { readonly kind: string; readonly ref: string };

function selectDestination(tx: Sqlite, meshId: string, historyId: number): Destination | undefined {
  return tx
    .sql<Destination>(
      `SELECT destination_kind AS kind, destination_ref AS ref FROM message_history
       WHERE mesh_id = ? AND history_id = ?`,
    )
    .get(meshId, historyId);
}

/** The place in history of a message that is gone, after its deliveries. */
export function deleteHistory(
  tx: Sqlite,
  meshId: string,
  historyId: number,
  destination: Destination | undefined,
  tally: SweepTally,
): void {
  if (destination?.kind === "queue") {
    const queued = tx.sql("DELETE FROM queue_message WHERE mesh_id = ? AND queue = ? AND history_id = ?");
    tally.add("queue_messages", queued.run(meshId, destination.ref, historyId).changes);
    const settled = tx.sql("DELETE FROM queue_settlement WHERE mesh_id = ? AND history_id = ?");
    tally.add("queue_settlements", settled.run(meshId, historyId).changes);
  }
  const history = tx.sql("DELETE FROM message_history WHERE mesh_id = ? AND history_id = ?");
  tally.add("history_rows", history.run(meshId, historyId).changes);
}
