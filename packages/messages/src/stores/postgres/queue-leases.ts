// Leasing from a queue on PostgreSQL, for all who ask at once: one transaction, in which they come one after the other as
// they would in transactions of their own. Everything that has to be read for all of them is asked for in one go.
import assert from "node:assert/strict";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { PageRoom } from "../../core/page-room.ts";
import { expireMessage, handOut, messageAt } from "../../core/queue-message.ts";
import { movesOf, runOutPerLook, sortRunOut } from "../../core/run-out-leases.ts";
import type { QueueMove } from "../../core/stored-queue-message.ts";
import type { LeasedItem, LeaseOutcome, LeaseRequest } from "../../ports/queues.ts";
import { inHistoryOrder, type RowWithItem, selectReady, withItems } from "./queue-items.ts";
import { heldKey, moveMessages, type QueueRef, selectHeldUnder, selectRunOut } from "./queue-rows.ts";
import { openQueue, refusalOf } from "./queues.ts";
import { unawaited } from "./unawaited.ts";

export type AskedLease = { readonly request: LeaseRequest; readonly nowMs: number };

/** One lease as it fills. */
type Hand = { readonly asked: AskedLease; readonly items: LeasedItem[]; readonly room: PageRoom };

/**
 * One outcome for each, in their order. Undefined: what it found was parked, or has lost its bodies to retention. That is
 * written now, and there may be more: it has to look again.
 */
export async function leaseMessages(
  tx: PostgresTransaction,
  at: QueueRef,
  asked: readonly AskedLease[],
): Promise<(LeaseOutcome | undefined)[]> {
  // By the clock of whoever asked first, what has run out has run out for the others too.
  const nowMs = Math.min(...asked.map((each) => each.nowMs));
  const most = asked.reduce((sum, { request }) => sum + request.max, 0);
  const requests = asked.map(({ request }) => request);
  // All on their way at once: the queue is locked before the others look.
  const [opened, made, ready, ended] = await Promise.all([
    openQueue(
      tx,
      at,
      requests.map(({ holder }) => holder),
      "queue_members",
    ),
    selectLeases(tx, at, requests),
    selectReady(tx, at, 0, most),
    selectRunOut(tx, at, nowMs, runOutPerLook, "queue_run_out"),
  ]);
  const { maxDeliveries } = opened;
  if (maxDeliveries === undefined) return requests.map(({ holder }) => refusalOf(opened, holder));

  // Two tries of one request that come together have one hand.
  const hands = new Map<string, Hand>();
  for (const each of asked) {
    const key = keyOf(each.request);
    const isNew = !made.has(key) && !hands.has(key) && opened.live.has(each.request.holder);
    if (isNew) hands.set(key, { asked: each, items: [], room: new PageRoom() });
  }
  const runOut = sortRunOut(ended, maxDeliveries, nowMs);
  const available = inHistoryOrder(tx, at, ready, runOut.deliverable, most);
  const dealt = await deal(maxDeliveries, available, [...hands.values()]);
  const nothing = dealt.lost || runOut.isFull ? undefined : ({ type: "empty" } as const);
  const outcomes = await Promise.all(
    asked.map((each): LeaseOutcome | undefined | Promise<LeaseOutcome> => {
      const key = keyOf(each.request);
      const lease = made.get(key);
      if (!opened.live.has(each.request.holder)) return refusalOf(opened, each.request.holder);
      if (lease !== undefined) return repeatLease(tx, each, lease);
      const hand = hands.get(key);
      if (hand === undefined || hand.items.length === 0) return nothing;
      return isSame(each.request, hand.asked.request) ? handedOut(hand) : { type: "different" };
    }),
  );
  const filled = [...hands.values()].filter(({ items }) => items.length > 0);
  const moves = hands.size === 0 ? [] : movesOf(runOut, dealt.moves, maxDeliveries, nowMs);
  // COMMIT travels behind them, and whoever commits hears of a failure from it.
  void unawaited(moveMessages(tx, moves, "queue_move"));
  void unawaited(insertLeases(tx, at, filled));
  return outcomes;
}

