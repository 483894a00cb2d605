// Queues on PostgreSQL. Whoever leases, settles or revives holds the queue's row, so that competing consumers come one
// after the other, and the caller's membership, so that a revocation waits for him or is seen. Accepts wait for neither.
import assert from "node:assert/strict";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { isUuid } from "@claudemesh/storage/postgres-text";
import { PageRoom } from "../../core/page-room.ts";
import { expireMessage, giveBack, handOut, messageAt, revive } from "../../core/queue-message.ts";
import { decideSettle } from "../../core/settle-decision.ts";
import { byHistory, type QueueMoment, type QueueMove, type QueueRow } from "../../core/stored-queue-message.ts";
import type {
  LeasedItem,
  LeaseOutcome,
  LeaseRequest,
  ParkedItem,
  ParkedPage,
  QueueRefusal,
  ReviveOutcome,
  Settlement,
  SettleOutcome,
  SettleRequest,
} from "../../ports/queues.ts";
import {
  moveMessages,
  selectByIds,
  selectHeld,
  selectHeldBy,
  selectParked,
  selectReady,
  selectRunOut,
} from "./queue-rows.ts";
import type { Reading } from "./stored-accepts.ts";
import { selectItems } from "./stored-items.ts";

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

/** Undefined: no such queue. */
export async function selectMaxDeliveries(
  db: Reading,
  meshId: string,
  queue: string,
  lock: "" | "FOR NO KEY UPDATE" = "",
): Promise<number | undefined> {
  const [row] = await db.query<{ max_deliveries: number }>(
    `SELECT max_deliveries FROM mesh.queue WHERE mesh_id = $1 AND id = $2 ${lock}`,
    [meshId, queue],
  );
  return row?.max_deliveries;
}

/** A queue as a live member may use it, held with his membership until the transaction ends. */
async function openQueue(
  tx: PostgresTransaction,
  meshId: string,
  queue: string,
  member: string,
): Promise<number | QueueRefusal> {
  const live = await tx.query(
    "SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 AND revoked_at IS NULL FOR SHARE",
    [meshId, member],
  );
  if (live.length === 0) return { type: "not_a_member" };
  return (await selectMaxDeliveries(tx, meshId, queue, "FOR NO KEY UPDATE")) ?? { type: "queue_not_found" };
}

/** Messages past their last delivery that one call writes down as parked; they count as parked before it. */
const parkPerLease = 1_000;
/** How often one call looks again when all it found had lost their bodies. */
const roundsMax = 10;
/** Bodies in the memory at once, beside those of the answer. */
const itemsPerRead = 32;

export async function leaseMessages(
  tx: PostgresTransaction,
  request: LeaseRequest,
  nowMs: number,
): Promise<LeaseOutcome> {
  const { meshId, queue, holder, leaseToken } = request;
  const maxDeliveries = await openQueue(tx, meshId, queue, holder);
  if (typeof maxDeliveries !== "number") return maxDeliveries;
  const made = await selectLease(tx, request);
  if (made !== undefined) return repeatLease(tx, request, made, nowMs);

  const at: QueueMoment = { meshId, queue, maxDeliveries, nowMs };
  const toPark = await selectRunOut(tx, at, "to_park", 0, parkPerLease);
  await moveMessages(
    tx,
    toPark.map((from) => ({ from, to: messageAt(from.message, maxDeliveries, nowMs) })),
  );
  const expiresAtMs = nowMs + request.leaseSeconds * 1000;
  let items: LeasedItem[] | undefined;
  for (let round = 0; items === undefined && round < roundsMax; round++) {
    items = await handOutNext(tx, at, request, expiresAtMs);
  }
  if (items === undefined || items.length === 0) return { type: "empty" };
  await insertLease(tx, request, nowMs, expiresAtMs);
  return { type: "leased", items, leaseToken, expiresAtMs };
}

