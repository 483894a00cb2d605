// Rows of queue_message on PostgreSQL: finding them by what they are, and moving many of them from a state to the next
// at once. core/queue-message.ts decides what the next state is.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { isUuid } from "@claudemesh/storage/postgres-text";
import type { Leased } from "../../core/queue-message.ts";
import {
  columnsOf,
  isLeased,
  type QueueMove,
  type QueueRow,
  type StoredQueueMessage,
  toQueueRow,
} from "../../core/stored-queue-message.ts";
import type { Reading } from "./stored-accepts.ts";

export type QueueRef = { readonly meshId: string; readonly queue: string };

/** Of `mesh.queue_message q`. */
export const queueColumns = `q.mesh_id, q.queue, q.history_id, q.broker_message_id, q.state, q.deliveries, q.lease_holder,
  q.lease_token, q.lease_expires_at, q.parked_at, q.settled_at`;

// Each row is looked up by its whole key and updated by its ctid: a join that was planned while the table was empty might read
// the whole table for each row. COMMIT may be sent behind this statement before its answer is here, so the statement itself
// has to fail, and with it the transaction, unless every row was still as it was read. It does so by casting a text that is
// no number.
const moveStatement = `
  WITH moved AS (
    UPDATE mesh.queue_message q SET state = m.state, deliveries = m.deliveries, lease_holder = m.holder,
      lease_token = m.token, lease_expires_at = m.expires_at, parked_at = m.parked_at, settled_at = m.settled_at
    FROM (
      SELECT m.*, (SELECT f.ctid FROM mesh.queue_message f
        WHERE f.mesh_id = m.mesh_id AND f.queue = m.queue AND f.history_id = m.history_id) AS row_ctid
      FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::int[], $6::text[], $7::text[], $8::int[],
        $9::text[], $10::text[], $11::timestamptz[], $12::timestamptz[], $13::timestamptz[])
        AS m (mesh_id, queue, history_id, was_state, was_deliveries, was_token, state, deliveries, holder, token,
          expires_at, parked_at, settled_at)
      OFFSET 0) AS m
    WHERE q.ctid = m.row_ctid AND q.state = m.was_state AND q.deliveries = m.was_deliveries
      AND q.lease_token IS NOT DISTINCT FROM m.was_token
    RETURNING 1)
  SELECT CASE WHEN count(*) = $14::bigint THEN 0
    ELSE ('a message of a queue changed between reading and writing it; rows written: ' || count(*))::int END
  FROM moved`;

/**
 * Compare-and-set: each row must still be as it was read. Under the queue's lock anything else is a bug. `name` is for
 * connections whose plans are generic.
 */
export function moveMessages(tx: PostgresTransaction, moves: readonly QueueMove[], name?: string): Promise<unknown> {
  if (moves.length === 0) return Promise.resolve();
  const from = moves.map((move) => move.from);
  const to = moves.map((move) => move.to);
  const written = to.map(columnsOf);
  const times = (column: "expiresAtMs" | "parkedAtMs" | "settledAtMs") =>
    written.map(({ [column]: timeMs }) => (timeMs === null ? null : new Date(timeMs)));
  return tx.query(
    moveStatement,
    [
      from.map((row) => row.meshId),
      from.map((row) => row.queue),
      from.map((row) => row.historyId),
      from.map((row) => row.message.state),
      from.map((row) => row.message.deliveries),
      from.map((row) => columnsOf(row.message).leaseToken),
      to.map((message) => message.state),
      to.map((message) => message.deliveries),
      written.map(({ holder }) => holder),
      written.map(({ leaseToken }) => leaseToken),
      times("expiresAtMs"),
      times("parkedAtMs"),
      times("settledAtMs"),
      moves.length,
    ],
    name,
  );
}

/** What is stored as leased though its lease has expired, first what expired first. */
export function selectExpired(
  db: Reading,
  { meshId, queue }: QueueRef,
  nowMs: number,
  limit: number,
  name?: string,
): Promise<QueueRow[]> {
  return select(
    db,
    `WHERE q.mesh_id = $1 AND q.queue = $2 AND q.state = 'leased' AND q.lease_expires_at <= $3
     ORDER BY q.lease_expires_at LIMIT $4`,
    [meshId, queue, new Date(nowMs), limit],
    name,
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

type HeldLease = { readonly holder: string; readonly leaseToken: string };

export const heldKey = ({ holder, leaseToken }: HeldLease) => `${holder}/${leaseToken}`;

/** What is stored as leased under these tokens, live or not, by `heldKey`, each in history order. */
export async function selectHeldUnder(
  db: Reading,
  meshId: string,
  leases: readonly HeldLease[],
): Promise<Map<string, QueueRow<Leased>[]>> {
  const rows = await db.query<StoredQueueMessage>(
    `SELECT ${queueColumns} FROM (SELECT DISTINCT * FROM unnest($2::text[], $3::text[]) AS l (holder, token)) AS a
     CROSS JOIN LATERAL (
       SELECT * FROM mesh.queue_message
       WHERE mesh_id = $1 AND lease_holder = a.holder AND lease_token = a.token AND state = 'leased' OFFSET 0) AS q
     ORDER BY q.history_id`,
    [meshId, leases.map(({ holder }) => holder), leases.map(({ leaseToken }) => leaseToken)],
    "queue_held",
  );
  const held = rows.map(toQueueRow).filter(isLeased);
  return Map.groupBy(held, ({ message }) => heldKey(message));
}

/** What is stored as leased by this member, under any token. */
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

/** Messages of one queue by their ids. A text that is no UUID is no id of a message. */
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

async function select(db: Reading, rest: string, values: readonly unknown[], name?: string): Promise<QueueRow[]> {
  const rows = await db.query<StoredQueueMessage>(
    `SELECT ${queueColumns} FROM mesh.queue_message q ${rest}`,
    values,
    name,
  );
  return rows.map(toQueueRow);
}
