// What became of one message, on PostgreSQL: its deliveries, or its place in a queue.
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import { limits } from "@claudemesh/protocol/messages/limits";
import { messageAt } from "../../core/queue-message.ts";
import type {
  DeliveryCounts,
  DeliveryState,
  MessageState,
  MessageStateQuery,
  QueuedState,
} from "../../ports/reading.ts";
import { isUuid, selectQueueMessage } from "./queue-rows.ts";
import { selectMaxDeliveries } from "./queues.ts";
import type { Reading } from "./stored-accepts.ts";
import { visibleTo } from "./stored-items.ts";

type HistoryRow = {
  history_id: number;
  client_message_id: string;
  destination_kind: DestinationKind;
  destination_ref: string;
  sender_pubkey: string;
  accepted_at: Date;
  visible: boolean;
};

export async function selectMessageState(
  db: Reading,
  query: MessageStateQuery,
  nowMs: number,
): Promise<MessageState | undefined> {
  const { meshId } = query;
  const history = await selectHistoryOf(db, query);
  if (history === undefined || !(history.visible || query.readerIsOwner)) return undefined;
  const { kind, ref } = { kind: history.destination_kind, ref: history.destination_ref };
  const historyId = history.history_id;
  const queued = kind === "queue" ? await selectQueued(db, meshId, ref, historyId, nowMs) : undefined;
  const counts = queued === undefined ? await countDeliveries(db, meshId, historyId) : countQueued(queued);
  const acceptedAtMs = history.accepted_at.getTime();
  if (!history.visible) return { sight: "counts", acceptedAtMs, counts };
  const deliveries = await selectDeliveries(db, query, historyId);
  return {
    sight: "full",
    clientMessageId: history.client_message_id,
    historyId,
    destination: { kind, ref },
    senderPubkey: history.sender_pubkey,
    acceptedAtMs,
    counts,
    deliveries,
    nextCursor: deliveries.length === query.limit ? deliveries.at(-1)?.recipientPubkey : undefined,
    queued,
  };
}

/** By the message, which knows its place; one that retention removed has no state any more. */
async function selectHistoryOf(db: Reading, query: MessageStateQuery): Promise<HistoryRow | undefined> {
  const { meshId, brokerMessageId, reader } = query;
  if (!isUuid(brokerMessageId)) return undefined;
  const [row] = await db.query<HistoryRow>(
    `SELECT h.history_id, h.client_message_id, h.destination_kind, h.destination_ref, h.sender_pubkey, h.accepted_at,
       (${visibleTo("$3")} OR EXISTS (SELECT 1 FROM mesh.queue_message q WHERE q.mesh_id = h.mesh_id
          AND h.destination_kind = 'queue' AND q.queue = h.destination_ref AND q.history_id = h.history_id
          AND q.lease_holder = $3)) AS visible
     FROM (SELECT history_id FROM mesh.topic_message WHERE mesh_id = $1 AND id = $2
       UNION ALL SELECT history_id FROM mesh.message_queue WHERE mesh_id = $1 AND id = $2) AS place
     JOIN mesh.message_history h ON h.mesh_id = $1 AND h.history_id = place.history_id`,
    [meshId, brokerMessageId, reader],
  );
  return row;
}

async function selectQueued(
  db: Reading,
  meshId: string,
  queue: string,
  historyId: number,
  nowMs: number,
): Promise<QueuedState | undefined> {
  const row = await selectQueueMessage(db, meshId, queue, historyId);
  if (row === undefined) return undefined;
  const maxDeliveries = (await selectMaxDeliveries(db, meshId, queue)) ?? limits.maxDeliveriesDefault;
  const message = messageAt(row.message, maxDeliveries, nowMs);
  const settledAtMs = "settledAtMs" in message ? message.settledAtMs : undefined;
  return { state: message.state, deliveries: message.deliveries, settledAtMs };
}

function countQueued({ state }: QueuedState): DeliveryCounts {
  const delivered = state === "acked" ? 1 : 0;
  const expired = state === "expired" ? 1 : 0;
  return { unsettled: 1 - delivered - expired, delivered, expired };
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
  // PostgreSQL refuses text with U+0000; nothing stored lies between the part before it and the whole.
  const [after = ""] = query.after.split("\0", 1);
  const rows = await db.query<{
    recipient_pubkey: string;
    outcome: "delivered" | "expired" | null;
    settled_at: Date | null;
  }>(
    `SELECT recipient_pubkey, outcome, settled_at FROM mesh.delivery_queue
     WHERE mesh_id = $1 AND history_id = $2 AND recipient_pubkey > $3 ORDER BY recipient_pubkey LIMIT $4`,
    [query.meshId, historyId, after, query.limit],
  );
  return rows.map((row) => ({
    recipientPubkey: row.recipient_pubkey,
    state: row.outcome ?? "unsettled",
    settledAtMs: row.settled_at?.getTime(),
  }));
}
