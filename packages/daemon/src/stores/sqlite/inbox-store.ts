// The inbox on SQLite: one row per message, whoever delivers it how often, and a tombstone once retention has removed
// it. Opening bodies and acking deliveries are the services' business; reading rows is in inbox-reading.ts.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { InboxArrival, InboxStore } from "../../ports.ts";
import { listRows, searchRows, selectNews } from "./inbox-reading.ts";
import { indexBody, unindexBody } from "./inbox-search.ts";
import type { MarkedCommit } from "./marked-commit.ts";
import { lowestUlidAt } from "./time-ordered-ids.ts";

export function createSqliteInboxStore(db: Sqlite, { commit, note }: MarkedCommit, nextId: () => string): InboxStore {
  // Most inboxes have none, and then no arrival needs to look for one.
  let hasTombstones = db.sql("SELECT 1 FROM inbox_tombstone LIMIT 1").get() !== undefined;
  return {
    insert: (arrival, receivedAt) =>
      commit.submit((tx) => {
        note();
        if (hasTombstones && isRemoved(tx, arrival.clientMessageId)) return false;
        return insertArrival(tx, nextId, arrival, receivedAt) || promoteRestored(tx, nextId, arrival, receivedAt);
      }),
    list: (filter, page) => listRows(db, filter, page),
    search: (text, page) => searchRows(db, text, page),
    news: (after) => selectNews(db, after),
    lastId: () => selectLastId(db),
    unreadable: () =>
      db.sql<{ rows: number }>("SELECT count(*) AS rows FROM inbox WHERE unreadable = 1").get()?.rows ?? 0,
    removeReceivedBefore: (moment, nowMs, limit) =>
      commit.submit((tx) => {
        const removed = removeReceivedBefore(tx, moment, nowMs, limit);
        hasTombstones ||= removed > 0;
        return removed;
      }),
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
  const { changes, lastInsertRowid } = tx
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
  if (changes === 1) indexBody(tx, lastInsertRowid, arrival.unreadable, arrival.body);
  return changes === 1;
}

/**
 * The rebuild came first to a message that the broker still has to deliver, so nobody has heard of it: it takes its
 * place among the arrivals anew, as the news that it is.
 */
function promoteRestored(tx: Sqlite, nextId: () => string, arrival: InboxArrival, receivedAt: number): boolean {
  if (arrival.restored) return false;
  const { clientMessageId } = arrival;
  const restored = tx
    .sql<{ seq: number; read_at: number | null }>(
      "SELECT seq, read_at FROM inbox WHERE client_message_id = ? AND restored = 1",
    )
    .get(clientMessageId);
  if (restored === undefined) return false;
  unindexBody(tx, restored.seq);
  tx.sql("DELETE FROM inbox WHERE seq = ?").run(restored.seq);
  insertArrival(tx, nextId, arrival, receivedAt);
  tx.sql("UPDATE inbox SET read_at = ? WHERE client_message_id = ?").run(restored.read_at, clientMessageId);
  return true;
}

function isRemoved(tx: Sqlite, clientMessageId: string): boolean {
  return tx.sql("SELECT 1 FROM inbox_tombstone WHERE client_message_id = ?").get(clientMessageId) !== undefined;
}

const buryOldestSql = `INSERT INTO inbox_tombstone
    (client_message_id, id, broker_message_id, history_id, received_at, read_at, removed_at)
  SELECT client_message_id, id, broker_message_id, history_id, received_at, read_at, ? FROM inbox WHERE seq = ?`;

// Ids bound the search from above: what arrived before the moment may have a later id only where the clock went back,
// and then it goes with a later sweep.
function removeReceivedBefore(tx: Sqlite, moment: number, nowMs: number, limit: number): number {
  const rows = tx
    .sql<{ seq: number; id: string }>("SELECT seq, id FROM inbox WHERE id < ? AND received_at < ? ORDER BY id LIMIT ?")
    .all(lowestUlidAt(moment), moment, limit);
  for (const { seq } of rows) {
    tx.sql(buryOldestSql).run(nowMs, seq);
    unindexBody(tx, seq);
    tx.sql("DELETE FROM inbox WHERE seq = ?").run(seq);
  }
  const last = rows.at(-1);
  if (last !== undefined) keepLastRemoved(tx, last.id);
  return rows.length;
}

const lastRemovedKey = "last_removed_id";

function keepLastRemoved(tx: Sqlite, id: string): void {
  tx.sql(
    `INSERT INTO inbox_state (key, value) VALUES (?, ?)
     ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)`,
  ).run(lastRemovedKey, id);
}

/** The largest id that was ever given, also where its row is gone: readers who have seen it ask for what comes later. */
export function selectLastId(db: Sqlite): string | undefined {
  const row = db
    .sql<{ id: string | null }>(
      "SELECT max(id) AS id FROM (SELECT max(id) AS id FROM inbox UNION ALL SELECT value FROM inbox_state WHERE key = ?)",
    )
    .get(lastRemovedKey);
  return row?.id ?? undefined;
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
