// Reading the inbox without changing it: pages for people, matches of a search, and what has arrived since a reader of
// events looked last. Every page is bounded in rows and in bytes.
import type { Sqlite, SqliteValue } from "@claudemesh/storage/sqlite";
import type { InboxRecord } from "../../core/inbox-message.ts";
import { toSearchExpression } from "../../core/search-terms.ts";
import type { InboxFilter, InboxNews, Page, PageQuery } from "../../ports.ts";
import { findMatches } from "./inbox-search.ts";
import { lowestUlidAt } from "./time-ordered-ids.ts";

const pageBytesMax = 4 * 1_048_576;
const newsBytesMax = 65_536;
const newsRowsMax = 128;

const recordColumns = `id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority,
  meta, reply_to_id, received_at, read_at, unreadable, sealed, from_agent, to_agent, body`;

export function listRows(db: Sqlite, filter: InboxFilter, page: PageQuery): Page<InboxRecord> {
  if (filter.senders?.length === 0) return { items: [], nextCursor: undefined };
  const conditions = ["id > ?"];
  const values: SqliteValue[] = [page.after ?? ""];
  if (filter.since !== undefined) {
    // An id is never older than the arrival that it names, so the index finds where to begin.
    conditions.push("id >= ?", "received_at >= ?");
    values.push(lowestUlidAt(filter.since), filter.since);
  }
  if (filter.topic !== undefined) {
    conditions.push("topic = ?");
    values.push(filter.topic);
  }
  if (filter.senders !== undefined) {
    conditions.push(`sender_pubkey IN (${filter.senders.map(() => "?").join(", ")})`);
    values.push(...filter.senders);
  }
  const where = conditions.join(" AND ");
  const sizes = db
    .sql<{ id: string; bytes: number }>(
      `SELECT id, length(body) AS bytes FROM inbox_message WHERE ${where} ORDER BY id LIMIT ?`,
    )
    .all(...values, page.limit + 1);
  const count = countWithinBytes(sizes, page.limit, pageBytesMax);
  const items = db
    .sql<InboxRecord>(`SELECT ${recordColumns} FROM inbox_message WHERE ${where} ORDER BY id LIMIT ?`)
    .all(...values, count);
  return { items, nextCursor: sizes.length > count ? items.at(-1)?.id : undefined };
}

export function searchRows(db: Sqlite, text: string, page: PageQuery): Page<InboxRecord> {
  const expression = toSearchExpression(text);
  if (expression === undefined) return { items: [], nextCursor: undefined };
  const matches = findMatches(db, expression, selectSeq(db, page.after), page.limit + 1);
  const items: InboxRecord[] = [];
  let bytes = 0;
  for (const seq of matches.slice(0, page.limit)) {
    const record = db.sql<InboxRecord>(`SELECT ${recordColumns} FROM inbox_message WHERE seq = ?`).get(seq);
    if (record === undefined) continue;
    bytes += record.body.length;
    if (items.length > 0 && bytes > pageBytesMax) break;
    items.push(record);
  }
  return { items, nextCursor: matches.length > items.length ? items.at(-1)?.id : undefined };
}

/** The number of the row that a cursor names, or of the last one before it where that one is gone. */
function selectSeq(db: Sqlite, id: string | undefined): number {
  if (id === undefined) return 0;
  const row = db
    // With the id, or the planner sorts the whole of both tables.
    .sql<{ id: string; seq: number }>("SELECT id, seq FROM inbox_message WHERE id <= ? ORDER BY id DESC LIMIT 1")
    .get(id);
  return row?.seq ?? 0;
}

/** Restored rows are no news; they are passed over in bounded steps, however many there are. */
export function selectNews(db: Sqlite, after: string): InboxNews {
  const rows = db
    .sql<{ id: string; restored: number; bytes: number }>(
      "SELECT id, restored, length(body) AS bytes FROM inbox_message WHERE id > ? ORDER BY id LIMIT ?",
    )
    .all(after, newsRowsMax);
  const sizes = rows.map(({ restored, bytes }) => ({ bytes: restored === 1 ? 0 : bytes }));
  const taken = rows.slice(0, countWithinBytes(sizes, newsRowsMax, newsBytesMax));
  const upTo = taken.at(-1)?.id ?? after;
  const hasNews = taken.some(({ restored }) => restored === 0);
  const items = hasNews
    ? db
        .sql<InboxRecord>(
          `SELECT ${recordColumns} FROM inbox_message WHERE id > ? AND id <= ? AND restored = 0 ORDER BY id LIMIT ?`,
        )
        .all(after, upTo, newsRowsMax)
    : [];
  return { items, upTo, more: taken.length < rows.length || rows.length === newsRowsMax };
}

/** How many rows make a page: at most the limit, and no more bodies than a reader can be expected to hold at once. */
function countWithinBytes(sizes: readonly { readonly bytes: number }[], limit: number, bytesMax: number): number {
  let bytes = 0;
  let count = 0;
  for (const row of sizes.slice(0, limit)) {
    bytes += row.bytes;
    if (count > 0 && bytes > bytesMax) break;
    count++;
  }
  return count;
}
