// The inbox on SQLite: one row per message, whoever delivers it how often. Opening bodies and acking deliveries are the
// services' business.
import type { Sqlite, SqliteValue } from "@claudemesh/storage/sqlite";
import type { InboxRecord } from "../../core/inbox-message.ts";
import type { InboxArrival, InboxFilter, InboxStore, Page, PageQuery } from "../../ports.ts";
import type { MarkedCommit } from "./marked-commit.ts";
import { lowestUlidAt } from "./time-ordered-ids.ts";

export function createSqliteInboxStore(db: Sqlite, { commit, note }: MarkedCommit, nextId: () => string): InboxStore {
  return {
    insert: (arrival, receivedAt) =>
      commit.submit((tx) => {
        note();
        return insertArrival(tx, nextId, arrival, receivedAt);
      }),
    list: (filter, page) => listRows(db, filter, page),
    unreadable: () =>
      db.sql<{ rows: number }>("SELECT count(*) AS rows FROM inbox WHERE unreadable = 1").get()?.rows ?? 0,
    removeReceivedBefore: (moment, limit) => commit.submit((tx) => removeReceivedBefore(tx, moment, limit)),
    rebuildAfter: () => selectRebuildAfter(db),
    setRebuildAfter: (historyId) =>
      commit.submit((tx) => {
        setRebuildAfter(tx, historyId);
      }),
  };
}

const insertSql = `INSERT INTO inbox (id, client_message_id, broker_message_id, history_id, topic, sender_pubkey,
    sender_name, priority, meta, reply_to_id, accepted_at, received_at, unreadable, restored, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (client_message_id) DO NOTHING`;

// The id is made inside the transaction, so that ids grow in the order in which rows become visible.
function insertArrival(tx: Sqlite, nextId: () => string, arrival: InboxArrival, receivedAt: number): boolean {
  const { changes } = tx
    .sql(insertSql)
    .run(
      nextId(),
      arrival.clientMessageId,
      arrival.brokerMessageId,
      arrival.historyId,
      arrival.topic ?? null,
      arrival.senderPubkey,
      arrival.senderName ?? null,
      arrival.priority,
      arrival.meta,
      arrival.replyToId ?? null,
      arrival.acceptedAt,
      receivedAt,
      arrival.unreadable ? 1 : 0,
      arrival.restored ? 1 : 0,
      arrival.body,
    );
  return changes === 1;
}

const pageBytesMax = 4 * 1_048_576;

const listColumns = `id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority,
  meta, reply_to_id, received_at, read_at, unreadable, body`;

function listRows(db: Sqlite, filter: InboxFilter, page: PageQuery): Page<InboxRecord> {
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
      `SELECT id, length(body) AS bytes FROM inbox WHERE ${where} ORDER BY id LIMIT ?`,
    )
    .all(...values, page.limit + 1);
  const count = countWithinBytes(sizes, page.limit);
  const items = db
    .sql<InboxRecord>(`SELECT ${listColumns} FROM inbox WHERE ${where} ORDER BY id LIMIT ?`)
    .all(...values, count);
  return { items, nextCursor: sizes.length > count ? items.at(-1)?.id : undefined };
}

/** How many rows make a page: at most the limit, and no more bodies than a reader can be expected to hold at once. */
function countWithinBytes(sizes: readonly { readonly bytes: number }[], limit: number): number {
  let bytes = 0;
  let count = 0;
  for (const row of sizes.slice(0, limit)) {
    bytes += row.bytes;
    if (count > 0 && bytes > pageBytesMax) break;
    count++;
  }
  return count;
}

// Ids bound the search from above: what arrived before the moment may have a later id only where the clock went back,
// and then it goes with a later sweep.
function removeReceivedBefore(tx: Sqlite, moment: number, limit: number): number {
  return tx
    .sql(
      `DELETE FROM inbox WHERE id IN
         (SELECT id FROM inbox WHERE id < ? AND received_at < ? ORDER BY id LIMIT ?)`,
    )
    .run(lowestUlidAt(moment), moment, limit).changes;
}

const rebuildKey = "rebuild_after_history_id";

function selectRebuildAfter(db: Sqlite): number | undefined {
  const row = db.sql<{ value: string }>("SELECT value FROM inbox_state WHERE key = ?").get(rebuildKey);
  return row === undefined ? undefined : Number(row.value);
}

export function setRebuildAfter(tx: Sqlite, historyId: number | undefined): void {
  if (historyId === undefined) {
    tx.sql("DELETE FROM inbox_state WHERE key = ?").run(rebuildKey);
    return;
  }
  tx.sql(
    "INSERT INTO inbox_state (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
  ).run(rebuildKey, String(historyId));
}
