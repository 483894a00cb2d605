// The outbox on SQLite: each operation of its port as one transaction. The statements that change rows are in outbox-rows.ts,
// reading rows for people is in outbox-reading.ts.
// Why: docs/decisions/0048.
import assert from "node:assert/strict";
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import type { Priority } from "@claudemesh/protocol/messages/envelope";
import type { OutboxStatus } from "@claudemesh/protocol/messages/outbox-row";
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { ClaimedRow, NewOutboxRow, StoredSend } from "../../core/outbox-row.ts";
import { byPriority, prioritiesFirst } from "../../core/priorities.ts";
import type { Claim, DueQuery, Inserted, OutboxStore } from "../../ports.ts";
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
import * as rows from "./outbox-rows.ts";

type NewSend = { readonly row: NewOutboxRow; readonly as: "pending" | "inflight" };

export function createSqliteOutboxStore(db: Sqlite, commit: GroupCommit): OutboxStore {
  // Most outboxes have none for a month, and a look-up that can find nothing is half the cost of a look-up.
  let hasTombstones = db.sql("SELECT 1 FROM outbox_tombstone LIMIT 1").get() !== undefined;
  const findPruned = (tx: Sqlite, clientMessageId: string) =>
    hasTombstones ? selectTombstone(tx, clientMessageId) : undefined;
  /** The insert looks the id up by itself: asking first would search the same index twice. */
  const insertUnlessKnown = (tx: Sqlite, { row, as }: NewSend): Inserted => {
    const pruned = findPruned(tx, row.clientMessageId);
    if (pruned !== undefined) return { type: "known", send: pruned };
    if (rows.insertRow(tx, row, as)) return { type: as };
    const send = selectSend(tx, row.clientMessageId);
    assert(send !== undefined, `nothing stands in the way of ${row.clientMessageId}`);
    return { type: "known", send };
  };
  const insertAll = (tx: Sqlite, sends: readonly NewSend[]): Inserted[] => {
    const firstDue = new FirstDue(tx);
    return sends.map(({ row, as }) => {
      if (as === "pending") firstDue.forget();
      const mustWait = as === "pending" || firstDue.upTo(row.priority) <= row.enqueuedAt;
      return insertUnlessKnown(tx, { row, as: mustWait ? "pending" : "inflight" });
    });
  };
  return {
    find: (clientMessageId) => selectSend(db, clientMessageId) ?? findPruned(db, clientMessageId),
    insert: (row, as) => commit.submitItem(insertAll, { row, as }, "outbox"),
    claimDue: (query) => commit.submit((tx) => claimDue(tx, query)),
    nextDueAt: (afterMs) => selectNextDueAt(db, afterMs),
    endTry: (id, attempts, end, nowMs) => commit.submit((tx) => rows.endTry(tx, id, attempts, end, nowMs)),
    commitLate: (id, acceptance, nowMs) => commit.submit((tx) => rows.commitLate(tx, id, acceptance, nowMs)),
    settleLateRefusal: (id) => commit.submit((tx) => rows.settleLateRefusal(tx, id)),
    resumeInflight: (nowMs) => commit.submit((tx) => rows.resumeInflight(tx, nowMs)),
    boundDueTimes: (latestMs) => commit.submit((tx) => rows.boundDueTimes(tx, latestMs)),
    oldestOpenEnqueuedAt: () => selectOldestOpen(db),
    expired: (atOrBefore, limit) => selectExpired(db, atOrBefore, limit),
    expireUnsentOrRefused: (ids, lastError) => commit.submit((tx) => rows.expireUnsentOrRefused(tx, ids, lastError)),
    expireUnknown: (id, attempts, lastError) => commit.submit((tx) => rows.expireUnknown(tx, id, attempts, lastError)),
    buryFenced: (id, attempts, lastError) => commit.submit((tx) => rows.buryFenced(tx, id, attempts, lastError)),
    deadOfUnknownFate: (enqueuedAfter, after, limit) => selectDeadOfUnknownFate(db, enqueuedAfter, after, limit),
    prune: (deliveredBefore, nowMs, limit) =>
      commit.submit((tx) => {
        const pruned = rows.pruneDone(tx, deliveredBefore, nowMs, limit);
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

/**
 * When the first waiting row that goes before a new one of some priority is due. One look-up serves the sends of a transaction:
 * one of them that has to wait is due no earlier than the row that it waits for.
 */
class FirstDue {
  readonly #tx: Sqlite;
  readonly #known = new Map<Priority, number>();

  constructor(tx: Sqlite) {
    this.#tx = tx;
  }

  /** A row that waits for none has come among the waiting. */
  forget(): void {
    this.#known.clear();
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
    const found = tx.sql<DueRow>(dueSql[priority]);
    due.push(...found.all(query.nowMs, query.expiredAtOrBefore, query.rows - due.length));
  }
  const claimed: ClaimedRow[] = [];
  let bytes = 0;
  for (const row of due) {
    bytes += row.bytes;
    if (claimed.length > 0 && bytes > query.bytes) break;
    claimed.push(rows.claimRow(tx, row.id));
  }
  return { rows: claimed, more: due.length === query.rows || claimed.length < due.length };
}
