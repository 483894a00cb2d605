// What is available in a queue on PostgreSQL, each row with its message, in history order and a few at a time.
//
// The statements run on connections whose plans are generic. Such a plan may have been made while the tables were empty, so
// every message is looked up by a subquery that can use nothing but its whole key.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { StoredItem } from "../../core/stored-item.ts";
import { toHistoryItem } from "../../core/stored-item.ts";
import { byHistory, type QueueRow, type StoredQueueMessage, toQueueRow } from "../../core/stored-queue-message.ts";
import { type QueueRef, queueColumns } from "./queue-rows.ts";
import type { Reading } from "./stored-accepts.ts";

/** A row with its message, which is undefined where retention has removed it. */
export type RowWithItem<Row extends QueueRow = QueueRow> = readonly [row: Row, item: HistoryItem | undefined];

/** Bodies in memory at once, beside those of the answers. */
const itemsPerRead = 64;

type StoredMessage = Omit<StoredItem, "history_id" | "broker_message_id">;

// A message is created when it is accepted, so that history has nothing to add to these columns.
const messageColumns = `client_message_id, destination_kind, destination_ref, sender_pubkey, created_at AS accepted_at,
  envelope_version, body, meta, priority, reply_to_id`;

const readyStatement = `
  SELECT ${queueColumns}, m.* FROM (
    SELECT * FROM mesh.queue_message
    WHERE mesh_id = $1 AND queue = $2 AND state = 'ready' AND history_id > $3 ORDER BY history_id LIMIT $4) AS q
  LEFT JOIN LATERAL (
    SELECT ${messageColumns} FROM mesh.message_queue WHERE mesh_id = $1 AND id = q.broker_message_id OFFSET 0
  ) AS m ON true
  ORDER BY q.history_id`;

/** What is ready after that history id, as much as is read at once. */
export async function selectReady(
  db: Reading,
  { meshId, queue }: QueueRef,
  after: number,
  limit: number,
): Promise<RowWithItem[]> {
  const rows = await db.query<StoredQueueMessage & (StoredMessage | Record<keyof StoredMessage, null>)>(
    readyStatement,
    [meshId, queue, after, Math.min(limit, itemsPerRead)],
    "queue_ready",
  );
  return rows.map((row) => [toQueueRow(row), row.body === null ? undefined : toHistoryItem(row)]);
}

/**
 * The first `limit` of the messages that are ready and of those whose expired lease lets them be leased again. `firstReady`
 * was read with that limit. Later pages are read only when the caller asks for them.
 */
export async function* inHistoryOrder(
  db: Reading,
  at: QueueRef,
  firstReady: readonly RowWithItem[],
  again: readonly QueueRow[],
  limit: number,
): AsyncGenerator<RowWithItem> {
  const waiting = again.toSorted(byHistory);
  let left = limit;
  for (let ready = firstReady; ; ) {
    const last =
      ready.length < Math.min(left, itemsPerRead) ? Number.POSITIVE_INFINITY : (ready.at(-1)?.[0].historyId ?? 0);
    const older = waiting.splice(0, waiting.findLastIndex((row) => row.historyId < last) + 1);
    const known = new Map(ready.map(([row, item]) => [row, item]));
    const rows = [...known.keys(), ...older].sort(byHistory).slice(0, left);
    yield* withItems(db, at.meshId, rows, { known, name: "queue_items" });
    left -= rows.length;
    if (left === 0 || last === Number.POSITIVE_INFINITY) return;
    ready = await selectReady(db, at, last, left);
  }
}

/** Each row with its message; messages that are not in `known` are read. `name` is for connections whose plans are generic. */
export async function* withItems<Row extends QueueRow>(
  db: Reading,
  meshId: string,
  rows: readonly Row[],
  options: { readonly known?: ReadonlyMap<QueueRow, HistoryItem | undefined>; readonly name?: string } = {},
): AsyncGenerator<RowWithItem<Row>> {
  const { known = new Map<QueueRow, HistoryItem | undefined>(), name } = options;
  for (let from = 0; from < rows.length; from += itemsPerRead) {
    const some = rows.slice(from, from + itemsPerRead);
    const read = await selectItems(
      db,
      meshId,
      some.filter((row) => !known.has(row)),
      name,
    );
    for (const row of some) yield [row, known.has(row) ? known.get(row) : read.get(row.historyId)];
  }
}

const itemsStatement = `
  SELECT k.history_id, k.broker_message_id, m.*
  FROM unnest($2::bigint[], $3::uuid[]) AS k (history_id, broker_message_id)
  CROSS JOIN LATERAL (
    SELECT ${messageColumns} FROM mesh.message_queue WHERE mesh_id = $1 AND id = k.broker_message_id OFFSET 0) AS m`;

/** By history id; those that retention has removed are left out. */
async function selectItems(
  db: Reading,
  meshId: string,
  rows: readonly QueueRow[],
  name: string | undefined,
): Promise<ReadonlyMap<number, HistoryItem>> {
  if (rows.length === 0) return new Map();
  const ids = [rows.map((row) => row.historyId), rows.map((row) => row.brokerMessageId)];
  const stored = await db.query<StoredItem>(itemsStatement, [meshId, ...ids], name);
  return new Map(stored.map((row) => [row.history_id, toHistoryItem(row)]));
}
