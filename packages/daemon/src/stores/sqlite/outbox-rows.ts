// Every statement that adds, changes or removes a row of the outbox, and no other file has one. Each is a compare-and-set
// inside the caller's transaction; which transitions exist is the protocol's list.
import assert from "node:assert/strict";
import type { DestinationKind } from "@claudemesh/protocol/messages/addresses";
import type { Sqlite, SqliteValue } from "@claudemesh/storage/sqlite";
import type { ClaimedRow, DismissOrder, NewOutboxRow } from "../../core/outbox-row.ts";
import type { HoldBackOutcome, PatchedColumns, RequeueOrder } from "../../core/requeue.ts";
import type { Acceptance, TryEnd } from "../../core/try-end.ts";
import { membershipEndKey } from "./members-store.ts";
import { lowestUlidAt } from "./time-ordered-ids.ts";

// Texts of statements are constants: one that is put together at each call is also hashed anew at each.
const insertSql = `INSERT INTO outbox (id, client_message_id, request_fingerprint, wire_fingerprint, to_address,
    destination_kind, destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, next_attempt_at,
    status, payload)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (client_message_id) DO NOTHING`;

/** False: the client's id is taken, and nothing changed. */
export function insertRow(tx: Sqlite, row: NewOutboxRow, status: "pending" | "inflight"): boolean {
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

const claimSql = `UPDATE outbox SET status = 'inflight' WHERE id = ? AND status = 'pending'
  RETURNING client_message_id, attempts, unanswered, destination_kind, destination_ref, priority, meta, reply_to_id,
    envelope_version, payload, enqueued_at`;

export function claimRow(tx: Sqlite, id: string): ClaimedRow {
  const [row] = tx.sql<ClaimRow>(claimSql).all(id);
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
const endDeadSql = `UPDATE outbox SET status = 'dead', attempts = attempts + 1, fenced = max(fenced, ?), last_error = ?
  ${thisTry}`;
const endPendingSql = `UPDATE outbox SET status = 'pending', attempts = attempts + 1, unanswered = unanswered + ?,
    next_attempt_at = ?, last_error = ?
  ${thisTry}`;
const putBackSql = `UPDATE outbox SET status = 'pending' ${thisTry}`;

export function endTry(tx: Sqlite, id: string, attempts: number, end: TryEnd, nowMs: number): boolean {
  switch (end.next) {
    case "done": {
      const { brokerMessageId, historyId } = end.acceptance;
      return changesOne(tx, endDoneSql, nowMs, brokerMessageId, historyId, id, attempts);
    }
    case "dead":
      return changesOne(tx, endDeadSql, end.fenced ? 1 : 0, end.lastError, id, attempts);
    case "pending":
      return changesOne(tx, endPendingSql, end.unanswered, end.nextAttemptAt, end.lastError, id, attempts);
    case "put_back":
      return changesOne(tx, putBackSql, id, attempts);
  }
}

const commitLateSql = `UPDATE outbox SET ${doneColumns} WHERE id = ? AND status IN ('pending', 'inflight', 'dead')`;

export function commitLate(tx: Sqlite, id: string, acceptance: Acceptance, nowMs: number): boolean {
  return changesOne(tx, commitLateSql, nowMs, acceptance.brokerMessageId, acceptance.historyId, id);
}

const lateRefusalSql = `UPDATE outbox SET unanswered = unanswered - 1
  WHERE id = ? AND unanswered > 0 AND status IN ('pending', 'inflight', 'dead')`;

export const settleLateRefusal = (tx: Sqlite, id: string) => changesOne(tx, lateRefusalSql, id);

const resumeSql = `UPDATE outbox SET status = 'pending', attempts = attempts + 1, unanswered = unanswered + 1,
    next_attempt_at = ?, last_error = 'interrupted: the daemon ended during this try'
  WHERE status = 'inflight'`;

/** After the end of a process: each try that was open counts as one without an answer. */
export const resumeInflight = (tx: Sqlite, nowMs: number) => tx.sql(resumeSql).run(nowMs).changes;

const restoredSql = `UPDATE outbox SET status = 'pending', attempts = attempts + 1, unanswered = unanswered + 1,
    last_error = 'restored: from a backup, so that the broker may have accepted it since'
  WHERE status IN ('pending', 'inflight') AND fenced = 0`;

/** In a copy: rows that were still to be sent may have been sent since, so that their fate is unknown from the start. */
export const markOpenRowsRestored = (tx: Sqlite) => tx.sql(restoredSql).run().changes;

const boundDueSql = "UPDATE outbox SET next_attempt_at = ? WHERE status = 'pending' AND next_attempt_at > ?";

export const boundDueTimes = (tx: Sqlite, latestMs: number) => tx.sql(boundDueSql).run(latestMs, latestMs).changes;

const expireKnownSql = `UPDATE outbox SET status = 'dead', last_error = ?
  WHERE id = ? AND status = 'pending' AND (unanswered = 0 OR fenced = 1)`;

/** Returns how many. */
export function expireUnsentOrRefused(tx: Sqlite, ids: readonly string[], lastError: string): number {
  return ids.filter((id) => changesOne(tx, expireKnownSql, lastError, id)).length;
}

const expireUnknownSql = `UPDATE outbox SET status = 'dead', last_error = ?
  WHERE id = ? AND status = 'pending' AND attempts = ?`;

export function expireUnknown(tx: Sqlite, id: string, attempts: number, lastError: string): boolean {
  return changesOne(tx, expireUnknownSql, lastError, id, attempts);
}

const buryFencedSql = `UPDATE outbox SET status = 'dead', fenced = 1, last_error = ?
  WHERE id = ? AND attempts = ? AND status IN ('pending', 'dead')`;

export function buryFenced(tx: Sqlite, id: string, attempts: number, lastError: string): boolean {
  return changesOne(tx, buryFencedSql, lastError, id, attempts);
}

const dismissSql = `UPDATE outbox SET dismissed_at = ?, dismissed_by = ?, dismissed_why = ?
  WHERE id = ? AND status = 'dead' AND dismissed_at IS NULL`;

/** What its tries met stays counted, so that its fate is unknown where one of them went unanswered. */
const dismissUnsendableSql = `UPDATE outbox SET status = 'dead', last_error = ?, dismissed_at = ?, dismissed_by = ?,
    dismissed_why = ?
  WHERE id = ? AND status = 'pending' AND EXISTS (SELECT 1 FROM daemon_state WHERE key = '${membershipEndKey}')`;
const neverSent = "membership_ended: this member was removed from the mesh, and it was let go";

/** Only a dead row, or a waiting one of a former member, which nothing will send; and the first mark stays. */
export function dismissRow(tx: Sqlite, { id, by, why, nowMs }: DismissOrder): boolean {
  return (
    changesOne(tx, dismissSql, nowMs, by, why, id) ||
    changesOne(tx, dismissUnsendableSql, neverSent, nowMs, by, why, id)
  );
}

const abortRequeuedSql = `UPDATE outbox SET status = 'aborted', aborted_at = ?, aborted_by = 'operator', superseded_by = ?,
    fenced = max(fenced, ?), accept_duplicate = max(accept_duplicate, ?)
  WHERE id = ? AND status IN ('pending', 'dead')`;

export function abortRequeued(tx: Sqlite, order: RequeueOrder): boolean {
  const { nowMs, newId, provenUncommitted, acceptDuplicate, oldId } = order;
  return changesOne(tx, abortRequeuedSql, nowMs, newId, provenUncommitted ? 1 : 0, acceptDuplicate ? 1 : 0, oldId);
}

const ownColumns = "id, client_message_id, enqueued_at, next_attempt_at, accept_duplicate, status";
const addressColumns = "to_address, destination_kind, destination_ref";
const contentColumns = "request_fingerprint, wire_fingerprint, priority, meta, reply_to_id, envelope_version, payload";

/** What is not patched goes from row to row inside the database: kept to the byte, and never in our memory. */
export function insertSuccessor(tx: Sqlite, order: RequeueOrder): void {
  const { newId, newClientMessageId, nowMs, acceptDuplicate, patched, oldId } = order;
  const own = [newId, newClientMessageId, nowMs, nowMs, acceptDuplicate ? 1 : 0];
  const content = patched === undefined ? contentColumns : "?, ?, ?, ?, ?, ?, ?";
  tx.sql(
    `INSERT INTO outbox (${ownColumns}, ${contentColumns}, ${addressColumns})
     SELECT ?, ?, ?, ?, ?, 'pending', ${content}, ${addressColumns} FROM outbox WHERE id = ?`,
  ).run(...own, ...(patched === undefined ? [] : contentValues(patched)), oldId);
}

function contentValues(patched: PatchedColumns): SqliteValue[] {
  return [
    patched.requestFingerprint,
    patched.wireFingerprint,
    patched.priority,
    patched.canonicalMeta,
    patched.replyToId ?? null,
    patched.envelopeVersion,
    patched.payload,
  ];
}

export function holdBack(tx: Sqlite, id: string, untilMs: number): HoldBackOutcome {
  const row = tx
    .sql<{ next_attempt_at: number }>("SELECT next_attempt_at FROM outbox WHERE id = ? AND status = 'pending'")
    .get(id);
  if (row === undefined || row.next_attempt_at >= untilMs) return { type: "unchanged" };
  tx.sql("UPDATE outbox SET next_attempt_at = ? WHERE id = ?").run(untilMs, id);
  return { type: "held_back", wasDueAt: row.next_attempt_at };
}

const bringForwardSql = `UPDATE outbox SET next_attempt_at = min(next_attempt_at, ?)
  WHERE id = ? AND status = 'pending'`;

export function bringForward(tx: Sqlite, id: string, dueAtMs: number): void {
  tx.sql(bringForwardSql).run(dueAtMs, id);
}

const abortOfOldKeysSql = `UPDATE outbox SET status = 'aborted', aborted_at = ?, aborted_by = 'remint'
  WHERE status = 'dead' AND (envelope_version <> '1' OR (unanswered > 0 AND fenced = 0))`;

/**
 * Dead rows that new keys could not deal with are retired. A sealed one could be requeued and never be opened. Of one with an
 * unknown fate, which was dismissed, the broker would tell a new member that its id is another member's, as if the message had
 * never arrived: a requeue could send it twice.
 */
export const abortDeadOfOldKeys = (tx: Sqlite, nowMs: number) => tx.sql(abortOfOldKeysSql).run(nowMs).changes;

const keptColumns = `client_message_id, id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
  destination_ref, priority, meta, reply_to_id, envelope_version, enqueued_at, attempts, delivered_at,
  broker_message_id, history_id, accept_duplicate`;
const entombSql = `INSERT INTO outbox_tombstone (${keptColumns}, pruned_at)
  SELECT ${keptColumns}, ? FROM outbox WHERE id = ?`;

/** Turns done rows into tombstones. Nothing else is ever removed, and a tombstone answers a retry exactly as its row did. */
export function pruneDone(tx: Sqlite, deliveredBefore: number, nowMs: number, limit: number): number {
  // A row delivered before the moment was enqueued before it, so that its id bounds the search to old rows.
  const rows = tx
    .sql<{ id: string }>(
      "SELECT id FROM outbox WHERE id < ? AND status = 'done' AND delivered_at < ? ORDER BY id LIMIT ?",
    )
    .all(lowestUlidAt(deliveredBefore), deliveredBefore, limit);
  for (const { id } of rows) {
    tx.sql(entombSql).run(nowMs, id);
    tx.sql("DELETE FROM outbox WHERE id = ? AND status = 'done'").run(id);
  }
  return rows.length;
}

function changesOne(tx: Sqlite, text: string, ...values: readonly SqliteValue[]): boolean {
  return tx.sql(text).run(...values).changes === 1;
}
