// Leasing from a queue on PostgreSQL, for all calls of one batch. They share a transaction, in which they are decided one after
// the other, as they would be in transactions of their own. Whatever has to be read is read once for all of them.
import assert from "node:assert/strict";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { expiredPerScan, type LeaseAttempt, movesOf, splitExpired } from "../../core/expired-leases.ts";
import { PageRoom } from "../../core/page-room.ts";
import { expireMessage, grantLease, messageAt } from "../../core/queue-message.ts";
import type { QueueMove } from "../../core/stored-queue-message.ts";
import type { LeasedItem, LeaseOutcome, LeaseRequest } from "../../ports/queues.ts";
import { checkedAtCommit } from "./checked-at-commit.ts";
import { inHistoryOrder, type RowWithItem, selectReady, withItems } from "./queue-items.ts";
import { heldKey, moveMessages, type QueueRef, selectExpired, selectHeldUnder } from "./queue-rows.ts";
import { openQueue, refusalOf } from "./queues.ts";

export type LeaseCall = { readonly request: LeaseRequest; readonly nowMs: number };

/** A lease that is being filled with messages, for the call that asked for it. */
type LeaseDraft = { readonly call: LeaseCall; readonly items: LeasedItem[]; readonly room: PageRoom };

/** One outcome for each call, in their order. */
export async function leaseMessages(
  tx: PostgresTransaction,
  at: QueueRef,
  calls: readonly LeaseCall[],
): Promise<LeaseAttempt[]> {
  // A lease that has expired by the earliest clock of the batch has expired for every call of it.
  const nowMs = Math.min(...calls.map((call) => call.nowMs));
  const most = calls.reduce((sum, { request }) => sum + request.max, 0);
  const requests = calls.map(({ request }) => request);
  // All are sent at once, and PostgreSQL runs them in this order: the queue is locked before the others read.
  const [opened, existing, ready, expiredRows] = await Promise.all([
    openQueue(
      tx,
      at,
      requests.map(({ holder }) => holder),
      "queue_members",
    ),
    selectLeases(tx, at, requests),
    selectReady(tx, at, 0, most),
    selectExpired(tx, at, nowMs, expiredPerScan, "queue_run_out"),
  ]);
  const { maxDeliveries } = opened;
  if (maxDeliveries === undefined) return requests.map(({ holder }) => refusalOf(opened, holder));

  // A request and its retry in the same batch share one draft.
  const drafts = new Map<string, LeaseDraft>();
  for (const call of calls) {
    const key = keyOf(call.request);
    const isNew = !existing.has(key) && !drafts.has(key) && opened.live.has(call.request.holder);
    if (isNew) drafts.set(key, { call, items: [], room: new PageRoom() });
  }
  const expired = splitExpired(expiredRows, maxDeliveries, nowMs);
  const available = inHistoryOrder(tx, at, ready, expired.deliverable, most);
  const filling = await fillLeases(maxDeliveries, available, [...drafts.values()]);
  const nothing: LeaseAttempt = { type: filling.lostMessages || expired.isFull ? "retry" : "empty" };
  const outcomes = await Promise.all(
    calls.map((call): LeaseAttempt | Promise<LeaseAttempt> => {
      const key = keyOf(call.request);
      const lease = existing.get(key);
      if (!opened.live.has(call.request.holder)) return refusalOf(opened, call.request.holder);
      if (lease !== undefined) return repeatLease(tx, call, lease);
      const draft = drafts.get(key);
      if (draft === undefined || draft.items.length === 0) return nothing;
      return isSame(call.request, draft.call.request) ? outcomeOf(draft) : { type: "different" };
    }),
  );
  const filled = [...drafts.values()].filter(({ items }) => items.length > 0);
  const moves = drafts.size === 0 ? [] : movesOf(expired, filling.moves, maxDeliveries, nowMs);
  // COMMIT is sent right behind these two, and fails if one of them does.
  void checkedAtCommit(moveMessages(tx, moves, "queue_move"));
  void checkedAtCommit(insertLeases(tx, at, filled));
  return outcomes;
}

type Terms = Pick<LeaseRequest, "max" | "leaseSeconds">;
const isSame = (a: Terms, b: Terms) => a.max === b.max && a.leaseSeconds === b.leaseSeconds;

function outcomeOf({ call, items }: LeaseDraft): LeaseOutcome {
  return { type: "leased", items, leaseToken: call.request.leaseToken, expiresAtMs: endOf(call) };
}

