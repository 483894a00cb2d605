// The queues of a mesh with what waits in each, on SQLite. Every number is counted in an index that holds nothing else.
// Why: docs/decisions/0141.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { CountRoom, countedMax } from "../../core/count-room.ts";
import type { ParkedCount, QueueListPage, QueueSummary } from "../../ports/queues.ts";

type QueueRow = { id: string; max_deliveries: number; created_at: number };

export function selectQueues(
  db: Sqlite,
  { meshId, after, limit }: { meshId: string; after: string; limit: number },
  nowMs: number,
): QueueListPage {
  const rows = db
    .sql<QueueRow>("SELECT id, max_deliveries, created_at FROM queue WHERE mesh_id = ? AND id > ? ORDER BY id LIMIT ?")
    .all(meshId, after, limit);
  const items: QueueSummary[] = [];
  const room = new CountRoom();
  for (const row of rows) {
    const item = summarise(db, meshId, row, nowMs);
    items.push(item);
    if (!room.take(item.depth, item.leased, item.parked)) return { items, nextAfter: row.id };
  }
  return { items, nextAfter: rows.length === limit ? rows.at(-1)?.id : undefined };
}

function summarise(db: Sqlite, meshId: string, queue: QueueRow, nowMs: number): QueueSummary {
  const { id, max_deliveries: maxDeliveries, created_at: createdAtMs } = queue;
  const count = (from: string, ...values: number[]) =>
    db
      .sql<{ n: number; first: number | null }>(
        `SELECT count(*) AS n, min(history_id) AS first FROM (SELECT history_id FROM queue_message ${from} LIMIT ?)`,
      )
      .get(meshId, id, ...values, countedMax) ?? { n: 0, first: null };
  const at = "WHERE mesh_id = ? AND queue = ? AND";
  const ready = count(`INDEXED BY queue_message_ready ${at} state = 'ready'`);
  const parked = count(`INDEXED BY queue_message_parked ${at} state = 'parked'`);
  const expiry = `INDEXED BY queue_message_expiry ${at} state = 'leased'`;
  const leased = count(`${expiry} AND lease_expires_at > ?`, nowMs);
  // Written as leased, and by now available again, or parked after their last delivery.
  const again = count(`${expiry} AND lease_expires_at <= ? AND deliveries < ?`, nowMs, maxDeliveries);
  const spent = count(`${expiry} AND lease_expires_at <= ? AND deliveries >= ?`, nowMs, maxDeliveries);
  const first = Math.min(ready.first ?? Number.POSITIVE_INFINITY, again.first ?? Number.POSITIVE_INFINITY);
  return {
    id,
    maxDeliveries,
    createdAtMs,
    depth: Math.min(ready.n + again.n, countedMax),
    leased: leased.n,
    parked: Math.min(parked.n + spent.n, countedMax),
    oldestAtMs: Number.isFinite(first) ? selectAcceptedAt(db, meshId, first) : undefined,
  };
}

function selectAcceptedAt(db: Sqlite, meshId: string, historyId: number): number | undefined {
  return db
    .sql<{ accepted_at: number }>("SELECT accepted_at FROM message_history WHERE mesh_id = ? AND history_id = ?")
    .get(meshId, historyId)?.accepted_at;
}

/** Queues with parked messages, and how many of the first thousand are in each. */
export function countParked(db: Sqlite, meshId: string, limit: number): ParkedCount[] {
  return db
    .sql<ParkedCount>(
      `SELECT queue, count(*) AS parked FROM
         (SELECT queue FROM queue_message INDEXED BY queue_message_parked
          WHERE mesh_id = ? AND state = 'parked' LIMIT ?) GROUP BY queue ORDER BY queue`,
    )
    .all(meshId, limit);
}
