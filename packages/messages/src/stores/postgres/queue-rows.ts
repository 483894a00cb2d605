// Rows of queue_message on PostgreSQL: finding them by what they are, and moving many of them from a state to the next
// at once. What the next state is, is decided in core/queue-message.ts.
import assert from "node:assert/strict";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { Leased, QueueMessage, QueueMessageState } from "../../core/queue-message.ts";
import { toQueueMessage } from "../../core/stored-queue-message.ts";
import type { Reading } from "./stored-accepts.ts";

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

export type QueueMove = { readonly from: QueueRow; readonly to: QueueMessage };

type StoredRow = {
  mesh_id: string;
  queue: string;
  history_id: number;
  broker_message_id: string;
  state: QueueMessageState;
  deliveries: number;
  lease_holder: string | null;
  lease_token: string | null;
  lease_expires_at: Date | null;
  parked_at: Date | null;
  settled_at: Date | null;
};

const columns = `q.mesh_id, q.queue, q.history_id, q.broker_message_id, q.state, q.deliveries, q.lease_holder,
  q.lease_token, q.lease_expires_at, q.parked_at, q.settled_at`;

/** Compare-and-set: each row must still be as it was read. Under the queue's lock anything else is a bug. */
export async function moveMessages(tx: PostgresTransaction, moves: readonly QueueMove[]): Promise<void> {
  if (moves.length === 0) return;
  const column = (read: (move: QueueMove) => unknown) => moves.map(read);
  const changed = await tx.execute(
    `UPDATE mesh.queue_message q SET state = m.state, deliveries = m.deliveries, lease_holder = m.holder,
       lease_token = m.token, lease_expires_at = m.expires_at, parked_at = m.parked_at, settled_at = m.settled_at
     FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::int[], $6::text[], $7::text[], $8::int[],
       $9::text[], $10::text[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[])
       AS m (mesh_id, queue, history_id, was_state, was_deliveries, was_token, state, deliveries, holder, token,
         expires_at, parked_at, settled_at)
     WHERE q.mesh_id = m.mesh_id AND q.queue = m.queue AND q.history_id = m.history_id AND q.state = m.was_state
       AND q.deliveries = m.was_deliveries AND q.lease_token IS NOT DISTINCT FROM m.was_token`,
    [
      column(({ from }) => from.meshId),
      column(({ from }) => from.queue),
      column(({ from }) => from.historyId),
      column(({ from }) => from.message.state),
      column(({ from }) => from.message.deliveries),
      column(({ from }) => heldOf(from.message)?.leaseToken ?? null),
      column(({ to }) => to.state),
      column(({ to }) => to.deliveries),
      column(({ to }) => heldOf(to)?.holder ?? null),
      column(({ to }) => heldOf(to)?.leaseToken ?? null),
      column(({ to }) => (to.state === "leased" ? new Date(to.expiresAtMs) : null)),
      column(({ to }) => (to.state === "parked" ? new Date(to.parkedAtMs) : null)),
      column(({ to }) => (to.state === "acked" || to.state === "expired" ? new Date(to.settledAtMs) : null)),
    ],
  );
  assert(changed === moves.length, "a message of a queue changed between reading and writing it");
}

function heldOf(message: QueueMessage): { holder: string; leaseToken: string } | undefined {
  return message.state === "leased" || message.state === "acked" ? message : undefined;
}

export function selectReady(db: Reading, meshId: string, queue: string, limit: number): Promise<QueueRow[]> {
  return select(db, "WHERE q.mesh_id = $1 AND q.queue = $2 AND q.state = 'ready' ORDER BY q.history_id LIMIT $3", [
    meshId,
    queue,
    limit,
  ]);
}

