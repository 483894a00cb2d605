// Reading stored messages back on SQLite: by recipient (what is still to be delivered) and by reader (history).
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import type { EnvelopeVersion, Meta, Priority } from "@claudemesh/protocol/messages/envelope";
import { bodyFields, type HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { HistoryQuery } from "../../ports.ts";

type Row = {
  history_id: number;
  broker_message_id: string;
  client_message_id: string;
  destination_kind: DestinationKind;
  destination_ref: string;
  sender_pubkey: string;
  accepted_at: number;
  envelope_version: EnvelopeVersion;
  body: Uint8Array;
  meta: string;
  priority: Priority;
  reply_to_id: string | null;
};

const columns = `h.history_id, h.broker_message_id, h.client_message_id, h.destination_kind, h.destination_ref,
  h.sender_pubkey, h.accepted_at,
  coalesce(t.envelope_version, q.envelope_version) AS envelope_version, coalesce(t.body, q.body) AS body,
  coalesce(t.meta, q.meta) AS meta, coalesce(t.priority, q.priority) AS priority,
  coalesce(t.reply_to_id, q.reply_to_id) AS reply_to_id`;

// A history row whose message was removed by retention has neither, and is not shown.
const joinMessages = `LEFT JOIN topic_message t
    ON h.destination_kind = 'topic' AND t.mesh_id = h.mesh_id AND t.id = h.broker_message_id
  LEFT JOIN message_queue q
    ON h.destination_kind <> 'topic' AND q.mesh_id = h.mesh_id AND q.id = h.broker_message_id`;

export function selectUnsettled(
  db: Sqlite,
  meshId: string,
  recipient: string,
  after: number,
  limit: number,
): HistoryItem[] {
  const rows = db
    .sql<Row>(
      `SELECT ${columns} FROM delivery_queue d
       JOIN message_history h ON h.mesh_id = d.mesh_id AND h.history_id = d.history_id
       ${joinMessages}
       WHERE d.mesh_id = ? AND d.recipient_pubkey = ? AND d.history_id > ? AND d.settled_at IS NULL
         AND coalesce(t.body, q.body) IS NOT NULL
       ORDER BY d.history_id LIMIT ?`,
    )
    .all(meshId, recipient, after, limit);
  return rows.map(toItem);
}

/** How many history rows one call may look at: a reader who sees little must not hold the store. */
const scanRows = 10_000;
/** JSON of one page: an answer must fit a frame, and large bodies must not fill the memory. A page holds at least one. */
const pageBytes = 1_048_576;
const readRows = 32;

type HistoryPage = { items: HistoryItem[]; nextAfter: number | undefined };

export function selectHistory(db: Sqlite, query: HistoryQuery): HistoryPage {
  const { meshId, after, limit } = query;
  const last = db
    .sql<{ last_history_id: number }>("SELECT last_history_id FROM mesh_history_counter WHERE mesh_id = ?")
    .get(meshId)?.last_history_id;
  if (last === undefined || after >= last) return { items: [], nextAfter: undefined };
  const upTo = Math.min(last, after + scanRows);
  const items: HistoryItem[] = [];
  let bytes = 0;
  let readUpTo = after;
  while (items.length < limit) {
    const wanted = Math.min(limit - items.length, readRows);
    const rows = selectVisible(db, query, readUpTo, upTo, wanted);
    for (const row of rows) {
      const item = toItem(row);
      bytes += Buffer.byteLength(JSON.stringify(item));
      if (bytes > pageBytes && items.length > 0) return { items, nextAfter: readUpTo };
      items.push(item);
      readUpTo = row.history_id;
    }
    if (rows.length < wanted) return { items, nextAfter: upTo < last ? upTo : undefined };
  }
  return { items, nextAfter: readUpTo < last ? readUpTo : undefined };
}

function selectVisible(db: Sqlite, query: HistoryQuery, after: number, upTo: number, limit: number): Row[] {
  return db
    .sql<Row>(
      `SELECT ${columns} FROM message_history h ${joinMessages}
       WHERE h.mesh_id = ?1 AND h.history_id > ?2 AND h.history_id <= ?3
         AND (?4 IS NULL OR (h.destination_kind = 'topic' AND h.destination_ref = ?4))
         AND (h.sender_pubkey = ?5
           OR (h.destination_kind = 'dm' AND h.destination_ref = ?5)
           OR (h.destination_kind = 'topic' AND EXISTS (SELECT 1 FROM topic_subscription s
                 WHERE s.mesh_id = ?1 AND s.topic = h.destination_ref AND s.member_pubkey = ?5))
           OR EXISTS (SELECT 1 FROM delivery_queue d
                 WHERE d.mesh_id = ?1 AND d.history_id = h.history_id AND d.recipient_pubkey = ?5))
         AND coalesce(t.body, q.body) IS NOT NULL
       ORDER BY h.history_id LIMIT ?6`,
    )
    .all(query.meshId, after, upTo, query.topic ?? null, query.reader, limit);
}

function toItem(row: Row): HistoryItem {
  return {
    history_id: row.history_id,
    broker_message_id: row.broker_message_id,
    client_message_id: row.client_message_id,
    destination: { kind: row.destination_kind, ref: row.destination_ref },
    sender_pubkey: row.sender_pubkey,
    envelope_version: row.envelope_version,
    ...bodyFields(row.body, row.envelope_version === "2"),
    meta: row.meta === "" ? null : (JSON.parse(row.meta) as Meta),
    priority: row.priority,
    reply_to_id: row.reply_to_id,
    accepted_at: row.accepted_at,
  };
}
