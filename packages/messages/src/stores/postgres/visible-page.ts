// A page of history rows that some index has picked, less those that the reader may not see, on PostgreSQL.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { PageRoom } from "../../core/page-room.ts";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { FoundPage } from "../../ports/reading.ts";
import type { Reading } from "./stored-accepts.ts";
import { hasMessage, itemColumns, joinMessages, visibleTo } from "./stored-items.ts";

/** How many picked rows one call may look at: a reader who sees little must not hold the store. */
export const scanRows = 2_000;
/** Bodies in the memory at once, beside those of the answer. */
const itemsPerRead = 100;

/** `picked` holds up to scanRows history ids, in order; a full one may have more behind it. */
export async function selectVisiblePage(
  db: Reading,
  query: { readonly meshId: string; readonly reader: string; readonly limit: number },
  picked: readonly number[],
): Promise<FoundPage> {
  const items: HistoryItem[] = [];
  const room = new PageRoom();
  let readUpTo = 0;
  for (;;) {
    const rows = await db.query<StoredItem>(
      `SELECT ${itemColumns} FROM mesh.message_history h ${joinMessages}
       WHERE h.mesh_id = $1 AND h.history_id = ANY ($2::bigint[]) AND h.history_id > $3
         AND ${hasMessage} AND ${visibleTo("$4")}
       ORDER BY h.history_id LIMIT $5`,
      [query.meshId, picked, readUpTo, query.reader, itemsPerRead],
    );
    for (const row of rows) {
      const item = toHistoryItem(row);
      if (items.length === query.limit || !room.take(item)) return { items, nextAfter: readUpTo };
      items.push(item);
      readUpTo = row.history_id;
    }
    if (rows.length < itemsPerRead) return { items, nextAfter: picked.length === scanRows ? picked.at(-1) : undefined };
  }
}
