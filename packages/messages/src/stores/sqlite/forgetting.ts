// Forgetting ids whose time is over, on SQLite, with the rows that were kept because of them: fences, history rows, deliveries,
// leases and settlements. Inside the caller's transaction, a bounded number of each.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { SweepTally } from "../sweep-tally.ts";

/** Looked at in one step, and forgotten of them at most: the others wait for the next. */
const idsPerLook = 512;
const idsPerStep = 64;
const deliveriesPerStep = 512;
const rowsPerStep = 128;

/** Ids from `after` on whose time is over, and where the look ended; undefined: at the end. */
export function selectExpiredIds(
  db: Sqlite,
  meshId: string,
  after: string,
  nowMs: number,
): { readonly ids: readonly string[]; readonly next: string | undefined } {
  const rows = db
    .sql<{ id: string; due: number }>(
      `SELECT client_message_id AS id, coalesce(expires_at <= ?3, 0) AS due FROM client_message_dedupe
       WHERE mesh_id = ?1 AND client_message_id > ?2 ORDER BY client_message_id LIMIT ?4`,
    )
    .all(meshId, after, nowMs, idsPerLook);
  const ids = rows.flatMap(({ id, due }) => (due === 1 ? [id] : []));
  if (ids.length > idsPerStep) return { ids: ids.slice(0, idsPerStep), next: ids[idsPerStep - 1] };
  return { ids, next: rows.length === idsPerLook ? rows.at(-1)?.id : undefined };
}

/** A row leaves at its expires_at or later, with its history row where no message needs that. */
export function forgetIds(
  tx: Sqlite,
  meshId: string,
  ids: readonly string[],
  nowMs: number,
  tally: SweepTally,
): { readonly stoppedAfter: string | undefined; readonly stopped: boolean } {
  let room = deliveriesPerStep;
  let last: string | undefined;
  for (const id of ids) {
    const row = selectExpired(tx, meshId, id, nowMs);
    if (row !== undefined && row.available === 0) {
      room -= deleteDeliveries(tx, meshId, row.historyId, room, tally);
      if (hasDeliveries(tx, meshId, row.historyId)) return { stopped: true, stoppedAfter: last };
      deleteHistory(tx, meshId, row.historyId, selectDestination(tx, meshId, row.historyId), tally);
    }
    if (row !== undefined) {
      const remove = tx.sql("DELETE FROM client_message_dedupe WHERE mesh_id = ? AND client_message_id = ?");
      tally.add("dedupe_rows", remove.run(meshId, id).changes);
    }
    last = id;
  }
  return { stopped: false, stoppedAfter: undefined };
}

function selectExpired(
  tx: Sqlite,
  meshId: string,
  id: string,
  nowMs: number,
): { historyId: number; available: number } | undefined {
  return tx
    .sql<{ historyId: number; available: number }>(
      `SELECT history_id AS historyId, history_available AS available FROM client_message_dedupe
       WHERE mesh_id = ? AND client_message_id = ? AND expires_at <= ?`,
    )
    .get(meshId, id, nowMs);
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

/** What has lost its last delivery goes in the same step: a history row always has its deliveries. */
export function hasDeliveries(tx: Sqlite, meshId: string, historyId: number): boolean {
  const row = tx
    .sql("SELECT 1 FROM delivery_queue WHERE mesh_id = ? AND history_id = ? LIMIT 1")
    .get(meshId, historyId);
  return row !== undefined;
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

/** The history row of a message that is gone, after its deliveries. */
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
