// Queues on SQLite: creating, leasing, settling, parking and reviving. Everything that changes something runs in a
// transaction of the group commit, whose write lock lets competing consumers lease one after the other.
import assert from "node:assert/strict";
import { isLiveMember } from "@claudemesh/members/sqlite";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { expiredPerScan, type LeaseAttempt, movesOf, splitExpired } from "../../core/expired-leases.ts";
import { PageRoom } from "../../core/page-room.ts";
import { expireMessage, giveBack, grantLease, type LeaseTerms, messageAt, revive } from "../../core/queue-message.ts";
import { decideSettle } from "../../core/settle-decision.ts";
import { byHistory, type QueueMoment, type QueueMove, type QueueRow } from "../../core/stored-queue-message.ts";
import type {
  LeasedItem,
  LeaseOutcome,
  LeaseRequest,
  ParkedItem,
  ParkedPageOutcome,
  QueueRefusal,
  ReviveOutcome,
  Settlement,
  SettleOutcome,
  SettleRequest,
} from "../../ports/queues.ts";
import {
  moveMessages,
  selectExpired,
  selectHeld,
  selectHeldBy,
  selectParked,
  selectQueueMessage,
  selectReady,
} from "./queue-rows.ts";
import { selectItem } from "./stored-items.ts";

export function insertQueue(
  tx: Sqlite,
  meshId: string,
  queue: { id: string; maxDeliveries: number; createdBy: string },
  nowMs: number,
): "created" | "exists" | "different" {
  const stored = selectMaxDeliveries(tx, meshId, queue.id);
  if (stored !== undefined) return stored === queue.maxDeliveries ? "exists" : "different";
  tx.sql("INSERT INTO queue (mesh_id, id, max_deliveries, created_by, created_at) VALUES (?, ?, ?, ?, ?)").run(
    meshId,
    queue.id,
    queue.maxDeliveries,
    queue.createdBy,
    nowMs,
  );
  return "created";
}

/** Undefined where there is no such queue. */
export function selectMaxDeliveries(db: Sqlite, meshId: string, queue: string): number | undefined {
  return db
    .sql<{ max_deliveries: number }>("SELECT max_deliveries FROM queue WHERE mesh_id = ? AND id = ?")
    .get(meshId, queue)?.max_deliveries;
}

export function countQueues(db: Sqlite, meshId: string, upTo: number): number {
  const counted = "SELECT count(*) AS n FROM (SELECT 1 FROM queue WHERE mesh_id = ? LIMIT ?)";
  return db.sql<{ n: number }>(counted).get(meshId, upTo)?.n ?? 0;
}

/** A queue as a live member may use it. */
function openQueue(tx: Sqlite, meshId: string, queue: string, member: string): number | QueueRefusal {
  if (!isLiveMember(tx, meshId, member)) return { type: "not_a_member" };
  return selectMaxDeliveries(tx, meshId, queue) ?? { type: "queue_not_found" };
}

export function leaseMessages(tx: Sqlite, request: LeaseRequest, nowMs: number): LeaseAttempt {
  const { meshId, queue, holder, leaseToken } = request;
  const maxDeliveries = openQueue(tx, meshId, queue, holder);
  if (typeof maxDeliveries !== "number") return maxDeliveries;
  const existing = selectLease(tx, request);
  if (existing !== undefined) return repeatLease(tx, request, existing, nowMs);

  const terms = { holder, leaseToken, expiresAtMs: nowMs + request.leaseSeconds * 1000 };
  const { items, mayFindMore } = leaseNext(tx, { meshId, queue, maxDeliveries, nowMs }, request.max, terms);
  if (items.length === 0) return { type: mayFindMore ? "retry" : "empty" };
  insertLease(tx, request, nowMs, terms.expiresAtMs);
  return { type: "leased", items, leaseToken, expiresAtMs: terms.expiresAtMs };
}

