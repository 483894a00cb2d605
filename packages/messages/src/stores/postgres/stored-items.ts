// A stored message as readers get it, on PostgreSQL: which columns make an item, and who may see it. Which messages are
// asked for is decided in the files that import this.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { Reading } from "./stored-accepts.ts";

/** Of `mesh.message_history h` with joinMessages. */
export const itemColumns = `h.history_id, h.broker_message_id, h.client_message_id, h.destination_kind,
  h.destination_ref, h.sender_pubkey, h.accepted_at,
  coalesce(t.envelope_version, q.envelope_version) AS envelope_version, coalesce(t.body, q.body) AS body,
  coalesce(t.meta, q.meta) AS meta, coalesce(t.priority, q.priority) AS priority,
  coalesce(t.reply_to_id, q.reply_to_id) AS reply_to_id`;

export const joinMessages = `LEFT JOIN mesh.topic_message t
    ON h.destination_kind = 'topic' AND t.mesh_id = h.mesh_id AND t.id = h.broker_message_id
  LEFT JOIN mesh.message_queue q
    ON h.destination_kind <> 'topic' AND q.mesh_id = h.mesh_id AND q.id = h.broker_message_id`;

/** A history row whose message was removed by retention has neither, and is not shown. */
export const hasMessage = "(t.id IS NOT NULL OR q.id IS NOT NULL)";

/** Of `mesh.message_history h`: what the reader sent, what it received, and topics that it is subscribed to. */
export function visibleTo(reader: string): string {
  return `(h.sender_pubkey = ${reader}
    OR (h.destination_kind = 'dm' AND h.destination_ref = ${reader})
    OR (h.destination_kind = 'topic' AND EXISTS (SELECT 1 FROM mesh.topic_subscription s
          WHERE s.mesh_id = h.mesh_id AND s.topic = h.destination_ref AND s.member_pubkey = ${reader}))
    OR EXISTS (SELECT 1 FROM mesh.delivery_queue d
          WHERE d.mesh_id = h.mesh_id AND d.history_id = h.history_id AND d.recipient_pubkey = ${reader}))`;
}

/** Messages by history id; those that retention has removed are left out. */
export async function selectItems(
  db: Reading,
  meshId: string,
  historyIds: readonly number[],
): Promise<Map<number, HistoryItem>> {
  const rows = await db.query<StoredItem>(
    `SELECT ${itemColumns} FROM mesh.message_history h ${joinMessages}
     WHERE h.mesh_id = $1 AND h.history_id = ANY ($2::bigint[]) AND ${hasMessage}`,
    [meshId, historyIds],
  );
  return new Map(rows.map((row) => [row.history_id, toHistoryItem(row)]));
}
