// Reading stored messages back on SQLite: by recipient (what is still to be delivered) and by reader (history).
// Why: docs/decisions/0095.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { PageRoom } from "../../core/page-room.ts";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { HistoryQuery } from "../../ports.ts";
import { hasMessage, itemColumns, joinMessages, visibleTo } from "./stored-items.ts";

export function selectUnsettled(
  db: Sqlite,
  meshId: string,
  recipient: string,
  after: number,
  limit: number,
): HistoryItem[] {
  const rows = db
    .sql<StoredItem>(
      // On its own the planner takes the primary key for the order, and walks through the deliveries of all members.
      `SELECT ${itemColumns} FROM delivery_queue d INDEXED BY delivery_queue_unsettled
       JOIN message_history h ON h.mesh_id = d.mesh_id AND h.history_id = d.history_id
       ${joinMessages}
       WHERE d.mesh_id = ? AND d.recipient_pubkey = ? AND d.history_id > ? AND d.settled_at IS NULL
         AND ${hasMessage}
       ORDER BY d.history_id LIMIT ?`,
    )
    .all(meshId, recipient, after, limit);
  return rows.map(toHistoryItem);
}

/** How many history rows one call may look at: a reader who sees little must not hold the store. */
const scanRows = 10_000;
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
  const room = new PageRoom();
  let readUpTo = after;
  while (items.length < limit) {
    const wanted = Math.min(limit - items.length, readRows);
    const rows = selectVisible(db, query, readUpTo, upTo, wanted);
    for (const row of rows) {
      const item = toHistoryItem(row);
      if (!room.take(item)) return { items, nextAfter: readUpTo };
      items.push(item);
      readUpTo = row.history_id;
    }
    if (rows.length < wanted) return { items, nextAfter: upTo < last ? upTo : undefined };
  }
  return { items, nextAfter: readUpTo < last ? readUpTo : undefined };
}

function selectVisible(db: Sqlite, query: HistoryQuery, after: number, upTo: number, limit: number): StoredItem[] {
  return db
    .sql<StoredItem>(
      `SELECT ${itemColumns} FROM message_history h ${joinMessages}
       WHERE h.mesh_id = ?1 AND h.history_id > ?2 AND h.history_id <= ?3
         AND (?4 IS NULL OR (h.destination_kind = 'topic' AND h.destination_ref = ?4))
         AND ${visibleTo("?5")}
         AND ${hasMessage}
       ORDER BY h.history_id LIMIT ?6`,
    )
    .all(query.meshId, after, upTo, query.topic ?? null, query.reader, limit);
}
