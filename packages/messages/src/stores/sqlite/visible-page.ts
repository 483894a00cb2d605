// A page of history rows that some index has picked, less those that the reader may not see, on SQLite.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { PageRoom } from "../../core/page-room.ts";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { FoundPage } from "../../ports/reading.ts";
import { hasMessage, itemColumns, joinMessages, visibleTo } from "./stored-items.ts";

/** How many picked rows one call may look at: a reader who sees little must not hold the store. */
export const scanRows = 2_000;

/** `picked` holds up to scanRows history ids, in order; a full one may have more behind it. */
export function selectVisiblePage(
  db: Sqlite,
  query: { readonly meshId: string; readonly reader: string; readonly limit: number },
  picked: readonly number[],
): FoundPage {
  const select = db.sql<StoredItem>(
    `SELECT ${itemColumns} FROM message_history h ${joinMessages}
     WHERE h.mesh_id = ?1 AND h.history_id = ?2 AND ${hasMessage} AND ${visibleTo("?3")}`,
  );
  const items: FoundPage["items"][number][] = [];
  const room = new PageRoom();
  let readUpTo: number | undefined;
  for (const historyId of picked) {
    const row = select.get(query.meshId, historyId, query.reader);
    if (row !== undefined) {
      const item = toHistoryItem(row);
      if (items.length === query.limit || !room.take(item)) return { items, nextAfter: readUpTo };
      items.push(item);
    }
    readUpTo = historyId;
  }
  return { items, nextAfter: picked.length === scanRows ? readUpTo : undefined };
}
