// Queues on PostgreSQL. A transaction that leases, settles or revives locks the queue's row, so that competing consumers come
// one after the other, and the row of the caller's membership, so that a revocation either waits for the transaction or is
// seen by it. Accepts wait for neither.
import { limits } from "@claudemesh/protocol/messages/limits";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { expiredPerScan, movesOf, splitExpired } from "../../core/expired-leases.ts";
import { PageRoom } from "../../core/page-room.ts";
import { giveBack, messageAt, revive } from "../../core/queue-message.ts";
import { byHistory, type QueueMove } from "../../core/stored-queue-message.ts";
import type { ParkedItem, ParkedPageOutcome, QueueRefusal, ReviveOutcome } from "../../ports/queues.ts";
import { withItems } from "./queue-items.ts";
import { moveMessages, type QueueRef, selectByIds, selectExpired, selectHeldBy, selectParked } from "./queue-rows.ts";
import type { Reading } from "./stored-accepts.ts";

export async function insertQueue(
  tx: PostgresTransaction,
  meshId: string,
  queue: { id: string; maxDeliveries: number; createdBy: string },
  nowMs: number,
): Promise<"created" | "exists" | "different"> {
  const created = await tx.execute(
    `INSERT INTO mesh.queue (mesh_id, id, max_deliveries, created_by, created_at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING`,
    [meshId, queue.id, queue.maxDeliveries, queue.createdBy, new Date(nowMs)],
  );
  if (created === 1) return "created";
  return (await selectMaxDeliveries(tx, meshId, queue.id)) === queue.maxDeliveries ? "exists" : "different";
}

export async function countQueues(db: Reading, meshId: string, upTo: number): Promise<number> {
  const counted =
    "SELECT count(*)::int AS n FROM (SELECT FROM mesh.queue WHERE mesh_id = $1 LIMIT $2) AS those_counted";
  const [row] = await db.query<{ n: number }>(counted, [meshId, upTo]);
  return row?.n ?? 0;
}

/** Undefined where there is no such queue. */
export async function selectMaxDeliveries(
  db: Reading,
  meshId: string,
  queue: string,
  lock: "" | "FOR NO KEY UPDATE" = "",
): Promise<number | undefined> {
  const [row] = await db.query<{ max_deliveries: number }>(
    `SELECT max_deliveries FROM mesh.queue WHERE mesh_id = $1 AND id = $2 ${lock}`,
    [meshId, queue],
    lock === "" ? "queue" : "queue_lock",
  );
  return row?.max_deliveries;
}

/**
 * Which of these are live members, and the bound on deliveries where the queue exists. Both stay locked until the transaction
 * ends. `name` is for connections whose plans are generic.
 */
export async function openQueue(
  tx: PostgresTransaction,
  { meshId, queue }: QueueRef,
  members: readonly string[],
  name?: string,
): Promise<{ readonly live: ReadonlySet<string>; readonly maxDeliveries: number | undefined }> {
  const [live, maxDeliveries] = await Promise.all([
    // In one order, so that two transactions that wait for a revocation do not wait for each other.
    tx.query<{ pubkey: string }>(
      `SELECT m.pubkey FROM unnest($2::text[]) AS a (pubkey)
       CROSS JOIN LATERAL (
         SELECT pubkey FROM mesh.member WHERE mesh_id = $1 AND pubkey = a.pubkey AND revoked_at IS NULL FOR SHARE) AS m`,
      [meshId, [...new Set(members)].sort()],
      name,
    ),
    selectMaxDeliveries(tx, meshId, queue, "FOR NO KEY UPDATE"),
  ]);
  return { live: new Set(live.map(({ pubkey }) => pubkey)), maxDeliveries };
}

/** Why a caller may do nothing here: it is no live member, or there is no such queue. */
export function refusalOf({ live }: { readonly live: ReadonlySet<string> }, member: string): QueueRefusal {
  return { type: live.has(member) ? "queue_not_found" : "not_a_member" };
}

