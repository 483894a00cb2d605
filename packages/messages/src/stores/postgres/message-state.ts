// What became of one message, on PostgreSQL: its deliveries, or its state in a queue.
import { beforeNul, isUuid } from "@claudemesh/storage/postgres-text";
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
import type { Reading } from "./stored-accepts.ts";
import { visibleTo } from "./stored-items.ts";

export async function selectMessageState(
  db: Reading,
  query: MessageStateQuery,
  nowMs: number,
): Promise<MessageState | undefined> {
  const { meshId } = query;
  const historyRow = await selectHistoryRow(db, query);
  if (historyRow === undefined || !(historyRow.visible || query.readerIsOwner)) return undefined;
  const queued = await selectQueued(db, meshId, historyRow, nowMs);
  const counts = queued === undefined ? await countDeliveries(db, meshId, historyRow.history_id) : countQueued(queued);
  if (!historyRow.visible) return { sight: "counts", acceptedAtMs: Number(historyRow.accepted_at), counts };
  return fullState(historyRow, counts, await selectDeliveries(db, query, historyRow.history_id), queued, query);
}

/** Found through the message, which has the history id. A message that retention removed has no state any more. */
async function selectHistoryRow(db: Reading, query: MessageStateQuery): Promise<StoredHistoryRow | undefined> {
  const { meshId, brokerMessageId, reader } = query;
  if (!isUuid(brokerMessageId)) return undefined;
  const [row] = await db.query<StoredHistoryRow>(
    `SELECT h.history_id, h.client_message_id, h.destination_kind, h.destination_ref, h.sender_pubkey, h.accepted_at,
       (${visibleTo("$3")} OR EXISTS (SELECT 1 FROM mesh.queue_message q WHERE q.mesh_id = h.mesh_id
          AND h.destination_kind = 'queue' AND q.queue = h.destination_ref AND q.history_id = h.history_id
          AND q.lease_holder = $3)) AS visible
     FROM (SELECT history_id FROM mesh.topic_message WHERE mesh_id = $1 AND id = $2
       UNION ALL SELECT history_id FROM mesh.message_queue WHERE mesh_id = $1 AND id = $2) AS message
     JOIN mesh.message_history h ON h.mesh_id = $1 AND h.history_id = message.history_id`,
    [meshId, brokerMessageId, reader],
  );
  return row;
}

async function selectQueued(
  db: Reading,
  meshId: string,
  { destination_kind: kind, destination_ref: ref, history_id: historyId }: StoredHistoryRow,
  nowMs: number,
): Promise<QueuedState | undefined> {
  const row = kind === "queue" ? await selectQueueMessage(db, meshId, ref, historyId) : undefined;
  return row && toQueuedState(row.message, await selectMaxDeliveries(db, meshId, ref), nowMs);
}

async function countDeliveries(db: Reading, meshId: string, historyId: number): Promise<DeliveryCounts> {
  const [row] = await db.query<DeliveryCounts>(
    `SELECT count(*) FILTER (WHERE outcome IS NULL) AS unsettled,
       count(*) FILTER (WHERE outcome = 'delivered') AS delivered,
       count(*) FILTER (WHERE outcome = 'expired') AS expired
     FROM mesh.delivery_queue WHERE mesh_id = $1 AND history_id = $2`,
    [meshId, historyId],
  );
  return { unsettled: row?.unsettled ?? 0, delivered: row?.delivered ?? 0, expired: row?.expired ?? 0 };
}

async function selectDeliveries(db: Reading, query: MessageStateQuery, historyId: number): Promise<DeliveryState[]> {
  const rows = await db.query<StoredDelivery>(
    `SELECT recipient_pubkey, outcome, settled_at FROM mesh.delivery_queue
     WHERE mesh_id = $1 AND history_id = $2 AND recipient_pubkey > $3 ORDER BY recipient_pubkey LIMIT $4`,
    [query.meshId, historyId, beforeNul(query.after), query.limit],
  );
  return rows.map(toDeliveryState);
}
