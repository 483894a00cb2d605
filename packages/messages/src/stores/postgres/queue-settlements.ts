// Settling what was leased on PostgreSQL, for all calls of one batch: one transaction, in which they are decided one after
// the other.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { isUuid } from "@claudemesh/storage/postgres-text";
import { decideSettle } from "../../core/settle-decision.ts";
import type { QueueMove } from "../../core/stored-queue-message.ts";
import type { Settlement, SettleOutcome, SettleRequest } from "../../ports/queues.ts";
import { checkedAtCommit } from "./checked-at-commit.ts";
import { heldKey, moveMessages, type QueueRef, selectHeldUnder } from "./queue-rows.ts";
import { openQueue, refusalOf } from "./queues.ts";

export type SettleCall = { readonly request: SettleRequest; readonly nowMs: number };

type SettledCall = { readonly call: SettleCall; readonly moves: readonly QueueMove[] };

/** One outcome for each call, in their order. */
export async function settleMessages(
  tx: PostgresTransaction,
  at: QueueRef,
  calls: readonly SettleCall[],
): Promise<SettleOutcome[]> {
  const requests = calls.map(({ request }) => request);
  // All are sent at once, and PostgreSQL runs them in this order: the queue is locked before the others read.
  const [opened, held, before] = await Promise.all([
    openQueue(
      tx,
      at,
      requests.map(({ holder }) => holder),
      "queue_members",
    ),
    selectHeldUnder(tx, at.meshId, requests),
    selectSettlements(tx, at, requests),
  ]);
  const { maxDeliveries } = opened;
  if (maxDeliveries === undefined) return requests.map(({ holder }) => refusalOf(opened, holder));
  const settled: SettledCall[] = [];
  const outcomes = calls.map((call): SettleOutcome => {
    const { request, nowMs } = call;
    const key = heldKey(request);
    if (!opened.live.has(request.holder)) return refusalOf(opened, request.holder);
    const settledBefore = before.get(key) ?? new Map<string, Settlement>();
    const moment = { ...at, maxDeliveries, nowMs };
    const decision = decideSettle(request, held.get(key) ?? [], settledBefore, moment);
    if (decision.type === "lease_lost") return decision;
    settled.push({ call, moves: decision.moves });
    // A later call of this batch with the same token finds them settled.
    before.set(key, new Map([...settledBefore, ...decision.settlements]));
    return { type: "settled", settlements: decision.settlements };
  });
  const moves = settled.flatMap((each) => each.moves);
  // COMMIT is sent right behind these two, and fails if one of them does.
  void checkedAtCommit(moveMessages(tx, moves, "queue_move"));
  void checkedAtCommit(insertSettlements(tx, at, settled));
  return outcomes;
}

type SettlementRow = { holder: string; token: string; broker_message_id: string; settlement: Settlement };

/** By holder and token. */
async function selectSettlements(
  tx: PostgresTransaction,
  { meshId, queue }: QueueRef,
  requests: readonly SettleRequest[],
): Promise<Map<string, Map<string, Settlement>>> {
  const asks = requests.flatMap(({ holder, leaseToken, brokerMessageIds }) =>
    brokerMessageIds.filter(isUuid).map((id) => ({ holder, leaseToken, id })),
  );
  const rows = await tx.query<SettlementRow>(
    `SELECT DISTINCT a.holder, a.token, s.broker_message_id, s.settlement
     FROM unnest($3::text[], $4::text[], $5::uuid[]) AS a (holder, token, id)
     CROSS JOIN LATERAL (
       SELECT broker_message_id, settlement FROM mesh.queue_settlement
       WHERE mesh_id = $1 AND queue = $2 AND lease_token = a.token AND broker_message_id = a.id
         AND holder_pubkey = a.holder OFFSET 0) AS s`,
    [
      meshId,
      queue,
      asks.map(({ holder }) => holder),
      asks.map(({ leaseToken }) => leaseToken),
      asks.map(({ id }) => id),
    ],
    "queue_settlements",
  );
  const byToken = Map.groupBy(rows, ({ holder, token }) => heldKey({ holder, leaseToken: token }));
  return new Map(
    [...byToken].map(([key, each]) => [key, new Map(each.map((row) => [row.broker_message_id, row.settlement]))]),
  );
}

function insertSettlements(
  tx: PostgresTransaction,
  { meshId, queue }: QueueRef,
  settled: readonly SettledCall[],
): Promise<unknown> {
  const rows = settled.flatMap(({ call, moves }) => moves.map(({ from }) => ({ ...call, from })));
  if (rows.length === 0) return Promise.resolve();
  return tx.execute(
    `INSERT INTO mesh.queue_settlement
       (mesh_id, queue, lease_token, broker_message_id, holder_pubkey, settlement, settled_at, history_id)
     SELECT $1, $2, s.* FROM unnest($3::text[], $4::uuid[], $5::text[], $6::text[], $7::timestamptz[], $8::bigint[]) AS s`,
    [
      meshId,
      queue,
      rows.map(({ request }) => request.leaseToken),
      rows.map(({ from }) => from.brokerMessageId),
      rows.map(({ request }) => request.holder),
      rows.map(({ request }) => request.settlement),
      rows.map(({ nowMs }) => new Date(nowMs)),
      rows.map(({ from }) => from.historyId),
    ],
    "insert_queue_settlements",
  );
}
