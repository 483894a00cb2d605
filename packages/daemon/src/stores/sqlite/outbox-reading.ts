// Reading the outbox without changing it: pages and chains for people, and what the services look for. Each query is
// served by an index, whatever the number of rows that are done.
import { limits } from "@claudemesh/protocol/messages/limits";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { FenceTarget, OutboxRecord } from "../../core/outbox-row.ts";
import { byPriority, prioritiesFirst } from "../../core/priorities.ts";
import type { OutboxCounts, Page, PageBefore, PageOfNewest, PageQuery } from "../../ports.ts";

const recordColumns = `id, client_message_id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
  destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, unanswered, fenced,
  next_attempt_at, status, last_error, delivered_at, broker_message_id, history_id, aborted_at, aborted_by,
  superseded_by, accept_duplicate, dismissed_at, dismissed_by, dismissed_why`;

/** Requeues make chains; one this long is a loop that another program wrote. */
const chainRowsMax = 1_000;

const nextDueSql = byPriority(
  (priority) => `SELECT min(next_attempt_at) AS due FROM outbox
    WHERE status = 'pending' AND priority = '${priority}' AND next_attempt_at > ?`,
);

export function selectNextDueAt(db: Sqlite, afterMs: number): number | undefined {
  const dueTimes = prioritiesFirst.map(
    (priority) => db.sql<{ due: number | null }>(nextDueSql[priority]).get(afterMs)?.due ?? Number.POSITIVE_INFINITY,
  );
  const due = Math.min(...dueTimes);
  return due === Number.POSITIVE_INFINITY ? undefined : due;
}

/** Of the rows that may still be tried, also those that are out just now. */
export function selectOldestOpen(db: Sqlite): number | undefined {
  const oldest = (status: "pending" | "inflight") =>
    db.sql<{ oldest: number | null }>(`SELECT min(enqueued_at) AS oldest FROM outbox WHERE status = '${status}'`).get()
      ?.oldest ?? Number.POSITIVE_INFINITY;
  const enqueuedAt = Math.min(oldest("pending"), oldest("inflight"));
  return enqueuedAt === Number.POSITIVE_INFINITY ? undefined : enqueuedAt;
}

type FenceRow = {
  id: string;
  client_message_id: string;
  wire_fingerprint: Uint8Array;
  enqueued_at: number;
  status: OutboxStatus;
  attempts: number;
  unanswered: number;
  fenced: number;
};

const fenceColumns = "id, client_message_id, wire_fingerprint, enqueued_at, status, attempts, unanswered, fenced";

function toFenceTarget(row: FenceRow): FenceTarget {
  return {
    id: row.id,
    clientMessageId: row.client_message_id,
    wireFingerprint: row.wire_fingerprint,
    enqueuedAt: row.enqueued_at,
    status: row.status,
    attempts: row.attempts,
    unanswered: row.unanswered,
    fenced: row.fenced === 1,
  };
}

export function selectExpired(db: Sqlite, atOrBefore: number, limit: number): FenceTarget[] {
  return db
    .sql<FenceRow>(
      `SELECT ${fenceColumns} FROM outbox WHERE status = 'pending' AND enqueued_at <= ? ORDER BY id LIMIT ?`,
    )
    .all(atOrBefore, limit)
    .map(toFenceTarget);
}

export function selectDeadOfUnknownFate(
  db: Sqlite,
  enqueuedAfter: number,
  after: string,
  limit: number,
): FenceTarget[] {
  return db
    .sql<FenceRow>(
      `SELECT ${fenceColumns} FROM outbox
       WHERE status = 'dead' AND unanswered > 0 AND fenced = 0 AND enqueued_at > ? AND id > ? ORDER BY id LIMIT ?`,
    )
    .all(enqueuedAfter, after, limit)
    .map(toFenceTarget);
}

/** The status stands in the text, not in a value, because only then does SQLite see that a partial index serves it. */
const rowsWhere = (status: OutboxStatus | undefined, condition: string) =>
  `FROM outbox WHERE ${status === undefined ? "" : `status = '${status}' AND `}${condition}`;

export function listRows(db: Sqlite, status: OutboxStatus | undefined, page: PageQuery): Page<OutboxRecord> {
  const rows = db
    .sql<OutboxRecord>(`SELECT ${recordColumns} ${rowsWhere(status, "id > ?")} ORDER BY id LIMIT ?`)
    .all(page.after ?? "", page.limit + 1);
  const items = rows.slice(0, page.limit);
  return { items, nextCursor: rows.length > page.limit ? items.at(-1)?.id : undefined };
}

/** Greater than every id. */
const behindAll = "~";

