// Removing messages that are older than they have to be, on PostgreSQL: one bounded piece of a mesh's history at a time,
// inside a transaction that holds the mesh's housekeeping row. Nothing here waits for an accept, and no accept for it.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { expireMessage } from "../../core/queue-message.ts";
import { type AgedRow, countRemovable } from "../../core/retention.ts";
import type { QueueMove } from "../../core/stored-queue-message.ts";
import type { SweepTally } from "../sweep-tally.ts";
import { deleteDeliveries, deleteHistory } from "./forgetting.ts";
import { moveMessages, selectQueueMessages } from "./queue-rows.ts";
import { selectMaxDeliveries } from "./queues.ts";
import { deleteSearchRows, holdIndex } from "./search.ts";

const messagesPerStep = 500;
/** Of those messages together; a message with more recipients takes several steps. */
const deliveriesPerStep = 2_000;

/** Returns how far it came; undefined where nothing was removed. */
export async function removeMessages(
  tx: PostgresTransaction,
  meshId: string,
  terms: { readonly removedUpTo: number; readonly beforeMs: number; readonly nowMs: number },
  tally: SweepTally,
): Promise<number | undefined> {
  const { removedUpTo, beforeMs, nowMs } = terms;
  const rows = await selectNext(tx, meshId, removedUpTo);
  const old = rows.slice(0, countRemovable(rows, beforeMs, nowMs));
  if (old.length === 0) return undefined;
  if (old.length === messagesPerStep) tally.setMore();
  // A transaction that indexes the mesh either has read these messages and is about to write them, or will not find them.
  await holdIndex(tx, meshId);
  await expireQueued(tx, meshId, old, nowMs, tally);
  tally.addUpTo("expired_deliveries", await expireDeliveries(tx, meshId, old, nowMs), deliveriesPerStep);
  const settled = upToFirst(old, await selectUnsettled(tx, meshId, old));
  const rememberedIds = await selectRememberedIds(tx, meshId, settled);
  const forgotten = settled.filter((row) => !rememberedIds.has(row.brokerMessageId));
  const left = await deleteDeliveries(tx, meshId, historyIdsOf(forgotten), deliveriesPerStep, tally);
  const removable = upToFirst(settled, left);
  // Locks of other transactions are soon gone; a caller that sweeps to the end must not take this step for the end.
  if (removable.length < old.length) tally.setMore();
  await deleteMessages(tx, meshId, removable, tally);
  await deleteHistory(
    tx,
    meshId,
    historyIdsOf(removable.filter((row) => !rememberedIds.has(row.brokerMessageId))),
    tally,
  );
  return removable.at(-1)?.historyId;
}

function historyIdsOf(rows: readonly AgedRow[]): number[] {
  return rows.map((row) => row.historyId);
}

function upToFirst(rows: readonly AgedRow[], blocked: ReadonlySet<number>): AgedRow[] {
  const end = rows.findIndex((row) => blocked.has(row.historyId));
  return end === -1 ? [...rows] : rows.slice(0, end);
}

function selectNext(tx: PostgresTransaction, meshId: string, after: number): Promise<AgedRow[]> {
  return tx.query<AgedRow>(
    `SELECT history_id AS "historyId", broker_message_id AS "brokerMessageId", client_message_id AS "clientMessageId",
       destination_kind AS kind, destination_ref AS ref,
       (extract(epoch FROM accepted_at) * 1000)::float8 AS "acceptedAtMs"
     FROM mesh.message_history WHERE mesh_id = $1 AND history_id > $2 ORDER BY history_id LIMIT $3`,
    [meshId, after, messagesPerStep],
  );
}

/** Queues are locked in one order and before any delivery, as where a membership is ended. */
async function expireQueued(
  tx: PostgresTransaction,
  meshId: string,
  rows: readonly AgedRow[],
  nowMs: number,
  tally: SweepTally,
): Promise<void> {
  const queued = rows.filter((row) => row.kind === "queue");
  for (const queue of [...new Set(queued.map((row) => row.ref))].sort()) {
    await selectMaxDeliveries(tx, meshId, queue, "FOR NO KEY UPDATE");
    const ids = historyIdsOf(queued.filter((row) => row.ref === queue));
    const moves = (await selectQueueMessages(tx, meshId, queue, ids)).flatMap((from): QueueMove[] => {
      const to = expireMessage(from.message, nowMs);
      return to === from.message ? [] : [{ from, to }];
    });
    await moveMessages(tx, moves);
    tally.add("expired_queue_messages", moves.length);
  }
}

