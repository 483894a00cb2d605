// What only an audit reads: the outbox counted by class at one moment, and the inbox without its
// bodies. Nothing is judged here.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { InboxAuditRow, OutboxSnapshot, PrunedRow } from "../../core/audit.ts";
import type { AuditReading } from "../../ports.ts";

const namedMax = 100;

export function createSqliteAuditReading(outbox: Sqlite, inbox: Sqlite): AuditReading {
  return {
    outbox: () => snapshotOutbox(outbox),
    tombstonePage: (after, enqueuedAfter, limit) => selectTombstonePage(outbox, after, enqueuedAfter, limit),
    wasRemoved: (clientMessageId) =>
      outbox.sql("SELECT 1 FROM outbox_removed WHERE client_message_id = ?").get(clientMessageId) !== undefined,
    inboxPage: (after, limit) => selectInboxPage(inbox, after, limit),
    findReceived: (message) => findReceived(inbox, message),
    inboxTombstones: () => count(inbox, "inbox_tombstone"),
  };
}

/** Runs within one turn of the event loop, so nothing is written meanwhile. */
function snapshotOutbox(db: Sqlite): OutboxSnapshot {
  const tombstones = count(db, "outbox_tombstone");
  const dead = { dead_refused: 0, dead_fate_unknown: 0, dead_dismissed: 0 };
  const retired = { aborted: 0, accepted_duplicates: 0, tombstones };
  const classes: Record<string, number> = { queued: 0, inflight: 0, stored: 0, ...dead, ...retired };
  const found = db
    .sql<{ class: string; rows: number }>(
      `SELECT CASE status
         WHEN 'pending' THEN 'queued' WHEN 'inflight' THEN 'inflight' WHEN 'done' THEN 'stored'
         WHEN 'dead' THEN iif(dismissed_at IS NOT NULL, 'dead_dismissed', iif(unanswered > 0 AND fenced = 0, 'dead_fate_unknown', 'dead_refused'))
         WHEN 'aborted' THEN iif(accept_duplicate = 1, 'accepted_duplicates', 'aborted')
       END AS class, count(*) AS rows FROM outbox GROUP BY class HAVING class IS NOT NULL`,
    )
    .all();
  for (const { class: name, rows } of found) classes[name] = rows;
  return { rows: count(db, "outbox"), tombstones, classes, ...selectFaults(db) };
}

function selectFaults(db: Sqlite): Pick<OutboxSnapshot, "withoutSuccessor" | "heldTwice" | "removed"> {
  const withoutSuccessor = db
    .sql<{ id: string }>(
      `SELECT client_message_id AS id FROM outbox AS old WHERE status = 'aborted' AND aborted_by IS NOT 'remint' AND (superseded_by IS NULL
         OR (NOT EXISTS (SELECT 1 FROM outbox WHERE id = old.superseded_by)
           AND NOT EXISTS (SELECT 1 FROM outbox_tombstone WHERE id = old.superseded_by))) LIMIT ?`,
    )
    .all(namedMax);
  const heldTwice = db
    .sql<{ id: string }>(
      `SELECT client_message_id AS id FROM outbox_tombstone AS kept
       WHERE EXISTS (SELECT 1 FROM outbox WHERE client_message_id = kept.client_message_id) LIMIT ?`,
    )
    .all(namedMax);
  const removed = db
    .sql<{ client_message_id: string; status: string }>(
      `SELECT client_message_id, status FROM outbox_removed AS gone
       WHERE NOT EXISTS (SELECT 1 FROM outbox WHERE client_message_id = gone.client_message_id)
         AND NOT EXISTS (SELECT 1 FROM outbox_tombstone WHERE client_message_id = gone.client_message_id) LIMIT ?`,
    )
    .all(namedMax);
  return {
    withoutSuccessor: withoutSuccessor.map(({ id }) => id),
    heldTwice: heldTwice.map(({ id }) => id),
    removed: removed.map((gone) => ({ clientMessageId: gone.client_message_id, status: gone.status })),
  };
}

type TombstoneRow = {
  id: string;
  client_message_id: string;
  wire_fingerprint: Uint8Array;
  broker_message_id: string;
  history_id: number;
};

function selectTombstonePage(db: Sqlite, after: string, enqueuedAfter: number, limit: number): PrunedRow[] {
  return db
    .sql<TombstoneRow>(
      `SELECT id, client_message_id, wire_fingerprint, broker_message_id, history_id FROM outbox_tombstone
       WHERE id > ? AND enqueued_at > ? ORDER BY id LIMIT ?`,
    )
    .all(after, enqueuedAfter, limit)
    .map((row) => ({
      id: row.id,
      clientMessageId: row.client_message_id,
      wireFingerprint: row.wire_fingerprint,
      brokerMessageId: row.broker_message_id,
      historyId: row.history_id,
    }));
}

function count(db: Sqlite, table: "outbox" | "outbox_tombstone" | "inbox_tombstone"): number {
  return db.sql<{ rows: number }>(`SELECT count(*) AS rows FROM ${table}`).get()?.rows ?? 0;
}

type Row = { id: string; client_message_id: string; broker_message_id: string; history_id: number; restored: number };

function selectInboxPage(db: Sqlite, after: string, limit: number): InboxAuditRow[] {
  return db
    .sql<Row>(
      `SELECT id, client_message_id, broker_message_id, history_id, restored FROM inbox_message
       WHERE id > ? ORDER BY id LIMIT ?`,
    )
    .all(after, limit)
    .map((row) => ({
      id: row.id,
      clientMessageId: row.client_message_id,
      brokerMessageId: row.broker_message_id,
      historyId: row.history_id,
      restored: row.restored === 1,
    }));
}

/** By both ids: a client id may have stood for several messages. */
function findReceived(db: Sqlite, message: Parameters<AuditReading["findReceived"]>[0]): boolean {
  const isIn = (table: "inbox" | "inbox_earlier" | "inbox_tombstone") =>
    db
      .sql(`SELECT 1 FROM ${table} WHERE client_message_id = ? AND broker_message_id = ?`)
      .get(message.client_message_id, message.broker_message_id) !== undefined;
  return isIn("inbox") || isIn("inbox_earlier") || isIn("inbox_tombstone");
}