/** The same list from its end: what stands right before a cursor, oldest first. */
export function listRowsBefore(
  db: Sqlite,
  status: OutboxStatus | undefined,
  page: PageBefore,
): PageOfNewest<OutboxRecord> {
  const rows = db
    .sql<OutboxRecord>(`SELECT ${recordColumns} ${rowsWhere(status, "id < ?")} ORDER BY id DESC LIMIT ?`)
    .all(page.before ?? behindAll, page.limit + 1);
  const items = rows.slice(0, page.limit).toReversed();
  const [first, last] = [items[0]?.id, items.at(-1)?.id];
  const hasOlder = first !== undefined && rows.length > page.limit;
  const hasNewer = last !== undefined && page.before !== undefined && countRowsAt(db, status, "id > ?", last, 1) > 0;
  return {
    items,
    nextCursor: hasNewer ? last : undefined,
    prevCursor: hasOlder ? first : undefined,
    older: hasOlder ? countRowsAt(db, status, "id < ?", first, limits.countedRows) : 0,
  };
}

function countRowsAt(
  db: Sqlite,
  status: OutboxStatus | undefined,
  side: "id < ?" | "id > ?",
  id: string,
  most: number,
): number {
  const counted = `SELECT count(*) AS rows FROM (SELECT id ${rowsWhere(status, side)} LIMIT ?)`;
  return db.sql<{ rows: number }>(counted).get(id, most)?.rows ?? 0;
}

export function inspectRow(db: Sqlite, id: string): { row: OutboxRecord; chain: OutboxRecord[] } | undefined {
  const row = selectRecord(db, "id", id) ?? selectRecord(db, "client_message_id", id) ?? selectTombstoneRecord(db, id);
  if (row === undefined) return undefined;
  const chain = [row];
  let first = row;
  while (chain.length < chainRowsMax) {
    const before = selectRecord(db, "superseded_by", first.id);
    if (before === undefined) break;
    chain.unshift(before);
    first = before;
  }
  let last = row;
  while (last.superseded_by !== null && chain.length < chainRowsMax) {
    const next = selectRecord(db, "id", last.superseded_by) ?? selectTombstoneRecord(db, last.superseded_by);
    if (next === undefined) break;
    chain.push(next);
    last = next;
  }
  return { row, chain };
}

function selectRecord(
  db: Sqlite,
  column: "id" | "client_message_id" | "superseded_by",
  value: string,
): OutboxRecord | undefined {
  return db.sql<OutboxRecord>(`SELECT ${recordColumns} FROM outbox WHERE ${column} = ?`).get(value);
}

/** What a tombstone no longer holds reads as it did for every done row: tried, answered, nothing left to say. */
function selectTombstoneRecord(db: Sqlite, id: string): OutboxRecord | undefined {
  return db
    .sql<OutboxRecord>(
      `SELECT id, client_message_id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
         destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, 0 AS unanswered,
         0 AS fenced, delivered_at AS next_attempt_at, 'done' AS status, NULL AS last_error, delivered_at,
         broker_message_id, history_id, NULL AS aborted_at, NULL AS aborted_by, NULL AS superseded_by,
         accept_duplicate, NULL AS dismissed_at, NULL AS dismissed_by, NULL AS dismissed_why
       FROM outbox_tombstone WHERE id = ? OR client_message_id = ? ORDER BY id = ? DESC LIMIT 1`,
    )
    .get(id, id, id);
}

export function countRows(db: Sqlite): OutboxCounts {
  const allDead = countWhere(db, "status = 'dead'");
  const dead = countWhere(db, "status = 'dead' AND dismissed_at IS NULL");
  const pending = countWhere(db, "status = 'pending'");
  return { pending, inflight: countWhere(db, "status = 'inflight'"), dead, dismissed: allDead - dead };
}

/** Rows that only the keys they were sealed and claimed with can bring to an end. */
export type UnsettledCounts = {
  readonly pending: number;
  readonly inflight: number;
  /** Dead, and only the old member can ask the broker whether it has them. Those that were dismissed are not asked about. */
  readonly dead_of_unknown_fate: number;
};

export function countUnsettled(db: Sqlite): UnsettledCounts {
  return {
    pending: countWhere(db, "status = 'pending'"),
    inflight: countWhere(db, "status = 'inflight'"),
    dead_of_unknown_fate: countWhere(db, "status = 'dead' AND unanswered > 0 AND fenced = 0 AND dismissed_at IS NULL"),
  };
}

function countWhere(db: Sqlite, condition: string): number {
  return db.sql<{ rows: number }>(`SELECT count(*) AS rows FROM outbox WHERE ${condition}`).get()?.rows ?? 0;
}

export function measureUsedBytes(db: Sqlite): number {
  const read = (pragma: "page_count" | "freelist_count" | "page_size") => {
    const row = db.sql<Record<string, number>>(`PRAGMA ${pragma}`).get();
    return row?.[pragma] ?? 0;
  };
  return (read("page_count") - read("freelist_count")) * read("page_size");
}
