// Reading history on PostgreSQL: what one reader may see, in commit order, a bounded amount per call.
// Why: docs/decisions/0104.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { PageRoom } from "../../core/page-room.ts";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { HistoryQuery } from "../../ports.ts";
import type { Reading } from "./stored-accepts.ts";
import { hasMessage, itemColumns, joinMessages, visibleTo } from "./stored-items.ts";

/** How many history rows one call may look at: a reader who sees little must not hold the store. */
const scanRows = 10_000;
const readRows = 100;

type HistoryPage = { items: HistoryItem[]; nextAfter: number | undefined };

export async function selectHistory(db: Reading, query: HistoryQuery): Promise<HistoryPage> {
  const { meshId, after, limit } = query;
  const [counter] = await db.query<{ last_history_id: number }>(
    "SELECT last_history_id FROM mesh.mesh_history_counter WHERE mesh_id = $1",
    [meshId],
  );
  if (counter === undefined || after >= counter.last_history_id) return { items: [], nextAfter: undefined };
  const last = counter.last_history_id;
  const upTo = Math.min(last, after + scanRows);
  const items: HistoryItem[] = [];
  const room = new PageRoom();
  let readUpTo = after;
  while (items.length < limit) {
    const wanted = Math.min(limit - items.length, readRows);
    const rows = await selectVisible(db, query, readUpTo, upTo, wanted);
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

function selectVisible(
  db: Reading,
  query: HistoryQuery,
  after: number,
  upTo: number,
  limit: number,
): Promise<StoredItem[]> {
  const { meshId, topic, reader } = query;
  // PostgreSQL refuses text with U+0000, and no topic has such a name.
  const wanted = topic?.includes("\0") === true ? "" : (topic ?? null);
  return db.query<StoredItem>(
    `SELECT ${itemColumns} FROM mesh.message_history h ${joinMessages}
     WHERE h.mesh_id = $1 AND h.history_id > $2 AND h.history_id <= $3
       AND ($4::text IS NULL OR (h.destination_kind = 'topic' AND h.destination_ref = $4))
       AND ${visibleTo("$5")}
       AND ${hasMessage}
     ORDER BY h.history_id LIMIT $6`,
    [meshId, after, upTo, wanted, reader, limit],
  );
}
