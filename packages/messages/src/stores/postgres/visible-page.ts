// A page of history rows that some index has picked, less those that the reader may not see, on PostgreSQL.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { endOfWindow } from "../../core/found-window.ts";
import { PageRoom } from "../../core/page-room.ts";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { FoundPage } from "../../ports/reading.ts";
import type { Reading } from "./stored-accepts.ts";
import { hasMessage, itemColumns, joinMessages, visibleTo } from "./stored-items.ts";

/** Bodies in memory at once, beside those of the answer. */
const itemsPerRead = 100;

type PageQuery = {
  readonly meshId: string;
  readonly reader: string;
  readonly after: number;
  readonly limit: number;
};

type Picked = {
  /** How far the index is. */
  readonly last: number;
  readonly table: string;
  /** Which of its rows are picked, by a value of the query. */
  readonly condition: (value: string) => string;
  readonly value: string;
};

export async function selectVisiblePage(db: Reading, query: PageQuery, picked: Picked): Promise<FoundPage> {
  const end = endOfWindow(query.after, picked.last);
  if (query.after >= end) return { items: [], nextAfter: undefined };
  const visible = await selectVisibleIds(db, query, picked, end);
  const items: HistoryItem[] = [];
  const room = new PageRoom();
  for (let from = 0; from < visible.length; from += itemsPerRead) {
    const rows = await db.query<StoredItem>(
      `SELECT ${itemColumns} FROM mesh.message_history h ${joinMessages}
       WHERE h.mesh_id = $1 AND h.history_id = ANY ($2::bigint[]) AND ${hasMessage}
       ORDER BY h.history_id`,
      [query.meshId, visible.slice(from, from + itemsPerRead)],
    );
    for (const row of rows) {
      const item = toHistoryItem(row);
      if (items.length === query.limit || !room.take(item)) return { items, nextAfter: items.at(-1)?.history_id };
      items.push(item);
    }
  }
  // What was removed since it was picked leaves a page short, and more may follow.
  if (visible.length > query.limit) return { items, nextAfter: visible.at(-1) };
  return { items, nextAfter: end < picked.last ? end : undefined };
}

/**
 * One more than the page holds, where there is one. Each row is looked at by itself: on its own the planner reads
 * through all of the reader's deliveries, however long ago they were.
 */
async function selectVisibleIds(db: Reading, query: PageQuery, picked: Picked, end: number): Promise<number[]> {
  const rows = await db.query<{ history_id: number }>(
    `WITH picked AS MATERIALIZED (
       SELECT history_id FROM ${picked.table}
       WHERE mesh_id = $1 AND history_id > $2 AND history_id <= $3 AND ${picked.condition("$4")})
     SELECT p.history_id FROM (SELECT history_id FROM picked ORDER BY history_id) p
     CROSS JOIN LATERAL (
       SELECT 1 FROM mesh.message_history h
       WHERE h.mesh_id = $1 AND h.history_id = p.history_id AND ${visibleTo("$5")} OFFSET 0) visible
     ORDER BY p.history_id LIMIT $6`,
    [query.meshId, query.after, end, picked.value, query.reader, query.limit + 1],
  );
  return rows.map((row) => row.history_id);
}