/** Fills one draft after the other, in history order. `lostMessages`: retention had removed some of the messages. */
async function fillLeases(
  maxDeliveries: number,
  available: AsyncIterable<RowWithItem>,
  drafts: readonly LeaseDraft[],
): Promise<{ readonly moves: QueueMove[]; readonly lostMessages: boolean }> {
  const moves: QueueMove[] = [];
  let lostMessages = false;
  let next = 0;
  if (drafts.length === 0) return { moves, lostMessages };
  for await (const [from, item] of available) {
    if (item === undefined) {
      const { nowMs } = (drafts[next] as LeaseDraft).call;
      moves.push({ from, to: expireMessage(messageAt(from.message, maxDeliveries, nowMs), nowMs) });
      lostMessages = true;
      continue;
    }
    for (let fits = false; !fits && next < drafts.length; ) {
      const draft = drafts[next] as LeaseDraft;
      const { request, nowMs } = draft.call;
      const message = messageAt(from.message, maxDeliveries, nowMs);
      assert(message.state === "ready", "a message that is not available was selected");
      const leased = grantLease(message, {
        holder: request.holder,
        leaseToken: request.leaseToken,
        expiresAtMs: endOf(draft.call),
      });
      const leasedItem = { ...item, deliveries: leased.deliveries };
      fits = draft.room.take(leasedItem);
      if (fits) {
        moves.push({ from, to: leased });
        draft.items.push(leasedItem);
      }
      if (!fits || draft.items.length === request.max) next += 1;
    }
    if (next >= drafts.length) break;
  }
  return { moves, lostMessages };
}

const endOf = ({ request, nowMs }: LeaseCall) => nowMs + request.leaseSeconds * 1000;
const keyOf = ({ holder, leaseRequestId }: Pick<LeaseRequest, "holder" | "leaseRequestId">) =>
  `${holder}/${leaseRequestId}`;

type LeaseRow = {
  holder_pubkey: string;
  lease_request_id: string;
  lease_token: string;
  max_messages: number;
  lease_seconds: number;
  expires_at: Date;
};

/** The leases that these requests have made already, by holder and request. */
async function selectLeases(
  tx: PostgresTransaction,
  { meshId, queue }: QueueRef,
  requests: readonly LeaseRequest[],
): Promise<Map<string, LeaseRow>> {
  const rows = await tx.query<LeaseRow>(
    `SELECT l.* FROM unnest($3::text[], $4::text[]) AS a (holder, request)
     CROSS JOIN LATERAL (
       SELECT holder_pubkey, lease_request_id, lease_token, max_messages, lease_seconds, expires_at
       FROM mesh.queue_lease
       WHERE mesh_id = $1 AND queue = $2 AND holder_pubkey = a.holder AND lease_request_id = a.request OFFSET 0) AS l`,
    [meshId, queue, requests.map(({ holder }) => holder), requests.map(({ leaseRequestId }) => leaseRequestId)],
    "queue_leases",
  );
  return new Map(rows.map((row) => [keyOf({ holder: row.holder_pubkey, leaseRequestId: row.lease_request_id }), row]));
}

function insertLeases(
  tx: PostgresTransaction,
  { meshId, queue }: QueueRef,
  drafts: readonly LeaseDraft[],
): Promise<unknown> {
  if (drafts.length === 0) return Promise.resolve();
  const calls = drafts.map(({ call }) => call);
  return tx.execute(
    `INSERT INTO mesh.queue_lease (mesh_id, queue, holder_pubkey, lease_request_id, lease_token, max_messages,
       lease_seconds, leased_at, expires_at)
     SELECT $1, $2, l.* FROM unnest($3::text[], $4::text[], $5::text[], $6::int[], $7::int[], $8::timestamptz[],
       $9::timestamptz[]) AS l`,
    [
      meshId,
      queue,
      calls.map(({ request }) => request.holder),
      calls.map(({ request }) => request.leaseRequestId),
      calls.map(({ request }) => request.leaseToken),
      calls.map(({ request }) => request.max),
      calls.map(({ request }) => request.leaseSeconds),
      calls.map(({ nowMs }) => new Date(nowMs)),
      calls.map((call) => new Date(endOf(call))),
    ],
    "insert_queue_leases",
  );
}

/** The answer to a request whose lease exists already. */
async function repeatLease(
  tx: PostgresTransaction,
  { request, nowMs }: LeaseCall,
  existing: LeaseRow,
): Promise<LeaseOutcome> {
  const terms = { max: existing.max_messages, leaseSeconds: existing.lease_seconds };
  if (!isSame(request, terms)) return { type: "different" };
  const expiresAtMs = existing.expires_at.getTime();
  if (expiresAtMs <= nowMs) return { type: "lease_lost" };
  const lease = { holder: request.holder, leaseToken: existing.lease_token };
  const held = (await selectHeldUnder(tx, request.meshId, [lease])).get(heldKey(lease)) ?? [];
  const items: LeasedItem[] = [];
  for await (const [{ message }, item] of withItems(tx, request.meshId, held, { name: "queue_items" })) {
    if (item !== undefined) items.push({ ...item, deliveries: message.deliveries });
  }
  return { type: "leased", items, leaseToken: existing.lease_token, expiresAtMs };
}