/** Deliveries that are being settled just now are left alone, and their message is left for the next step. */
function expireDeliveries(
  tx: PostgresTransaction,
  meshId: string,
  rows: readonly AgedRow[],
  nowMs: number,
): Promise<number> {
  return tx.execute(
    `UPDATE mesh.delivery_queue d SET settled_at = $3, outcome = 'expired'
     FROM (SELECT history_id, recipient_pubkey FROM mesh.delivery_queue
       WHERE mesh_id = $1 AND history_id = ANY ($2::bigint[]) AND settled_at IS NULL
       ORDER BY history_id LIMIT $4 FOR UPDATE SKIP LOCKED) AS u
     WHERE d.mesh_id = $1 AND d.history_id = u.history_id AND d.recipient_pubkey = u.recipient_pubkey`,
    [meshId, historyIdsOf(rows), new Date(nowMs), deliveriesPerStep],
  );
}

async function selectUnsettled(
  tx: PostgresTransaction,
  meshId: string,
  rows: readonly AgedRow[],
): Promise<Set<number>> {
  const unsettled = await tx.query<{ history_id: number }>(
    `SELECT h.history_id FROM unnest($2::bigint[]) AS h (history_id)
     WHERE EXISTS (SELECT 1 FROM mesh.delivery_queue d
       WHERE d.mesh_id = $1 AND d.history_id = h.history_id AND d.settled_at IS NULL)`,
    [meshId, historyIdsOf(rows)],
  );
  return new Set(unsettled.map((row) => row.history_id));
}

/** Messages whose ids are remembered; an id may be forgotten, or stand for a later message. */
async function selectRememberedIds(
  tx: PostgresTransaction,
  meshId: string,
  rows: readonly AgedRow[],
): Promise<Set<string>> {
  const remembered = await tx.query<{ broker_message_id: string }>(
    `SELECT d.broker_message_id FROM unnest($2::text[], $3::uuid[]) AS m (client_message_id, broker_message_id)
     JOIN mesh.client_message_dedupe d ON d.mesh_id = $1 AND d.client_message_id = m.client_message_id
       AND d.broker_message_id = m.broker_message_id`,
    [meshId, rows.map((row) => row.clientMessageId), rows.map((row) => row.brokerMessageId)],
  );
  return new Set(remembered.map((row) => row.broker_message_id));
}

async function deleteMessages(
  tx: PostgresTransaction,
  meshId: string,
  rows: readonly AgedRow[],
  tally: SweepTally,
): Promise<void> {
  if (rows.length === 0) return;
  const ids = rows.map((row) => row.brokerMessageId);
  const historyIds = historyIdsOf(rows);
  await tx.execute(
    `UPDATE mesh.client_message_dedupe d SET history_available = false
     FROM unnest($2::text[], $3::uuid[]) AS m (client_message_id, broker_message_id)
     WHERE d.mesh_id = $1 AND d.client_message_id = m.client_message_id AND d.broker_message_id = m.broker_message_id`,
    [meshId, rows.map((row) => row.clientMessageId), ids],
  );
  for (const table of ["topic_message", "message_queue"]) {
    const statement = `DELETE FROM mesh.${table} WHERE mesh_id = $1 AND id = ANY ($2::uuid[])`;
    tally.add("messages", await tx.execute(statement, [meshId, ids]));
  }
  const mentions = "DELETE FROM mesh.mention_index WHERE mesh_id = $1 AND history_id = ANY ($2::bigint[])";
  tally.add("mentions", await tx.execute(mentions, [meshId, historyIds]));
  tally.add("search_rows", await deleteSearchRows(tx, meshId, historyIds));
}
