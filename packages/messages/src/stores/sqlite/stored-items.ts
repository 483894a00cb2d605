// A stored message as readers get it, on SQLite: which columns make an item, and who may see it. Which messages are
// asked for is decided in the files that import this.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";

/** Of `message_history h` with joinMessages. */
export const itemColumns = `h.history_id, h.broker_message_id, h.client_message_id, h.destination_kind, h.destination_ref,
  h.sender_pubkey, h.accepted_at,
  coalesce(t.envelope_version, q.envelope_version) AS envelope_version, coalesce(t.body, q.body) AS body,
  coalesce(t.meta, q.meta) AS meta, coalesce(t.priority, q.priority) AS priority,
  coalesce(t.reply_to_id, q.reply_to_id) AS reply_to_id`;

export const joinMessages = `LEFT JOIN topic_message t
    ON h.destination_kind = 'topic' AND t.mesh_id = h.mesh_id AND t.id = h.broker_message_id
  LEFT JOIN message_queue q
    ON h.destination_kind <> 'topic' AND q.mesh_id = h.mesh_id AND q.id = h.broker_message_id`;

/** A history row whose message was removed by retention has neither, and is not shown. */
export const hasMessage = "coalesce(t.body, q.body) IS NOT NULL";

/** Of `message_history h`: what the reader sent, what it received, and topics that it is subscribed to. */
export function visibleTo(reader: string): string {
  return `(h.sender_pubkey = ${reader}
    OR (h.destination_kind = 'dm' AND h.destination_ref = ${reader})
    OR (h.destination_kind = 'topic' AND EXISTS (SELECT 1 FROM topic_subscription s
          WHERE s.mesh_id = h.mesh_id AND s.topic = h.destination_ref AND s.member_pubkey = ${reader}))
    OR EXISTS (SELECT 1 FROM delivery_queue d
          WHERE d.mesh_id = h.mesh_id AND d.history_id = h.history_id AND d.recipient_pubkey = ${reader}))`;
}

/** Undefined where retention has removed the message. */
export function selectItem(db: Sqlite, meshId: string, historyId: number): HistoryItem | undefined {
  const row = db
    .sql<StoredItem>(
      `SELECT ${itemColumns} FROM message_history h ${joinMessages}
       WHERE h.mesh_id = ? AND h.history_id = ? AND ${hasMessage}`,
    )
    .get(meshId, historyId);
  return row && toHistoryItem(row);
}
