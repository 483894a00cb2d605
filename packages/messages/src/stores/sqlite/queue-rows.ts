// Rows of queue_message on SQLite: finding them by what they are, and moving one from a state to the next. What the
// next state is, is decided in core/queue-message.ts.
import assert from "node:assert/strict";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { Leased, QueueMessage, QueueMessageState } from "../../core/queue-message.ts";
import { toQueueMessage } from "../../core/stored-queue-message.ts";

export type QueueRow<M extends QueueMessage = QueueMessage> = {
  readonly meshId: string;
  readonly queue: string;
  readonly historyId: number;
  readonly brokerMessageId: string;
  readonly message: M;
};

/** A queue as it is seen at one moment. */
export type QueueMoment = {
  readonly meshId: string;
  readonly queue: string;
  readonly maxDeliveries: number;
  readonly nowMs: number;
};

type StoredRow = {
  mesh_id: string;
  queue: string;
  history_id: number;
  broker_message_id: string;
  state: QueueMessageState;
  deliveries: number;
  lease_holder: string | null;
  lease_token: string | null;
  lease_expires_at: number | null;
  parked_at: number | null;
  settled_at: number | null;
};

const columns = `mesh_id, queue, history_id, broker_message_id, state, deliveries, lease_holder, lease_token,
  lease_expires_at, parked_at, settled_at`;

export function insertQueueMessage(
  tx: Sqlite,
  meshId: string,
  queue: string,
  historyId: number,
  brokerMessageId: string,
): void {
  tx.sql(
    `INSERT INTO queue_message (mesh_id, queue, history_id, broker_message_id, state, deliveries)
     VALUES (?, ?, ?, ?, 'ready', 0)`,
  ).run(meshId, queue, historyId, brokerMessageId);
}

/** A compare-and-set: the row must still be as it was read. Under the write lock anything else is a bug. */
export function moveMessage(tx: Sqlite, from: QueueRow, to: QueueMessage): void {
  const held = to.state === "leased" || to.state === "acked" ? to : undefined;
  const { message } = from;
  const { changes } = tx
    .sql(
      `UPDATE queue_message SET state = ?, deliveries = ?, lease_holder = ?, lease_token = ?, lease_expires_at = ?,
         parked_at = ?, settled_at = ?
       WHERE mesh_id = ? AND queue = ? AND history_id = ? AND state = ? AND deliveries = ? AND lease_token IS ?`,
    )
    .run(
      to.state,
      to.deliveries,
      held?.holder ?? null,
      held?.leaseToken ?? null,
      to.state === "leased" ? to.expiresAtMs : null,
      to.state === "parked" ? to.parkedAtMs : null,
      to.state === "acked" || to.state === "expired" ? to.settledAtMs : null,
      from.meshId,
      from.queue,
      from.historyId,
      message.state,
      message.deliveries,
      "leaseToken" in message ? message.leaseToken : null,
    );
  assert(changes === 1, "a message of a queue changed between reading and writing it");
}

export function selectReady(tx: Sqlite, meshId: string, queue: string, limit: number): QueueRow[] {
  return tx
    .sql<StoredRow>(
      `SELECT ${columns} FROM queue_message WHERE mesh_id = ? AND queue = ? AND state = 'ready'
       ORDER BY history_id LIMIT ?`,
    )
    .all(meshId, queue, limit)
    .map(toRow);
}

/** Leases that ran out: those of messages that may be handed out again, or those after the last delivery. */
export function selectRunOut(
  db: Sqlite,
  at: QueueMoment,
  which: "deliverable" | "to_park",
  after: number,
  limit: number,
): QueueRow[] {
  const compare = which === "deliverable" ? "<" : ">=";
  return db
    .sql<StoredRow>(
      // Left to itself the planner walks the whole queue in order instead of sorting the few that ran out.
      `SELECT ${columns} FROM queue_message INDEXED BY queue_message_expiry
       WHERE mesh_id = ? AND queue = ? AND state = 'leased' AND lease_expires_at <= ? AND deliveries ${compare} ?
         AND history_id > ?
       ORDER BY history_id LIMIT ?`,
    )
    .all(at.meshId, at.queue, at.nowMs, at.maxDeliveries, after, limit)
    .map(toRow);
}

export function selectParked(db: Sqlite, meshId: string, queue: string, after: number, limit: number): QueueRow[] {
  return db
    .sql<StoredRow>(
      `SELECT ${columns} FROM queue_message WHERE mesh_id = ? AND queue = ? AND state = 'parked' AND history_id > ?
       ORDER BY history_id LIMIT ?`,
    )
    .all(meshId, queue, after, limit)
    .map(toRow);
}

/** What is written as leased under this token, live or not, in history order. */
export function selectHeld(tx: Sqlite, meshId: string, holder: string, leaseToken: string): QueueRow<Leased>[] {
  return tx
    .sql<StoredRow>(
      `SELECT ${columns} FROM queue_message
       WHERE mesh_id = ? AND lease_holder = ? AND lease_token = ? AND state = 'leased' ORDER BY history_id`,
    )
    .all(meshId, holder, leaseToken)
    .map(toRow)
    .filter(isLeased);
}

/** What is written as leased by this member, under any token. */
export function selectHeldBy(tx: Sqlite, meshId: string, holder: string, limit: number): QueueRow<Leased>[] {
  return tx
    .sql<StoredRow>(
      `SELECT ${columns} FROM queue_message WHERE mesh_id = ? AND lease_holder = ? AND state = 'leased' LIMIT ?`,
    )
    .all(meshId, holder, limit)
    .map(toRow)
    .filter(isLeased);
}

export function selectQueueMessage(db: Sqlite, meshId: string, queue: string, historyId: number): QueueRow | undefined {
  const row = db
    .sql<StoredRow>(`SELECT ${columns} FROM queue_message WHERE mesh_id = ? AND queue = ? AND history_id = ?`)
    .get(meshId, queue, historyId);
  return row && toRow(row);
}

function isLeased(row: QueueRow): row is QueueRow<Leased> {
  return row.message.state === "leased";
}

function toRow(row: StoredRow): QueueRow {
  return {
    meshId: row.mesh_id,
    queue: row.queue,
    historyId: row.history_id,
    brokerMessageId: row.broker_message_id,
    message: toQueueMessage({
      state: row.state,
      deliveries: row.deliveries,
      leaseHolder: row.lease_holder,
      leaseToken: row.lease_token,
      leaseExpiresAtMs: row.lease_expires_at,
      parkedAtMs: row.parked_at,
      settledAtMs: row.settled_at,
    }),
  };
}