export async function selectParkedPage(
  db: Reading,
  query: { meshId: string; queue: string; after: number; limit: number },
  nowMs: number,
): Promise<ParkedPageOutcome> {
  const { meshId, queue, after, limit } = query;
  const maxDeliveries = await selectMaxDeliveries(db, meshId, queue);
  if (maxDeliveries === undefined) return { type: "queue_not_found" };
  const expired = splitExpired(await selectExpired(db, query, nowMs, expiredPerScan), maxDeliveries, nowMs);
  if (expired.isFull) return { type: "too_many_expired" };
  const unwritten = expired.parked.map(({ from }) => from).filter(({ historyId }) => historyId > after);
  const rows = [...(await selectParked(db, meshId, queue, after, limit)), ...unwritten].sort(byHistory);
  const items: ParkedItem[] = [];
  const room = new PageRoom();
  let readUpTo = after;
  for await (const [row, item] of withItems(db, meshId, rows.slice(0, limit))) {
    const message = messageAt(row.message, maxDeliveries, nowMs);
    if (message.state === "parked" && item !== undefined) {
      const parkedItem = { ...item, deliveries: message.deliveries, parked_at: message.parkedAtMs };
      if (!room.take(parkedItem)) return { type: "page", items, nextAfter: readUpTo };
      items.push(parkedItem);
    }
    readUpTo = row.historyId;
  }
  return { type: "page", items, nextAfter: rows.length >= limit ? readUpTo : undefined };
}

/** Writes down what became of expired leases, of as many as one scan reads. */
export async function writeExpired(tx: PostgresTransaction, { meshId, queue }: QueueRef, nowMs: number): Promise<void> {
  const maxDeliveries = await selectMaxDeliveries(tx, meshId, queue, "FOR NO KEY UPDATE");
  if (maxDeliveries === undefined) return;
  const rows = await selectExpired(tx, { meshId, queue }, nowMs, expiredPerScan);
  await moveMessages(tx, movesOf(splitExpired(rows, maxDeliveries, nowMs), [], maxDeliveries, nowMs));
}

export async function reviveMessages(
  tx: PostgresTransaction,
  request: { meshId: string; queue: string; member: string; brokerMessageIds: readonly string[] },
  nowMs: number,
): Promise<ReviveOutcome> {
  const { meshId, queue, member } = request;
  const opened = await openQueue(tx, { meshId, queue }, [member]);
  const { live, maxDeliveries } = opened;
  if (maxDeliveries === undefined || !live.has(member)) return refusalOf(opened, member);
  const ids = [...new Set(request.brokerMessageIds)];
  const rows = await selectByIds(tx, meshId, queue, ids);
  const unknown = ids.filter((id) => !rows.has(id));
  if (unknown.length > 0) return { type: "message_not_found", unknown };
  const moves = [...rows.values()].flatMap((from): QueueMove[] => {
    const message = messageAt(from.message, maxDeliveries, nowMs);
    return message.state === "parked" ? [{ from, to: revive(message) }] : [];
  });
  await moveMessages(tx, moves);
  return { type: "revived", revived: moves.length };
}

/** Gives back up to `limit` messages that a former member holds; returns how many. */
export async function endLeases(
  tx: PostgresTransaction,
  meshId: string,
  holder: string,
  nowMs: number,
  limit: number,
): Promise<number> {
  const queues = new Set((await selectHeldBy(tx, meshId, holder, limit)).map((row) => row.queue));
  const maxDeliveries = new Map<string, number>();
  // In one order, so that two transactions that end the same memberships never wait for each other.
  for (const queue of [...queues].sort()) {
    const max = await selectMaxDeliveries(tx, meshId, queue, "FOR NO KEY UPDATE");
    maxDeliveries.set(queue, max ?? limits.maxDeliveriesDefault);
  }
  const moves = (await selectHeldBy(tx, meshId, holder, limit)).flatMap((from): QueueMove[] => {
    const max = maxDeliveries.get(from.queue);
    return max === undefined ? [] : [{ from, to: giveBack(from.message, max, nowMs) }];
  });
  await moveMessages(tx, moves);
  return moves.length;
}
