// The queues of a mesh with what waits in each, on PostgreSQL. Every number is counted in an index that holds nothing else.
// Why: docs/decisions/0141.
import { beforeNul } from "@claudemesh/storage/postgres-text";
import { CountRoom, countedMax } from "../../core/count-room.ts";
import type { ParkedCount, QueueListPage, QueueSummary } from "../../ports/queues.ts";
import type { Reading } from "./stored-accepts.ts";

type Row = {
  id: string;
  max_deliveries: number;
  created_at: Date;
  ready: number;
  again: number;
  leased: number;
  parked: number;
  spent: number;
  oldest_at: Date | null;
};

/** In one statement: what a page may count at most follows from it and `countedMax`. */
const queuesPerStep = 10;

export async function selectQueues(
  db: Reading,
  { meshId, after, limit }: { meshId: string; after: string; limit: number },
  nowMs: number,
): Promise<QueueListPage> {
  const items: QueueSummary[] = [];
  const room = new CountRoom();
  for (let from = beforeNul(after); ; ) {
    const rowsWanted = Math.min(queuesPerStep, limit - items.length);
    const rows = await db.query<Row>(statement, [meshId, from, new Date(nowMs), rowsWanted, countedMax]);
    for (const row of rows) {
      const item = summaryOf(row);
      items.push(item);
      if (!room.take(item.depth, item.leased, item.parked)) return { items, nextAfter: row.id };
    }
    const last = rows.at(-1)?.id;
    if (last === undefined || rows.length < rowsWanted) return { items, nextAfter: undefined };
    if (items.length === limit) return { items, nextAfter: last };
    from = last;
  }
}

const counted = (name: string, where: string) =>
  `CROSS JOIN LATERAL (SELECT count(*)::int AS n, min(c.history_id) AS first FROM
     (SELECT m.history_id FROM mesh.queue_message m
      WHERE m.mesh_id = q.mesh_id AND m.queue = q.id AND ${where} LIMIT $5) AS c) AS ${name}`;

// A lease that has run out is written as leased; by now it is available again, or parked after its last delivery.
const statement = `
  SELECT q.id, q.max_deliveries, q.created_at, ready.n AS ready, again.n AS again, leased.n AS leased,
    parked.n AS parked, spent.n AS spent,
    (SELECT h.accepted_at FROM mesh.message_history h
     WHERE h.mesh_id = q.mesh_id AND h.history_id = least(ready.first, again.first)) AS oldest_at
  FROM (SELECT * FROM mesh.queue WHERE mesh_id = $1 AND id > $2 ORDER BY id LIMIT $4) AS q
  ${counted("ready", "m.state = 'ready'")}
  ${counted("parked", "m.state = 'parked'")}
  ${counted("leased", "m.state = 'leased' AND m.lease_expires_at > $3")}
  ${counted("again", "m.state = 'leased' AND m.lease_expires_at <= $3 AND m.deliveries < q.max_deliveries")}
  ${counted("spent", "m.state = 'leased' AND m.lease_expires_at <= $3 AND m.deliveries >= q.max_deliveries")}
  ORDER BY q.id`;

function summaryOf(row: Row): QueueSummary {
  return {
    id: row.id,
    maxDeliveries: row.max_deliveries,
    createdAtMs: row.created_at.getTime(),
    depth: Math.min(row.ready + row.again, countedMax),
    leased: row.leased,
    parked: Math.min(row.parked + row.spent, countedMax),
    oldestAtMs: row.oldest_at?.getTime(),
  };
}

/** Queues with parked messages, and how many of the first thousand are in each. */
export function countParked(db: Reading, meshId: string, limit: number): Promise<ParkedCount[]> {
  return db.query<ParkedCount>(
    `SELECT queue, count(*)::int AS parked FROM
       (SELECT queue FROM mesh.queue_message WHERE mesh_id = $1 AND state = 'parked' LIMIT $2) AS p
     GROUP BY queue ORDER BY queue`,
    [meshId, limit],
  );
}
