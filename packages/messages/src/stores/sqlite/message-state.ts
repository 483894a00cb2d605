// What became of one message, on SQLite: its deliveries, or its place in a queue.
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { messageAt } from "../../core/queue-message.ts";
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

type HistoryRow = {
  history_id: number;
  client_message_id: string;
  destination_kind: DestinationKind;
  destination_ref: string;
  sender_pubkey: string;
  accepted_at: number;
  visible: number;
};

export function selectMessageState(db: Sqlite, query: MessageStateQuery, nowMs: number): MessageState | undefined {
  const { meshId, brokerMessageId, reader } = query;
  const history = selectHistoryOf(db, meshId, brokerMessageId, reader);
  if (history === undefined) return undefined;
  const isVisible = history.visible === 1;
  if (!isVisible && !query.readerIsOwner) return undefined;
  const { kind, ref } = { kind: history.destination_kind, ref: history.destination_ref };
  const historyId = history.history_id;
  const queued = kind === "queue" ? selectQueued(db, meshId, ref, historyId, nowMs) : undefined;
  const counts = queued === undefined ? countDeliveries(db, meshId, historyId) : countQueued(queued);
  const acceptedAtMs = history.accepted_at;
  if (!isVisible) return { sight: "counts", acceptedAtMs, counts };
  const deliveries = selectDeliveries(db, query, historyId);
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
function selectHistoryOf(db: Sqlite, meshId: string, brokerMessageId: string, reader: string): HistoryRow | undefined {
  const place = db
    .sql<{ history_id: number }>(
      `SELECT history_id FROM topic_message WHERE mesh_id = ?1 AND id = ?2
       UNION ALL SELECT history_id FROM message_queue WHERE mesh_id = ?1 AND id = ?2`,
    )
    .get(meshId, brokerMessageId);
  if (place === undefined) return undefined;
  return db
    .sql<HistoryRow>(
      `SELECT h.history_id, h.client_message_id, h.destination_kind, h.destination_ref, h.sender_pubkey, h.accepted_at,
         (${visibleTo("?3")} OR EXISTS (SELECT 1 FROM queue_message q WHERE q.mesh_id = h.mesh_id
            AND h.destination_kind = 'queue' AND q.queue = h.destination_ref AND q.history_id = h.history_id
            AND q.lease_holder = ?3)) AS visible
       FROM message_history h WHERE h.mesh_id = ?1 AND h.history_id = ?2`,
    )
    .get(meshId, place.history_id, reader);
}

function selectQueued(
  db: Sqlite,
  meshId: string,
  queue: string,
  historyId: number,
  nowMs: number,
): QueuedState | undefined {
  const row = selectQueueMessage(db, meshId, queue, historyId);
  if (row === undefined) return undefined;
  const maxDeliveries = selectMaxDeliveries(db, meshId, queue) ?? limits.maxDeliveriesDefault;
  const message = messageAt(row.message, maxDeliveries, nowMs);
  const settledAtMs = "settledAtMs" in message ? message.settledAtMs : undefined;
  return { state: message.state, deliveries: message.deliveries, settledAtMs };
}

function countQueued({ state }: QueuedState): DeliveryCounts {
  const delivered = state === "acked" ? 1 : 0;
  const expired = state === "expired" ? 1 : 0;
  return { unsettled: 1 - delivered - expired, delivered, expired };
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
    .sql<{ recipient_pubkey: string; outcome: "delivered" | "expired" | null; settled_at: number | null }>(
      `SELECT recipient_pubkey, outcome, settled_at FROM delivery_queue
       WHERE mesh_id = ? AND history_id = ? AND recipient_pubkey > ? ORDER BY recipient_pubkey LIMIT ?`,
    )
    .all(query.meshId, historyId, query.after, query.limit)
    .map((row) => ({
      recipientPubkey: row.recipient_pubkey,
      state: row.outcome ?? "unsettled",
      settledAtMs: row.settled_at ?? undefined,
    }));
}
