// What became of one message, on SQLite: its deliveries, or its state in a queue.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import {
  countQueued,
  fullState,
  type StoredDelivery,
  type StoredHistoryRow,
  toDeliveryState,
  toQueuedState,
} from "../../core/message-state.ts";
import type {
  DeliveryCounts,
  DeliveryState,
  MessageState,
  MessageStateQuery,
  QueuedState,
} from "../../ports/reading.ts";
import { selectQueueMessage } from "./queue-rows.ts";
import { selectMaxDeliveries } from "./queues.ts";
import { visibleTo } from "./stored-items.ts";

export function selectMessageState(db: Sqlite, query: MessageStateQuery, nowMs: number): MessageState | undefined {
  const { meshId } = query;
  const historyRow = selectHistoryRow(db, query);
  if (historyRow === undefined || !(historyRow.visible || query.readerIsOwner)) return undefined;
  const queued = selectQueued(db, meshId, historyRow, nowMs);
  const counts = queued === undefined ? countDeliveries(db, meshId, historyRow.history_id) : countQueued(queued);
  if (!historyRow.visible) return { sight: "counts", acceptedAtMs: Number(historyRow.accepted_at), counts };
  return fullState(historyRow, counts, selectDeliveries(db, query, historyRow.history_id), queued, query);
}

/** Found through the message, which has the history id. A message that retention removed has no state any more. */
function selectHistoryRow(
  db: Sqlite,
  { meshId, brokerMessageId, reader }: MessageStateQuery,
): StoredHistoryRow | undefined {
  const message = db
    .sql<{ history_id: number }>(
      `SELECT history_id FROM topic_message WHERE mesh_id = ?1 AND id = ?2
       UNION ALL SELECT history_id FROM message_queue WHERE mesh_id = ?1 AND id = ?2`,
    )
    .get(meshId, brokerMessageId);
  if (message === undefined) return undefined;
  return db
    .sql<StoredHistoryRow>(
      `SELECT h.history_id, h.client_message_id, h.destination_kind, h.destination_ref, h.sender_pubkey, h.accepted_at,
         (${visibleTo("?3")} OR EXISTS (SELECT 1 FROM queue_message q WHERE q.mesh_id = h.mesh_id
            AND h.destination_kind = 'queue' AND q.queue = h.destination_ref AND q.history_id = h.history_id
            AND q.lease_holder = ?3)) AS visible
       FROM message_history h WHERE h.mesh_id = ?1 AND h.history_id = ?2`,
    )
    .get(meshId, message.history_id, reader);
}

function selectQueued(
  db: Sqlite,
  meshId: string,
  { destination_kind: kind, destination_ref: ref, history_id: historyId }: StoredHistoryRow,
  nowMs: number,
): QueuedState | undefined {
  const row = kind === "queue" ? selectQueueMessage(db, meshId, ref, historyId) : undefined;
  return row && toQueuedState(row.message, selectMaxDeliveries(db, meshId, ref), nowMs);
}

function countDeliveries(db: Sqlite, meshId: string, historyId: number): DeliveryCounts {
  const row = db
    .sql<DeliveryCounts>(
      `SELECT count(*) FILTER (WHERE outcome IS NULL) AS unsettled,
         count(*) FILTER (WHERE outcome = 'delivered') AS delivered,
         count(*) FILTER (WHERE outcome = 'expired') AS expired
       FROM delivery_queue WHERE mesh_id = ? AND history_id = ?`,
    )
    .get(meshId, historyId);
  return { unsettled: row?.unsettled ?? 0, delivered: row?.delivered ?? 0, expired: row?.expired ?? 0 };
}

function selectDeliveries(db: Sqlite, query: MessageStateQuery, historyId: number): DeliveryState[] {
  return db
    .sql<StoredDelivery>(
      `SELECT recipient_pubkey, outcome, settled_at FROM delivery_queue
       WHERE mesh_id = ? AND history_id = ? AND recipient_pubkey > ? ORDER BY recipient_pubkey LIMIT ?`,
    )
    .all(query.meshId, historyId, query.after, query.limit)
    .map(toDeliveryState);
}
