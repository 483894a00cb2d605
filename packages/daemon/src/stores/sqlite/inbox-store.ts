// The inbox on SQLite: one row per message, and a tombstone once retention has removed it. Opening bodies and acking
// deliveries are the services' business; taking messages in is in inbox-arrivals.ts, reading rows in inbox-reading.ts.
// Why: docs/decisions/0102.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { InboxStore } from "../../ports.ts";
import { readTablesInUse, takeArrival } from "./inbox-arrivals.ts";
import { listRows, listRowsBefore, searchRows, selectNews } from "./inbox-reading.ts";
import { unindexBody } from "./inbox-search.ts";
import { lowestUlidAt } from "./time-ordered-ids.ts";

export function createSqliteInboxStore(db: Sqlite, commit: GroupCommit, nextId: () => string): InboxStore {
  const inUse = readTablesInUse(db);
  return {
    insert: (message, receivedAt) =>
      commit.submit((tx) => takeArrival(tx, inUse, { message, receivedAt, nextId }), "inbox"),
    list: (filter, page) => listRows(db, filter, page),
    listBefore: (filter, page) => listRowsBefore(db, filter, page),
    search: (text, page) => searchRows(db, text, page),
    news: (after) => selectNews(db, after),
    lastId: () => selectLastId(db),
    unreadable: () => countUnreadable(db, "inbox") + countUnreadable(db, "inbox_earlier"),
    removeReceivedBefore: (moment, nowMs, limit) =>
      commit.submit((tx) => {
        const removed = removeReceivedBefore(tx, moment, nowMs, limit);
        inUse.tombstones ||= removed > 0;
        return removed;
      }),
    rebuildAfter: () => selectRebuildAfter(db),
    setRebuildAfter: (historyId) =>
      commit.submit((tx) => {
        setRebuildAfter(tx, historyId);
      }),
  };
}

function countUnreadable(db: Sqlite, table: "inbox" | "inbox_earlier"): number {
  return db.sql<{ rows: number }>(`SELECT count(*) AS rows FROM ${table} WHERE unreadable > 0`).get()?.rows ?? 0;
}

const buryOldestSql = `INSERT INTO inbox_tombstone
    (client_message_id, broker_message_id, id, history_id, received_at, read_at, removed_at)
  SELECT client_message_id, broker_message_id, id, history_id, received_at, read_at, ? FROM inbox_message WHERE seq = ?`;

// Ids bound the search from above: what arrived before the moment may have a later id only where the clock went back,
// and then it goes with a later sweep.
function removeReceivedBefore(tx: Sqlite, moment: number, nowMs: number, limit: number): number {
  const rows = tx
    .sql<{ seq: number; id: string; is_earlier: number }>(
      "SELECT seq, id, is_earlier FROM inbox_message WHERE id < ? AND received_at < ? ORDER BY id LIMIT ?",
    )
    .all(lowestUlidAt(moment), moment, limit);
  for (const { seq, is_earlier } of rows) {
    tx.sql(buryOldestSql).run(nowMs, seq);
    unindexBody(tx, seq);
    tx.sql(`DELETE FROM ${is_earlier === 1 ? "inbox_earlier" : "inbox"} WHERE seq = ?`).run(seq);
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
      `SELECT max(id) AS id FROM (SELECT max(id) AS id FROM inbox UNION ALL SELECT max(id) FROM inbox_earlier
         UNION ALL SELECT value FROM inbox_state WHERE key = ?)`,
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