/** `mayFindMore`: another scan may find messages that this one did not reach. */
function leaseNext(
  tx: Sqlite,
  at: QueueMoment,
  max: number,
  terms: LeaseTerms,
): { readonly items: LeasedItem[]; readonly mayFindMore: boolean } {
  const { meshId, queue, maxDeliveries, nowMs } = at;
  const expired = splitExpired(selectExpired(tx, at, expiredPerScan), maxDeliveries, nowMs);
  const available = [...selectReady(tx, meshId, queue, max), ...expired.deliverable].sort(byHistory);
  const items: LeasedItem[] = [];
  const moves: QueueMove[] = [];
  const room = new PageRoom();
  for (const from of available.slice(0, max)) {
    const message = messageAt(from.message, maxDeliveries, nowMs);
    assert(message.state === "ready", "a message that is not available was selected");
    const item = selectItem(tx, meshId, from.historyId);
    if (item === undefined) {
      moves.push({ from, to: expireMessage(message, nowMs) });
      continue;
    }
    const leased = grantLease(message, terms);
    const leasedItem = { ...item, deliveries: leased.deliveries };
    if (!room.take(leasedItem)) break;
    moves.push({ from, to: leased });
    items.push(leasedItem);
  }
  moveMessages(tx, movesOf(expired, moves, maxDeliveries, nowMs));
  return { items, mayFindMore: available.length > 0 || expired.isFull };
}

/** Writes down what became of expired leases, of as many as one scan reads. */
export function writeExpired(tx: Sqlite, { meshId, queue }: { meshId: string; queue: string }, nowMs: number): void {
  const maxDeliveries = selectMaxDeliveries(tx, meshId, queue);
  if (maxDeliveries === undefined) return;
  const rows = selectExpired(tx, { meshId, queue, nowMs }, expiredPerScan);
  moveMessages(tx, movesOf(splitExpired(rows, maxDeliveries, nowMs), [], maxDeliveries, nowMs));
}

type LeaseRow = { lease_token: string; max_messages: number; lease_seconds: number; expires_at: number };

function selectLease(tx: Sqlite, request: LeaseRequest): LeaseRow | undefined {
  return tx
    .sql<LeaseRow>(
      `SELECT lease_token, max_messages, lease_seconds, expires_at FROM queue_lease
       WHERE mesh_id = ? AND queue = ? AND holder_pubkey = ? AND lease_request_id = ?`,
    )
    .get(request.meshId, request.queue, request.holder, request.leaseRequestId);
}

