// Removing messages that are older than they have to be, on SQLite: one bounded piece of a mesh's history at a time,
// inside the caller's transaction, whose write lock keeps all other writers out.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { expireMessage } from "../../core/queue-message.ts";
import { type AgedRow, countRemovable } from "../../core/retention.ts";
import type { SweepTerms } from "../../ports/housekeeping.ts";
import type { SweepTally } from "../sweep-tally.ts";
import { deleteDeliveries, deleteHistory, hasDeliveries } from "./forgetting.ts";
import { moveMessages, selectQueueMessage } from "./queue-rows.ts";
import { deleteSearchRow } from "./search.ts";

/** One step is one job among the accepts: short enough that they do not notice. */
const messagesPerStep = 64;
/** Of those messages together; a message with more recipients takes several steps. */
const deliveriesPerStep = 512;

export function removeMessages(
  tx: Sqlite,
  meshId: string,
  terms: SweepTerms & { readonly messagesBeforeMs: number },
  tally: SweepTally,
): void {
  const { nowMs, messagesBeforeMs } = terms;
  const rows = selectNext(tx, meshId, selectRemovedUpTo(tx, meshId));
  const removable = rows.slice(0, countRemovable(rows, messagesBeforeMs, nowMs));
  let room = deliveriesPerStep;
  let removedUpTo: number | undefined;
  for (const row of removable) {
    const expired = expireDeliveries(tx, meshId, row.historyId, nowMs, room);
    tally.add("expired_deliveries", expired);
    room -= expired;
    if (hasUnsettled(tx, meshId, row.historyId)) break;
    // The id may be forgotten already: then nothing needs this row's history row any more.
    const isLast = !markUnavailable(tx, meshId, row);
    if (isLast) room -= deleteDeliveries(tx, meshId, row.historyId, room, tally);
    if (isLast && hasDeliveries(tx, meshId, row.historyId)) break;
    removeMessage(tx, meshId, row, nowMs, tally);
    if (isLast) deleteHistory(tx, meshId, row.historyId, row, tally);
    removedUpTo = row.historyId;
  }
  if (removedUpTo !== undefined) updateRemovedUpTo(tx, meshId, removedUpTo);
  if (removable.length === messagesPerStep || room <= 0) tally.setMore();
}

function selectRemovedUpTo(tx: Sqlite, meshId: string): number {
  const row = tx
    .sql<{ removed_up_to: number }>("SELECT removed_up_to FROM mesh_housekeeping WHERE mesh_id = ?")
    .get(meshId);
  return row?.removed_up_to ?? 0;
}

function updateRemovedUpTo(tx: Sqlite, meshId: string, historyId: number): void {
  tx.sql(
    `INSERT INTO mesh_housekeeping (mesh_id, removed_up_to, checked_at) VALUES (?, ?, 0)
     ON CONFLICT (mesh_id) DO UPDATE SET removed_up_to = excluded.removed_up_to`,
  ).run(meshId, historyId);
}

function selectNext(tx: Sqlite, meshId: string, after: number): AgedRow[] {
  return tx
    .sql<AgedRow>(
      `SELECT history_id AS historyId, broker_message_id AS brokerMessageId, client_message_id AS clientMessageId,
         destination_kind AS kind, destination_ref AS ref, accepted_at AS acceptedAtMs
       FROM message_history WHERE mesh_id = ? AND history_id > ? ORDER BY history_id LIMIT ?`,
    )
    .all(meshId, after, messagesPerStep);
}

function expireDeliveries(tx: Sqlite, meshId: string, historyId: number, nowMs: number, limit: number): number {
  if (limit <= 0) return 0;
  return tx
    .sql(
      `UPDATE delivery_queue SET settled_at = ?1, outcome = 'expired'
       WHERE mesh_id = ?2 AND history_id = ?3 AND recipient_pubkey IN (SELECT d.recipient_pubkey FROM delivery_queue d
         WHERE d.mesh_id = ?2 AND d.history_id = ?3 AND d.settled_at IS NULL LIMIT ?4)`,
    )
    .run(nowMs, meshId, historyId, limit).changes;
}

function hasUnsettled(tx: Sqlite, meshId: string, historyId: number): boolean {
  const row = tx
    .sql("SELECT 1 FROM delivery_queue WHERE mesh_id = ? AND history_id = ? AND settled_at IS NULL LIMIT 1")
    .get(meshId, historyId);
  return row !== undefined;
}

/** False: the id is forgotten, or stands for a later message. */
function markUnavailable(tx: Sqlite, meshId: string, row: AgedRow): boolean {
  const { changes } = tx
    .sql(
      `UPDATE client_message_dedupe SET history_available = 0
       WHERE mesh_id = ? AND client_message_id = ? AND broker_message_id = ?`,
    )
    .run(meshId, row.clientMessageId, row.brokerMessageId);
  return changes > 0;
}

function removeMessage(tx: Sqlite, meshId: string, row: AgedRow, nowMs: number, tally: SweepTally): void {
  if (row.kind === "queue") tally.add("expired_queue_messages", expireQueued(tx, meshId, row, nowMs));
  const table = row.kind === "topic" ? "topic_message" : "message_queue";
  tally.add(
    "messages",
    tx.sql(`DELETE FROM ${table} WHERE mesh_id = ? AND id = ?`).run(meshId, row.brokerMessageId).changes,
  );
  tally.add(
    "mentions",
    tx.sql("DELETE FROM mention_index WHERE mesh_id = ? AND history_id = ?").run(meshId, row.historyId).changes,
  );
  tally.add("search_rows", deleteSearchRow(tx, meshId, row.historyId));
}

function expireQueued(tx: Sqlite, meshId: string, { ref, historyId }: AgedRow, nowMs: number): number {
  const stored = selectQueueMessage(tx, meshId, ref, historyId);
  if (stored === undefined) return 0;
  const next = expireMessage(stored.message, nowMs);
  if (next === stored.message) return 0;
  moveMessages(tx, [{ from: stored, to: next }]);
  return 1;
}
