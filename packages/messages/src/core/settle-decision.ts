// What a call that settles messages does: all of it or nothing, and the first settlement under a token stands.
// Why: docs/decisions/0031.
import type { Settlement, SettleOutcome, SettleRequest } from "../ports/queues.ts";
import { acknowledge, giveBack, type Leased } from "./queue-message.ts";
import type { QueueMoment, QueueMove, QueueRow } from "./stored-queue-message.ts";

type SettleDecision =
  | Extract<SettleOutcome, { type: "lease_lost" }>
  | (Extract<SettleOutcome, { type: "settled" }> & { readonly moves: readonly QueueMove[] });

/** `held` is written as leased under the request's token, live or not; `before` are its earlier settlements. */
export function decideSettle(
  request: Pick<SettleRequest, "brokerMessageIds" | "settlement">,
  held: readonly QueueRow<Leased>[],
  before: ReadonlyMap<string, Settlement>,
  { queue, maxDeliveries, nowMs }: QueueMoment,
): SettleDecision {
  const live = held.filter((row) => row.queue === queue && row.message.expiresAtMs > nowMs);
  const liveById = new Map(live.map((row) => [row.brokerMessageId, row]));
  const settlements = new Map<string, Settlement>();
  const moves: QueueMove[] = [];
  const lost: string[] = [];
  for (const id of new Set(request.brokerMessageIds)) {
    const settled = before.get(id);
    const from = liveById.get(id);
    settlements.set(id, settled ?? request.settlement);
    if (settled !== undefined) continue;
    if (from === undefined) lost.push(id);
    else if (request.settlement === "acked") moves.push({ from, to: acknowledge(from.message, nowMs) });
    else moves.push({ from, to: giveBack(from.message, maxDeliveries, nowMs) });
  }
  return lost.length > 0 ? { type: "lease_lost", lost } : { type: "settled", settlements, moves };
}