function insertLease(tx: Sqlite, request: LeaseRequest, nowMs: number, expiresAtMs: number): void {
  tx.sql(
    `INSERT INTO queue_lease (mesh_id, queue, holder_pubkey, lease_request_id, lease_token, max_messages,
       lease_seconds, leased_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    request.meshId,
    request.queue,
    request.holder,
    request.leaseRequestId,
    request.leaseToken,
    request.max,
    request.leaseSeconds,
    nowMs,
    expiresAtMs,
  );
}

/** The answer to a request whose lease exists already. */
function repeatLease(tx: Sqlite, request: LeaseRequest, existing: LeaseRow, nowMs: number): LeaseOutcome {
  if (existing.max_messages !== request.max || existing.lease_seconds !== request.leaseSeconds)
    return { type: "different" };
  if (existing.expires_at <= nowMs) return { type: "lease_lost" };
  const held = selectHeld(tx, request.meshId, request.holder, existing.lease_token);
  const items = held.flatMap(({ historyId, message }): LeasedItem[] => {
    const item = selectItem(tx, request.meshId, historyId);
    return item === undefined ? [] : [{ ...item, deliveries: message.deliveries }];
  });
  return { type: "leased", items, leaseToken: existing.lease_token, expiresAtMs: existing.expires_at };
}

export function settleMessages(tx: Sqlite, request: SettleRequest, nowMs: number): SettleOutcome {
  const { meshId, queue, holder, leaseToken } = request;
  const maxDeliveries = openQueue(tx, meshId, queue, holder);
  if (typeof maxDeliveries !== "number") return maxDeliveries;
  const held = selectHeld(tx, meshId, holder, leaseToken);
  const before = selectSettlements(tx, request);
  const decided = decideSettle(request, held, before, { meshId, queue, maxDeliveries, nowMs });
  if (decided.type === "lease_lost") return decided;
  moveMessages(tx, decided.moves);
  for (const { from } of decided.moves) insertSettlement(tx, request, from, nowMs);
  return { type: "settled", settlements: decided.settlements };
}

function selectSettlements(tx: Sqlite, request: SettleRequest): Map<string, Settlement> {
  const select = tx.sql<{ settlement: Settlement }>(
    `SELECT settlement FROM queue_settlement
     WHERE mesh_id = ? AND queue = ? AND lease_token = ? AND broker_message_id = ? AND holder_pubkey = ?`,
  );
  const settlements = new Map<string, Settlement>();
  for (const id of request.brokerMessageIds) {
    const row = select.get(request.meshId, request.queue, request.leaseToken, id, request.holder);
    if (row !== undefined) settlements.set(id, row.settlement);
  }
  return settlements;
}

function insertSettlement(tx: Sqlite, request: SettleRequest, row: QueueRow, nowMs: number): void {
  const { meshId, queue, leaseToken, holder, settlement } = request;
  tx.sql(
    `INSERT INTO queue_settlement
       (mesh_id, queue, lease_token, broker_message_id, holder_pubkey, settlement, settled_at, history_id)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(meshId, queue, leaseToken, row.brokerMessageId, holder, settlement, nowMs, row.historyId);
}

export function selectParkedPage(
  db: Sqlite,
  query: { meshId: string; queue: string; after: number; limit: number },
  nowMs: number,
): ParkedPageOutcome {
  const { meshId, queue, after, limit } = query;
  const maxDeliveries = selectMaxDeliveries(db, meshId, queue);
  if (maxDeliveries === undefined) return { type: "queue_not_found" };
  const expired = splitExpired(selectExpired(db, { meshId, queue, nowMs }, expiredPerScan), maxDeliveries, nowMs);
  if (expired.isFull) return { type: "too_many_expired" };
  const unwritten = expired.parked.map(({ from }) => from).filter(({ historyId }) => historyId > after);
  const rows = [...selectParked(db, meshId, queue, after, limit), ...unwritten].sort(byHistory);
  const items: ParkedItem[] = [];
  const room = new PageRoom();
  let readUpTo = after;
  for (const row of rows.slice(0, limit)) {
    const message = messageAt(row.message, maxDeliveries, nowMs);
    const item = selectItem(db, meshId, row.historyId);
    if (message.state === "parked" && item !== undefined) {
      const parkedItem = { ...item, deliveries: message.deliveries, parked_at: message.parkedAtMs };
      if (!room.take(parkedItem)) return { type: "page", items, nextAfter: readUpTo };
      items.push(parkedItem);
    }
    readUpTo = row.historyId;
  }
  return { type: "page", items, nextAfter: rows.length >= limit ? readUpTo : undefined };
}

export function reviveMessages(
  tx: Sqlite,
  request: { meshId: string; queue: string; member: string; brokerMessageIds: readonly string[] },
  nowMs: number,
): ReviveOutcome {
  const { meshId, queue, member } = request;
  const maxDeliveries = openQueue(tx, meshId, queue, member);
  if (typeof maxDeliveries !== "number") return maxDeliveries;
  const unknown: string[] = [];
  const moves: QueueMove[] = [];
  for (const id of new Set(request.brokerMessageIds)) {
    const from = selectById(tx, meshId, queue, id);
    if (from === undefined) {
      unknown.push(id);
      continue;
    }
    const message = messageAt(from.message, maxDeliveries, nowMs);
    if (message.state === "parked") moves.push({ from, to: revive(message) });
  }
  if (unknown.length > 0) return { type: "message_not_found", unknown };
  moveMessages(tx, moves);
  return { type: "revived", revived: moves.length };
}

function selectById(tx: Sqlite, meshId: string, queue: string, brokerMessageId: string): QueueRow | undefined {
  const message = tx
    .sql<{ history_id: number }>(
      `SELECT history_id FROM message_queue
       WHERE mesh_id = ? AND id = ? AND destination_kind = 'queue' AND destination_ref = ?`,
    )
    .get(meshId, brokerMessageId, queue);
  return message && selectQueueMessage(tx, meshId, queue, message.history_id);
}

/** Gives back up to `limit` messages that a former member holds; returns how many. */
export function endLeases(tx: Sqlite, meshId: string, holder: string, nowMs: number, limit: number): number {
  const moves = selectHeldBy(tx, meshId, holder, limit).map((from): QueueMove => {
    const maxDeliveries = selectMaxDeliveries(tx, meshId, from.queue) ?? limits.maxDeliveriesDefault;
    return { from, to: giveBack(from.message, maxDeliveries, nowMs) };
  });
  moveMessages(tx, moves);
  return moves.length;
}
