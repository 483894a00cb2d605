// Reading the inbox without changing it: pages for people, matches of a search, and what has arrived since a reader of
// events looked last. Every page is bounded in rows and in bytes.
import { limits } from "@claudemesh/protocol/messages/limits";
import type { Sqlite, SqliteValue } from "@claudemesh/storage/sqlite";
import type { InboxRecord } from "../../core/inbox-message.ts";
import type { InboxFilter, InboxNews, Page, PageBefore, PageOfNewest, PageQuery } from "../../ports.ts";
import { findMatches, toSearchExpression } from "./inbox-search.ts";
import { lowestUlidAt } from "./time-ordered-ids.ts";

const pageBytesMax = 4 * 1_048_576;
const newsBytesMax = 65_536;
const newsRowsMax = 128;

const recordColumns = `id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority,
  meta, reply_to_id, received_at, read_at, unreadable, sealed, from_agent, to_agent, body`;

type Conditions = { readonly where: readonly string[]; readonly values: readonly SqliteValue[] };

function conditionsOf(filter: InboxFilter): Conditions {
  const where: string[] = [];
  const values: SqliteValue[] = [];
  if (filter.unread === true) where.push("read_at IS NULL");
  if (filter.since !== undefined) {
    // An id is never older than the arrival that it names, so the index finds where to begin.
    where.push("id >= ?", "received_at >= ?");
    values.push(lowestUlidAt(filter.since), filter.since);
  }
  if (filter.topic !== undefined) {
    where.push("topic = ?");
    values.push(filter.topic);
  }
  if (filter.senders !== "any") {
    where.push(`sender_pubkey IN (${filter.senders.map(() => "?").join(", ")})`);
    values.push(...filter.senders);
  }
  return { where, values };
}

export function listRows(db: Sqlite, filter: InboxFilter, page: PageQuery): Page<InboxRecord> {
  if (filter.senders.length === 0) return { items: [], nextCursor: undefined };
  const wanted = conditionsOf(filter);
  const range = { where: ["id > ?", ...wanted.where], values: [page.after ?? "", ...wanted.values] };
  const { items, more } = selectPage(db, range, "ASC", page.limit);
  return { items, nextCursor: more ? items.at(-1)?.id : undefined };
}

/** Greater than every id. */
const behindAll = "~";

/** The same list from its end: what stands right before an id, in the order of arrival. */
export function listRowsBefore(db: Sqlite, filter: InboxFilter, page: PageBefore): PageOfNewest<InboxRecord> {
  if (filter.senders.length === 0) return { items: [], nextCursor: undefined, prevCursor: undefined, older: 0 };
  const wanted = conditionsOf(filter);
  const before = page.before ?? behindAll;
  const range = { where: ["id < ?", ...wanted.where], values: [before, ...wanted.values] };
  const { items: newestFirst, more } = selectPage(db, range, "DESC", page.limit);
  const items = newestFirst.toReversed();
  const first = items[0]?.id;
  const last = items.at(-1)?.id;
  return {
    items,
    nextCursor: last !== undefined && page.before !== undefined && hasRowAfter(db, wanted, last) ? last : undefined,
    prevCursor: more ? first : undefined,
    older: more && first !== undefined ? countUpTo(db, wanted, "id < ?", first) : 0,
  };
}

function selectPage(db: Sqlite, { where, values }: Conditions, direction: "ASC" | "DESC", limit: number) {
  const rows = `FROM inbox_message WHERE ${where.join(" AND ")} ORDER BY id ${direction} LIMIT ?`;
  const sizes = db
    .sql<{ id: string; bytes: number }>(`SELECT id, length(body) AS bytes ${rows}`)
    .all(...values, limit + 1);
  const count = countWithinBytes(sizes, limit, pageBytesMax);
  const items = db.sql<InboxRecord>(`SELECT ${recordColumns} ${rows}`).all(...values, count);
  return { items, more: sizes.length > count };
}

function hasRowAfter(db: Sqlite, wanted: Conditions, id: string): boolean {
  return countUpTo(db, wanted, "id > ?", id, 1) > 0;
}

/** Counts the rows on one side of an id, up to a limit, so that no request counts a whole inbox. */
function countUpTo(
  db: Sqlite,
  { where, values }: Conditions,
  side: "id < ?" | "id > ?",
  id: string,
  most: number = limits.countedRows,
): number {
  const conditions = [side, ...where].join(" AND ");
  return (
    db
      .sql<{ rows: number }>(`SELECT count(*) AS rows FROM (SELECT id FROM inbox_message WHERE ${conditions} LIMIT ?)`)
      .get(id, ...values, most)?.rows ?? 0
  );
}

export function countUnread(db: Sqlite, side: "id < ?" | "id > ?", id: string): number {
  return countUpTo(db, conditionsOf(unreadOnly), side, id);
}

export const unreadOnly: InboxFilter = { since: undefined, topic: undefined, senders: "any", unread: true };

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
