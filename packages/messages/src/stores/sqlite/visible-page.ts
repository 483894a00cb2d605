// A page of history rows that some index has picked, less those that the reader may not see, on SQLite.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { endOfWindow } from "../../core/found-window.ts";
import { PageRoom } from "../../core/page-room.ts";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { FoundPage } from "../../ports/reading.ts";
import { hasMessage, itemColumns, joinMessages, visibleTo } from "./stored-items.ts";

/** Other work has a turn between two of these. */
const rowsPerStep = 2_000;

type Picked = {
  /** How far the index is. */
  readonly last: number;
  /** The history ids that it has within these bounds, in order. */
  readonly between: (after: number, upTo: number) => readonly { readonly history_id: number }[];
};

export async function selectVisiblePage(
  db: Sqlite,
  query: { readonly meshId: string; readonly reader: string; readonly after: number; readonly limit: number },
  picked: Picked,
): Promise<FoundPage> {
  const select = db.sql<StoredItem>(
    `SELECT ${itemColumns} FROM message_history h ${joinMessages}
     WHERE h.mesh_id = ?1 AND h.history_id = ?2 AND ${hasMessage} AND ${visibleTo("?3")}`,
  );
  const end = endOfWindow(query.after, picked.last);
  const items: HistoryItem[] = [];
  const room = new PageRoom();
  for (let after = query.after; after < end; after += rowsPerStep) {
    if (after > query.after) await nextTurn();
    for (const { history_id } of picked.between(after, Math.min(end, after + rowsPerStep))) {
      const row = select.get(query.meshId, history_id, query.reader);
      if (row === undefined) continue;
      const item = toHistoryItem(row);
      if (items.length === query.limit || !room.take(item)) return { items, nextAfter: items.at(-1)?.history_id };
      items.push(item);
    }
  }
  return { items, nextAfter: end < picked.last ? end : undefined };
}