type Terms = Pick<LeaseRequest, "max" | "leaseSeconds">;
const isSame = (a: Terms, b: Terms) => a.max === b.max && a.leaseSeconds === b.leaseSeconds;

function handedOut({ asked, items }: Hand): LeaseOutcome {
  return { type: "leased", items, leaseToken: asked.request.leaseToken, expiresAtMs: endOf(asked) };
}

/** In history order, to one after the other. */
async function deal(
  maxDeliveries: number,
  available: AsyncIterable<RowWithItem>,
  hands: readonly Hand[],
): Promise<{ readonly moves: QueueMove[]; readonly lost: boolean }> {
  const moves: QueueMove[] = [];
  let lost = false;
  let next = 0;
  if (hands.length === 0) return { moves, lost };
  for await (const [from, item] of available) {
    if (item === undefined) {
      const { nowMs } = (hands[next] as Hand).asked;
      moves.push({ from, to: expireMessage(messageAt(from.message, maxDeliveries, nowMs), nowMs) });
      lost = true;
      continue;
    }
    for (let taken = false; !taken && next < hands.length; ) {
      const hand = hands[next] as Hand;
      const { request, nowMs } = hand.asked;
      const message = messageAt(from.message, maxDeliveries, nowMs);
      assert(message.state === "ready", "a message that is not available was found to be");
      const leased = handOut(message, {
        holder: request.holder,
        leaseToken: request.leaseToken,
        expiresAtMs: endOf(hand.asked),
      });
      const leasedItem = { ...item, deliveries: leased.deliveries };
      taken = hand.room.take(leasedItem);
      if (taken) {
        moves.push({ from, to: leased });
        hand.items.push(leasedItem);
      }
      if (!taken || hand.items.length === request.max) next += 1;
    }
    if (next >= hands.length) break;
  }
  return { moves, lost };
}

const endOf = ({ request, nowMs }: AskedLease) => nowMs + request.leaseSeconds * 1000;
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

/** Those that were made already, by holder and request. */
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

function insertLeases(tx: PostgresTransaction, { meshId, queue }: QueueRef, hands: readonly Hand[]): Promise<unknown> {
  if (hands.length === 0) return Promise.resolve();
  const asked = hands.map((hand) => hand.asked);
  return tx.execute(
    `INSERT INTO mesh.queue_lease (mesh_id, queue, holder_pubkey, lease_request_id, lease_token, max_messages,
       lease_seconds, leased_at, expires_at)
     SELECT $1, $2, l.* FROM unnest($3::text[], $4::text[], $5::text[], $6::int[], $7::int[], $8::timestamptz[],
       $9::timestamptz[]) AS l`,
    [
      meshId,
      queue,
      asked.map(({ request }) => request.holder),
      asked.map(({ request }) => request.leaseRequestId),
      asked.map(({ request }) => request.leaseToken),
      asked.map(({ request }) => request.max),
      asked.map(({ request }) => request.leaseSeconds),
      asked.map(({ nowMs }) => new Date(nowMs)),
      asked.map((each) => new Date(endOf(each))),
    ],
    "insert_queue_leases",
  );
}

/** The answer of a lease request that has made its lease. */
async function repeatLease(
  tx: PostgresTransaction,
  { request, nowMs }: AskedLease,
  made: LeaseRow,
): Promise<LeaseOutcome> {
  const terms = { max: made.max_messages, leaseSeconds: made.lease_seconds };
  if (!isSame(request, terms)) return { type: "different" };
  const expiresAtMs = made.expires_at.getTime();
  if (expiresAtMs <= nowMs) return { type: "lease_lost" };
  const lease = { holder: request.holder, leaseToken: made.lease_token };
  const held = (await selectHeldUnder(tx, request.meshId, [lease])).get(heldKey(lease)) ?? [];
  const items: LeasedItem[] = [];
  for await (const [{ message }, item] of withItems(tx, request.meshId, held, { name: "queue_items" })) {
    if (item !== undefined) items.push({ ...item, deliveries: message.deliveries });
  }
  return { type: "leased", items, leaseToken: made.lease_token, expiresAtMs };
}
