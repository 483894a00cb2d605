// The outbox on SQLite: the one place that changes a row. Each transition is one function here and a compare-and-set;
// reading rows for people is in outbox-reading.ts. Which transitions exist is the protocol's list.
// Why: docs/decisions/0048.
import assert from "node:assert/strict";
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import type { Priority } from "@claudemesh/protocol/messages/envelope";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { ClaimedRow, NewOutboxRow, StoredSend } from "../../core/outbox-row.ts";
import { byPriority, prioritiesFirst } from "../../core/priorities.ts";
import type { Acceptance, TryEnd } from "../../core/try-end.ts";
import type { Accepted, Claim, DueQuery, OutboxStore } from "../../ports.ts";
import type { MarkedCommit } from "./marked-commit.ts";
import { pruneDone } from "./outbox-prune.ts";
import {
  countRows,
  inspectRow,
  listRows,
  listRowsBefore,
  measureUsedBytes,
  selectDeadOfUnknownFate,
  selectExpired,
  selectNextDueAt,
  selectOldestOpen,
} from "./outbox-reading.ts";

export function createSqliteOutboxStore(db: Sqlite, { commit, note }: MarkedCommit): OutboxStore {
  const change = (text: string, ...values: readonly (string | number | null)[]) =>
    commit.submit((tx) => tx.sql(text).run(...values).changes);
  const changeOne = async (text: string, ...values: readonly (string | number | null)[]) =>
    (await change(text, ...values)) === 1;
  // Most outboxes have none for a month, and a look-up that can find nothing is half the cost of a look-up.
  let hasTombstones = db.sql("SELECT 1 FROM outbox_tombstone LIMIT 1").get() !== undefined;
  const findPruned = (tx: Sqlite, clientMessageId: string) =>
    hasTombstones ? selectTombstone(tx, clientMessageId) : undefined;
  /** The insert looks the id up by itself: asking first would search the same index twice. */
  const insertUnlessKnown = (tx: Sqlite, row: NewOutboxRow, status: "pending" | "inflight"): StoredSend | undefined => {
    const pruned = findPruned(tx, row.clientMessageId);
    if (pruned !== undefined || insertRow(tx, row, status)) return pruned;
    const stored = selectSend(tx, row.clientMessageId);
    assert(stored !== undefined, `nothing stands in the way of ${row.clientMessageId}`);
    return stored;
  };
  const acceptAndClaimAll = (tx: Sqlite, rows: readonly NewOutboxRow[]): Accepted[] => {
    note();
    // Stay the first: a row of these that has to wait is due no earlier than the one that it waits for.
    const firstDueAt = new FirstDue(tx);
    return rows.map((row) => {
      const status = firstDueAt.upTo(row.priority) <= row.enqueuedAt ? "pending" : "inflight";
      return insertUnlessKnown(tx, row, status) ?? status;
    });
  };
  return {
    find: (clientMessageId) => selectSend(db, clientMessageId) ?? findPruned(db, clientMessageId),
    accept: (row) =>
      commit.submit((tx) => {
        note();
        return insertUnlessKnown(tx, row, "pending");
      }),
    acceptAndClaim: (row) => commit.submitItem(acceptAndClaimAll, row),
    claimDue: (query) => commit.submit((tx) => claimDue(tx, query)),
    nextDueAt: (afterMs) => selectNextDueAt(db, afterMs),
    endTry: (id, attempts, end, nowMs) => commit.submit((tx) => endTry(tx, id, attempts, end, nowMs)),
    commitLate: (id, acceptance, nowMs) => commit.submit((tx) => commitLate(tx, id, acceptance, nowMs)),
    settleLateRefusal: (id) => changeOne(lateRefusalSql, id),
    recoverInflight: (nowMs) => change(recoverSql, nowMs),
    boundDueTimes: (latestMs) => change(boundDueSql, latestMs, latestMs),
    oldestOpenEnqueuedAt: () => selectOldestOpen(db),
    expired: (atOrBefore, limit) => selectExpired(db, atOrBefore, limit),
    expireUnsentOrRefused: (ids, lastError) =>
      commit.submit((tx) => {
        let expired = 0;
        for (const id of ids) expired += tx.sql(expireKnownSql).run(lastError, id).changes;
        return expired;
      }),
    expireUnknown: (id, attempts, lastError) => changeOne(expireUnknownSql, lastError, id, attempts),
    buryFenced: (id, attempts, lastError) => changeOne(buryFencedSql, lastError, id, attempts),
    deadOfUnknownFate: (enqueuedAfter, after, limit) => selectDeadOfUnknownFate(db, enqueuedAfter, after, limit),
    prune: (deliveredBefore, nowMs, limit) =>
      commit.submit((tx) => {
        const pruned = pruneDone(tx, deliveredBefore, nowMs, limit);
        hasTombstones ||= pruned > 0;
        return pruned;
      }),
    list: (status, page) => listRows(db, status, page),
    listBefore: (status, page) => listRowsBefore(db, status, page),
    inspect: (id) => inspectRow(db, id),
    counts: () => countRows(db),
    usedBytes: () => measureUsedBytes(db),
  };
}