/** Leases that ran out: those of messages that may be handed out again, or those after the last delivery. */
export function selectRunOut(
  db: Reading,
  at: QueueMoment,
  which: "deliverable" | "to_park",
  after: number,
  limit: number,
): Promise<QueueRow[]> {
  return select(
    db,
    `WHERE q.mesh_id = $1 AND q.queue = $2 AND q.state = 'leased' AND q.lease_expires_at <= $3
       AND q.deliveries ${which === "deliverable" ? "<" : ">="} $4 AND q.history_id > $5
     ORDER BY q.history_id LIMIT $6`,
    [at.meshId, at.queue, new Date(at.nowMs), at.maxDeliveries, after, limit],
  );
}

export function selectParked(
  db: Reading,
  meshId: string,
  queue: string,
  after: number,
  limit: number,
): Promise<QueueRow[]> {
  return select(
    db,
    `WHERE q.mesh_id = $1 AND q.queue = $2 AND q.state = 'parked' AND q.history_id > $3
     ORDER BY q.history_id LIMIT $4`,
    [meshId, queue, after, limit],
  );
}

/** What is written as leased under this token, live or not, in history order. */
export async function selectHeld(
  db: Reading,
  meshId: string,
  holder: string,
  leaseToken: string,
): Promise<QueueRow<Leased>[]> {
  const rows = await select(
    db,
    `WHERE q.mesh_id = $1 AND q.lease_holder = $2 AND q.lease_token = $3 AND q.state = 'leased'
     ORDER BY q.history_id`,
    [meshId, holder, leaseToken],
  );
  return rows.filter(isLeased);
}

/** What is written as leased by this member, under any token. */
export async function selectHeldBy(
  db: Reading,
  meshId: string,
  holder: string,
  limit: number,
): Promise<QueueRow<Leased>[]> {
  const rows = await select(
    db,
    `WHERE q.mesh_id = $1 AND q.lease_holder = $2 AND q.state = 'leased'
     ORDER BY q.lease_token, q.history_id LIMIT $3`,
    [meshId, holder, limit],
  );
  return rows.filter(isLeased);
}

/** Messages of one queue by their ids; what has another form than an id of ours is none. */
export async function selectByIds(
  db: Reading,
  meshId: string,
  queue: string,
  brokerMessageIds: readonly string[],
): Promise<Map<string, QueueRow>> {
  const rows = await select(
    db,
    `JOIN mesh.message_queue m ON m.mesh_id = q.mesh_id AND m.history_id = q.history_id AND m.id = q.broker_message_id
     WHERE q.mesh_id = $1 AND q.queue = $2 AND m.mesh_id = $1 AND m.id = ANY ($3::uuid[])`,
    [meshId, queue, brokerMessageIds.filter(isUuid)],
  );
  return new Map(rows.map((row) => [row.brokerMessageId, row]));
}

export async function selectQueueMessage(
  db: Reading,
  meshId: string,
  queue: string,
  historyId: number,
): Promise<QueueRow | undefined> {
  const where = "WHERE q.mesh_id = $1 AND q.queue = $2 AND q.history_id = $3";
  const [row] = await select(db, where, [meshId, queue, historyId]);
  return row;
}

export function selectQueueMessages(
  db: Reading,
  meshId: string,
  queue: string,
  historyIds: readonly number[],
): Promise<QueueRow[]> {
  const where = "WHERE q.mesh_id = $1 AND q.queue = $2 AND q.history_id = ANY ($3::bigint[])";
  return select(db, where, [meshId, queue, historyIds]);
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The server would refuse the statement instead of finding nothing. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}

async function select(db: Reading, rest: string, values: readonly unknown[]): Promise<QueueRow[]> {
  const rows = await db.query<StoredRow>(`SELECT ${columns} FROM mesh.queue_message q ${rest}`, values);
  return rows.map(toRow);
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
      leaseExpiresAtMs: row.lease_expires_at?.getTime() ?? null,
      parkedAtMs: row.parked_at?.getTime() ?? null,
      settledAtMs: row.settled_at?.getTime() ?? null,
    }),
  };
}