/** Undefined: what came next has lost its bodies to retention and is settled now; look again. */
async function handOutNext(
  tx: PostgresTransaction,
  at: QueueMoment,
  { max, holder, leaseToken }: LeaseRequest,
  expiresAtMs: number,
): Promise<LeasedItem[] | undefined> {
  const { meshId, queue, maxDeliveries, nowMs } = at;
  const ready = await selectReady(tx, meshId, queue, max);
  const available = [...ready, ...(await selectRunOut(tx, at, "deliverable", 0, max))].sort(byHistory).slice(0, max);
  const items: LeasedItem[] = [];
  const moves: QueueMove[] = [];
  const room = new PageRoom();
  for await (const [from, item] of withItems(tx, meshId, available)) {
    const message = messageAt(from.message, maxDeliveries, nowMs);
    assert(message.state === "ready", "a message that is not available was found to be");
    if (item === undefined) {
      moves.push({ from, to: expireMessage(message, nowMs) });
      continue;
    }
    const leased = handOut(message, { holder, leaseToken, expiresAtMs });
    const leasedItem = { ...item, deliveries: leased.deliveries };
    if (!room.take(leasedItem)) break;
    moves.push({ from, to: leased });
    items.push(leasedItem);
  }
  await moveMessages(tx, moves);
  return items.length === 0 && available.length > 0 ? undefined : items;
}

/** Each row with its message, or undefined where retention has removed that; read a few at a time. */
async function* withItems<Row extends QueueRow>(
  db: Reading,
  meshId: string,
  rows: readonly Row[],
): AsyncGenerator<[Row, HistoryItem | undefined]> {
  for (let from = 0; from < rows.length; from += itemsPerRead) {
    const some = rows.slice(from, from + itemsPerRead);
    const items = await selectItems(
      db,
      meshId,
      some.map((row) => row.historyId),
    );
    for (const row of some) yield [row, items.get(row.historyId)];
  }
}

type LeaseRow = { lease_token: string; max_messages: number; lease_seconds: number; expires_at: Date };

async function selectLease(tx: PostgresTransaction, request: LeaseRequest): Promise<LeaseRow | undefined> {
  const [row] = await tx.query<LeaseRow>(
    `SELECT lease_token, max_messages, lease_seconds, expires_at FROM mesh.queue_lease
     WHERE mesh_id = $1 AND queue = $2 AND holder_pubkey = $3 AND lease_request_id = $4`,
    [request.meshId, request.queue, request.holder, request.leaseRequestId],
  );
  return row;
}