type SendRow = {
  id: string;
  status: OutboxStatus;
  request_fingerprint: Uint8Array;
  broker_message_id: string | null;
  history_id: number | null;
  last_error: string | null;
  to_address: string;
  destination_kind: DestinationKind;
  destination_ref: string;
};

const sendColumns =
  "id, request_fingerprint, broker_message_id, history_id, to_address, destination_kind, destination_ref";

// Texts of statements are constants: one that is put together at each call is also hashed anew at each.
const selectSendSql = `SELECT ${sendColumns}, status, last_error FROM outbox WHERE client_message_id = ?`;

function selectSend(db: Sqlite, clientMessageId: string): StoredSend | undefined {
  return toStoredSend(db.sql<SendRow>(selectSendSql).get(clientMessageId));
}

function selectTombstone(db: Sqlite, clientMessageId: string): StoredSend | undefined {
  return toStoredSend(
    db
      .sql<SendRow>(
        `SELECT ${sendColumns}, 'done' AS status, NULL AS last_error FROM outbox_tombstone WHERE client_message_id = ?`,
      )
      .get(clientMessageId),
  );
}

function toStoredSend(row: SendRow | undefined): StoredSend | undefined {
  if (row === undefined) return undefined;
  return {
    outboxId: row.id,
    status: row.status,
    fingerprint: row.request_fingerprint,
    brokerMessageId: row.broker_message_id ?? undefined,
    historyId: row.history_id ?? undefined,
    lastError: row.last_error ?? undefined,
    to: row.to_address,
    destination: { kind: row.destination_kind, ref: row.destination_ref },
  };
}

const insertSql = `INSERT INTO outbox (id, client_message_id, request_fingerprint, wire_fingerprint, to_address,
    destination_kind, destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, next_attempt_at,
    status, payload)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (client_message_id) DO NOTHING`;

/** False: the client's id is taken, and nothing changed. */
function insertRow(tx: Sqlite, row: NewOutboxRow, status: "pending" | "inflight"): boolean {
  const { changes } = tx
    .sql(insertSql)
    .run(
      row.id,
      row.clientMessageId,
      row.requestFingerprint,
      row.wireFingerprint,
      row.to,
      row.destination.kind,
      row.destination.ref,
      row.priority,
      row.canonicalMeta,
      row.replyToId ?? null,
      row.envelopeVersion,
      row.enqueuedAt,
      row.enqueuedAt,
      status,
      row.payload,
    );
  return changes === 1;
}

/** When the first waiting row that goes before a new one of some priority is due, looked up once for a transaction. */
class FirstDue {
  readonly #tx: Sqlite;
  readonly #known = new Map<Priority, number>();

  constructor(tx: Sqlite) {
    this.#tx = tx;
  }

