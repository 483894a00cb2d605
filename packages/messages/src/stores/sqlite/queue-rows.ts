// Rows of queue_message on SQLite: finding them by what they are, and moving them from a state to the next.
// core/queue-message.ts decides what the next state is.
// Why: docs/decisions/0095.
import assert from "node:assert/strict";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { Leased } from "../../core/queue-message.ts";
import {
  columnsOf,
  isLeased,
  type QueueMoment,
  type QueueMove,
  type QueueRow,
  type StoredQueueMessage,
  toQueueRow,
} from "../../core/stored-queue-message.ts";

// On its own the planner takes the primary key for the order of history, and walks through everything that was ever
// settled. So messages that are ready, parked or whose lease has expired are selected by an index of nothing else.
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

/** Compare-and-set: each row must still be as it was read. Under the write lock anything else is a bug. */
export function moveMessages(tx: Sqlite, moves: readonly QueueMove[]): void {
  const update = tx.sql(
    `UPDATE queue_message SET state = ?, deliveries = ?, lease_holder = ?, lease_token = ?, lease_expires_at = ?,
       parked_at = ?, settled_at = ?
     WHERE mesh_id = ? AND queue = ? AND history_id = ? AND state = ? AND deliveries = ? AND lease_token IS ?`,
  );
  for (const { from, to } of moves) {
    const { holder, leaseToken, expiresAtMs, parkedAtMs, settledAtMs } = columnsOf(to);
    const { meshId, queue, historyId, message } = from;
    const { changes } = update.run(
      ...[to.state, to.deliveries, holder, leaseToken, expiresAtMs, parkedAtMs, settledAtMs],
      ...[meshId, queue, historyId, message.state, message.deliveries, columnsOf(message).leaseToken],
    );
    assert(changes === 1, "a message of a queue changed between reading and writing it");
  }
}

export function selectReady(tx: Sqlite, meshId: string, queue: string, limit: number): QueueRow[] {
  return tx
    .sql<StoredQueueMessage>(
      `SELECT ${columns} FROM queue_message INDEXED BY queue_message_ready
       WHERE mesh_id = ? AND queue = ? AND state = 'ready' ORDER BY history_id LIMIT ?`,
    )
    .all(meshId, queue, limit)
    .map(toQueueRow);
}

/** What is stored as leased though its lease has expired, first what expired first. */
export function selectExpired(
  db: Sqlite,
  { meshId, queue, nowMs }: Pick<QueueMoment, "meshId" | "queue" | "nowMs">,
  limit: number,
): QueueRow[] {
  return db
    .sql<StoredQueueMessage>(
      `SELECT ${columns} FROM queue_message INDEXED BY queue_message_expiry
       WHERE mesh_id = ? AND queue = ? AND state = 'leased' AND lease_expires_at <= ?
       ORDER BY lease_expires_at LIMIT ?`,
    )
    .all(meshId, queue, nowMs, limit)
    .map(toQueueRow);
}

export function selectParked(db: Sqlite, meshId: string, queue: string, after: number, limit: number): QueueRow[] {
  return db
    .sql<StoredQueueMessage>(
      `SELECT ${columns} FROM queue_message INDEXED BY queue_message_parked
       WHERE mesh_id = ? AND queue = ? AND state = 'parked' AND history_id > ? ORDER BY history_id LIMIT ?`,
    )
    .all(meshId, queue, after, limit)
    .map(toQueueRow);
}

/** What is stored as leased under this token, live or not, in history order. */
export function selectHeld(tx: Sqlite, meshId: string, holder: string, leaseToken: string): QueueRow<Leased>[] {
  return tx
    .sql<StoredQueueMessage>(
      `SELECT ${columns} FROM queue_message
       WHERE mesh_id = ? AND lease_holder = ? AND lease_token = ? AND state = 'leased' ORDER BY history_id`,
    )
    .all(meshId, holder, leaseToken)
    .map(toQueueRow)
    .filter(isLeased);
}

/** What is stored as leased by this member, under any token. */
export function selectHeldBy(tx: Sqlite, meshId: string, holder: string, limit: number): QueueRow<Leased>[] {
  return tx
    .sql<StoredQueueMessage>(
      `SELECT ${columns} FROM queue_message INDEXED BY queue_message_held
       WHERE mesh_id = ? AND lease_holder = ? AND state = 'leased' LIMIT ?`,
    )
    .all(meshId, holder, limit)
    .map(toQueueRow)
    .filter(isLeased);
}

export function selectQueueMessage(db: Sqlite, meshId: string, queue: string, historyId: number): QueueRow | undefined {
  const row = db
    .sql<StoredQueueMessage>(`SELECT ${columns} FROM queue_message WHERE mesh_id = ? AND queue = ? AND history_id = ?`)
    .get(meshId, queue, historyId);
  return row && toQueueRow(row);
}