async function insertLease(
  tx: PostgresTransaction,
  request: LeaseRequest,
  nowMs: number,
  expiresAtMs: number,
): Promise<void> {
  const { meshId, queue, holder, leaseRequestId, leaseToken, max, leaseSeconds } = request;
  await tx.execute(
    `INSERT INTO mesh.queue_lease (mesh_id, queue, holder_pubkey, lease_request_id, lease_token, max_messages,
       lease_seconds, leased_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [meshId, queue, holder, leaseRequestId, leaseToken, max, leaseSeconds, new Date(nowMs), new Date(expiresAtMs)],
  );
}

/** The answer of a lease request that has made its lease. */
async function repeatLease(
  tx: PostgresTransaction,
  request: LeaseRequest,
  made: LeaseRow,
  nowMs: number,
): Promise<LeaseOutcome> {
  if (made.max_messages !== request.max || made.lease_seconds !== request.leaseSeconds) return { type: "different" };
  const expiresAtMs = made.expires_at.getTime();
  if (expiresAtMs <= nowMs) return { type: "lease_lost" };
  const held = await selectHeld(tx, request.meshId, request.holder, made.lease_token);
  const items: LeasedItem[] = [];
  for await (const [{ message }, item] of withItems(tx, request.meshId, held)) {
    if (item !== undefined) items.push({ ...item, deliveries: message.deliveries });
  }
  return { type: "leased", items, leaseToken: made.lease_token, expiresAtMs };
}

export async function settleMessages(
  tx: PostgresTransaction,
  request: SettleRequest,
  nowMs: number,
): Promise<SettleOutcome> {
  const { meshId, queue, holder, leaseToken } = request;
  const maxDeliveries = await openQueue(tx, meshId, queue, holder);
  if (typeof maxDeliveries !== "number") return maxDeliveries;
  const held = await selectHeld(tx, meshId, holder, leaseToken);
  const before = await selectSettlements(tx, request);
  const decided = decideSettle(request, held, before, { meshId, queue, maxDeliveries, nowMs });
  if (decided.type === "lease_lost") return decided;
  await moveMessages(tx, decided.moves);
  await insertSettlements(tx, request, decided.moves, nowMs);
  return { type: "settled", settlements: decided.settlements };
}

async function selectSettlements(tx: PostgresTransaction, request: SettleRequest): Promise<Map<string, Settlement>> {
  const rows = await tx.query<{ broker_message_id: string; settlement: Settlement }>(
    `SELECT broker_message_id, settlement FROM mesh.queue_settlement
     WHERE mesh_id = $1 AND queue = $2 AND lease_token = $3 AND holder_pubkey = $4
       AND broker_message_id = ANY ($5::uuid[])`,
    [request.meshId, request.queue, request.leaseToken, request.holder, request.brokerMessageIds.filter(isUuid)],
  );
  return new Map(rows.map((row) => [row.broker_message_id, row.settlement]));
}

async function insertSettlements(
  tx: PostgresTransaction,
  request: SettleRequest,
  moves: readonly QueueMove[],
  nowMs: number,
): Promise<void> {
  if (moves.length === 0) return;
  const { meshId, queue, leaseToken, holder, settlement } = request;
  const ids = moves.map(({ from }) => from.brokerMessageId);
  const historyIds = moves.map(({ from }) => from.historyId);
  await tx.execute(
    `INSERT INTO mesh.queue_settlement
       (mesh_id, queue, lease_token, broker_message_id, holder_pubkey, settlement, settled_at, history_id)
     SELECT $1, $2, $3, s.id, $5, $6, $7, s.history_id FROM unnest($4::uuid[], $8::bigint[]) AS s (id, history_id)`,
    [meshId, queue, leaseToken, ids, holder, settlement, new Date(nowMs), historyIds],
  );
}

export async function selectParkedPage(
  db: Reading,
  query: { meshId: string; queue: string; after: number; limit: number },
  nowMs: number,
): Promise<ParkedPage | undefined> {
  const { meshId, queue, after, limit } = query;
  const maxDeliveries = await selectMaxDeliveries(db, meshId, queue);
  if (maxDeliveries === undefined) return undefined;
  const rows = [
    ...(await selectParked(db, meshId, queue, after, limit)),
    ...(await selectRunOut(db, { meshId, queue, maxDeliveries, nowMs }, "to_park", after, limit)),
  ].sort(byHistory);
  const items: ParkedItem[] = [];
  const room = new PageRoom();
  let readUpTo = after;
  for await (const [row, item] of withItems(db, meshId, rows.slice(0, limit))) {
    const message = messageAt(row.message, maxDeliveries, nowMs);
    if (message.state === "parked" && item !== undefined) {
      const parkedItem = { ...item, deliveries: message.deliveries, parked_at: message.parkedAtMs };
      if (!room.take(parkedItem)) return { items, nextAfter: readUpTo };
      items.push(parkedItem);
    }
    readUpTo = row.historyId;
  }
  return { items, nextAfter: rows.length >= limit ? readUpTo : undefined };
}

export async function reviveMessages(
  tx: PostgresTransaction,
  request: { meshId: string; queue: string; member: string; brokerMessageIds: readonly string[] },
  nowMs: number,
): Promise<ReviveOutcome> {
  const { meshId, queue, member } = request;
  const maxDeliveries = await openQueue(tx, meshId, queue, member);
  if (typeof maxDeliveries !== "number") return maxDeliveries;
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
  // In one order, so that two who end the same memberships never wait for each other.
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