  upTo(priority: Priority): number {
    const known = this.#known.get(priority);
    if (known !== undefined) return known;
    const before = prioritiesFirst.slice(0, prioritiesFirst.indexOf(priority) + 1);
    const first = Math.min(...before.map((each) => selectFirstDueAt(this.#tx, each)));
    this.#known.set(priority, first);
    return first;
  }
}

// The priority stands in the text, not in a value, so that each text has the plan of its own index.
const firstDueSql = byPriority(
  (priority) =>
    `SELECT min(next_attempt_at) AS dueAt FROM outbox WHERE status = 'pending' AND priority = '${priority}'`,
);

function selectFirstDueAt(tx: Sqlite, priority: Priority): number {
  return tx.sql<{ dueAt: number | null }>(firstDueSql[priority]).get()?.dueAt ?? Number.POSITIVE_INFINITY;
}

type DueRow = { id: string; bytes: number };

type ClaimRow = {
  client_message_id: string;
  attempts: number;
  unanswered: number;
  destination_kind: DestinationKind;
  destination_ref: string;
  priority: ClaimedRow["priority"];
  meta: string;
  reply_to_id: string | null;
  envelope_version: ClaimedRow["envelopeVersion"];
  payload: Uint8Array;
  enqueued_at: number;
};

const dueSql = byPriority(
  (priority) => `SELECT id, length(payload) AS bytes FROM outbox
    WHERE status = 'pending' AND priority = '${priority}' AND next_attempt_at <= ? AND enqueued_at > ?
    ORDER BY next_attempt_at, rowid LIMIT ?`,
);

/** What is more urgent goes first; among equals, what was due first. */
function claimDue(tx: Sqlite, query: DueQuery): Claim {
  const due: DueRow[] = [];
  for (const priority of prioritiesFirst) {
    if (due.length === query.rows) break;
    const rows = tx.sql<DueRow>(dueSql[priority]);
    due.push(...rows.all(query.nowMs, query.expiredAtOrBefore, query.rows - due.length));
  }
  const rows: ClaimedRow[] = [];
  let bytes = 0;
  for (const row of due) {
    bytes += row.bytes;
    if (rows.length > 0 && bytes > query.bytes) break;
    rows.push(claimRow(tx, row.id));
  }
  return { rows, more: due.length === query.rows || rows.length < due.length };
}

function claimRow(tx: Sqlite, id: string): ClaimedRow {
  const [row] = tx
    .sql<ClaimRow>(
      `UPDATE outbox SET status = 'inflight' WHERE id = ? AND status = 'pending'
       RETURNING client_message_id, attempts, unanswered, destination_kind, destination_ref, priority, meta, reply_to_id,
         envelope_version, payload, enqueued_at`,
    )
    .all(id);
  assert(row !== undefined, `the pending row ${id} changed inside the transaction that read it`);
  return {
    id,
    clientMessageId: row.client_message_id,
    attempts: row.attempts,
    unanswered: row.unanswered,
    destination: { kind: row.destination_kind, ref: row.destination_ref },
    priority: row.priority,
    canonicalMeta: row.meta,
    replyToId: row.reply_to_id ?? undefined,
    envelopeVersion: row.envelope_version,
    payload: row.payload,
    enqueuedAt: row.enqueued_at,
  };
}

const doneColumns =
  "status = 'done', delivered_at = ?, broker_message_id = ?, history_id = ?, last_error = NULL, fenced = 0";

/** The attempts that the try began with name it: an end that comes twice, or too late, finds other attempts. */
const thisTry = "WHERE id = ? AND status = 'inflight' AND attempts = ?";
const endDoneSql = `UPDATE outbox SET ${doneColumns}, attempts = attempts + 1 ${thisTry}`;

function endTry(tx: Sqlite, id: string, attempts: number, end: TryEnd, nowMs: number): boolean {
  switch (end.next) {
    case "done": {
      const { brokerMessageId, historyId } = end.acceptance;
      return tx.sql(endDoneSql).run(nowMs, brokerMessageId, historyId, id, attempts).changes === 1;
    }
    case "dead":
      return (
        tx
          .sql(
            `UPDATE outbox SET status = 'dead', attempts = attempts + 1, fenced = max(fenced, ?), last_error = ? ${thisTry}`,
          )
          .run(end.fenced ? 1 : 0, end.lastError, id, attempts).changes === 1
      );
    case "pending":
      return (
        tx
          .sql(
            `UPDATE outbox SET status = 'pending', attempts = attempts + 1, unanswered = unanswered + ?,
               next_attempt_at = ?, last_error = ? ${thisTry}`,
          )
          .run(end.unanswered, end.nextAttemptAt, end.lastError, id, attempts).changes === 1
      );
    case "put_back":
      return tx.sql(`UPDATE outbox SET status = 'pending' ${thisTry}`).run(id, attempts).changes === 1;
  }
}

function commitLate(tx: Sqlite, id: string, acceptance: Acceptance, nowMs: number): boolean {
  return (
    tx
      .sql(`UPDATE outbox SET ${doneColumns} WHERE id = ? AND status IN ('pending', 'inflight', 'dead')`)
      .run(nowMs, acceptance.brokerMessageId, acceptance.historyId, id).changes === 1
  );
}

const lateRefusalSql = `UPDATE outbox SET unanswered = unanswered - 1
  WHERE id = ? AND unanswered > 0 AND status IN ('pending', 'inflight', 'dead')`;

const recoverSql = `UPDATE outbox SET status = 'pending', attempts = attempts + 1, unanswered = unanswered + 1,
    next_attempt_at = ?, last_error = 'interrupted: the daemon ended during this try'
  WHERE status = 'inflight'`;

const boundDueSql = "UPDATE outbox SET next_attempt_at = ? WHERE status = 'pending' AND next_attempt_at > ?";

const expireKnownSql = `UPDATE outbox SET status = 'dead', last_error = ?
  WHERE id = ? AND status = 'pending' AND (unanswered = 0 OR fenced = 1)`;

const expireUnknownSql = `UPDATE outbox SET status = 'dead', last_error = ?
  WHERE id = ? AND status = 'pending' AND attempts = ?`;

const buryFencedSql = `UPDATE outbox SET status = 'dead', fenced = 1, last_error = ?
  WHERE id = ? AND attempts = ? AND status IN ('pending', 'dead')`;
