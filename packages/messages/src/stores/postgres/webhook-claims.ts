// Claiming deliveries of webhooks on PostgreSQL. Webhooks are asked in the order of their turns, so that finding the next one
// costs the same whatever others have waiting; those that another broker is asking are left to it. core/webhook-claims.ts
// decides which deliveries are claimed.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { chooseFairly, webhooksToAsk } from "../../core/webhook-claims.ts";
import type { Claim, ClaimTerms } from "../../ports/webhooks.ts";
import { type DueRow, duePerWebhook, type TurnRow, toClaimed } from "../webhook-rows.ts";
import type { Reading } from "./stored-accepts.ts";
import { selectItems } from "./stored-items.ts";
import { createdByOwner } from "./webhooks.ts";

type DueDelivery = { readonly turn: TurnRow; readonly row: DueRow };

/** The webhooks whose turn it is: those that do not fail, and behind them those that do. */
async function selectTurns(db: Reading, terms: ClaimTerms, nowMs: number, lock: string): Promise<TurnRow[]> {
  const { healthy, failing } = webhooksToAsk(terms);
  const turns: TurnRow[] = [];
  for (const query of [
    { failing: false, ...healthy },
    { failing: true, ...failing },
  ]) {
    if (query.limit === 0) continue;
    const rows = await db.query<TurnRow>(
      `SELECT w.mesh_id, mesh.name AS mesh_name, w.id AS webhook, w.incarnation, w.url, w.secret, w.failing
       FROM mesh.webhook w JOIN mesh.mesh ON mesh.id = w.mesh_id
       WHERE w.deleted_at IS NULL AND w.failing = $1 AND w.turn_at <= $2 AND ${createdByOwner}
         AND NOT w.incarnation = ANY ($3::text[])
       ORDER BY w.turn_at LIMIT $4 ${lock}`,
      [query.failing, new Date(nowMs), query.except, query.limit],
    );
    turns.push(...rows);
  }
  return turns;
}

export async function hasTurn(db: Reading, terms: ClaimTerms, nowMs: number): Promise<boolean> {
  return (await selectTurns(db, terms, nowMs, "")).length > 0;
}

export async function claimDeliveries(tx: PostgresTransaction, terms: ClaimTerms, nowMs: number): Promise<Claim> {
  const turns = await selectTurns(tx, terms, nowMs, "FOR UPDATE OF w SKIP LOCKED");
  const rows = Map.groupBy(await selectDue(tx, turns, nowMs), (row) => row.incarnation);
  const due = turns.flatMap((turn) => (rows.get(turn.incarnation) ?? []).map((row) => ({ turn, row })));
  const webhooks = turns.map((turn) => ({
    incarnation: turn.incarnation,
    failing: Boolean(turn.failing),
    due: due.filter((each) => each.turn === turn && each.row.there),
  }));
  const chosen = chooseFairly(webhooks, terms);
  const items = new Map<string, Awaited<ReturnType<typeof selectItems>>>();
  for (const [meshId, group] of Map.groupBy(chosen, ({ turn }) => turn.mesh_id)) {
    const historyIds = group.map(({ row }) => row.history_id);
    items.set(meshId, await selectItems(tx, meshId, historyIds));
  }
  const itemOf = ({ turn, row }: DueDelivery) => items.get(turn.mesh_id)?.get(row.history_id);
  // Retention may also have removed a message between the two statements.
  const gone = [...due.filter(({ row }) => !row.there), ...chosen.filter((each) => itemOf(each) === undefined)];
  await updateRows(tx, "state = 'expired', due_at = NULL, settled_at = $4", gone, [new Date(nowMs)]);
  const tried = chosen.filter((each) => itemOf(each) !== undefined);
  const times = [new Date(nowMs), new Date(nowMs + terms.leaseMs)];
  await updateRows(tx, "attempts = d.attempts + 1, last_attempt_at = $4, due_at = $5, held_until = $5", tried, times);
  await moveTurns(tx, turns, nowMs);
  const claimed = tried.flatMap((each) => {
    const item = itemOf(each);
    return item === undefined ? [] : [toClaimed(each.turn, each.row.attempts + 1, item)];
  });
  return { claimed, expired: gone.length };
}

function selectDue(
  tx: PostgresTransaction,
  turns: readonly TurnRow[],
  nowMs: number,
): Promise<(DueRow & { readonly incarnation: string })[]> {
  return tx.query(
    `SELECT d.incarnation, d.history_id, d.attempts, EXISTS (SELECT 1 FROM mesh.topic_message t
       WHERE t.mesh_id = d.mesh_id AND t.id = d.broker_message_id) AS there
     FROM unnest($1::uuid[], $2::text[]) AS k (mesh_id, incarnation) CROSS JOIN LATERAL (
       SELECT * FROM mesh.webhook_delivery
       WHERE mesh_id = k.mesh_id AND incarnation = k.incarnation AND state = 'pending' AND due_at <= $3
       ORDER BY due_at, history_id LIMIT ${duePerWebhook} FOR UPDATE SKIP LOCKED) d
     ORDER BY d.due_at, d.history_id`,
    [...keysOf(turns), new Date(nowMs)],
  );
}

async function updateRows(
  tx: PostgresTransaction,
  change: string,
  deliveries: readonly DueDelivery[],
  times: readonly Date[],
): Promise<void> {
  if (deliveries.length === 0) return;
  const historyIds = deliveries.map(({ row }) => row.history_id);
  await tx.execute(
    `UPDATE mesh.webhook_delivery d SET ${change}
     FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS k (mesh_id, incarnation, history_id)
     WHERE d.mesh_id = k.mesh_id AND d.incarnation = k.incarnation AND d.history_id = k.history_id
       AND d.state = 'pending'`,
    [...keysOf(deliveries.map(({ turn }) => turn)), historyIds, ...times],
  );
}

/** Sets the turn to when the next delivery is due or, where that has passed, behind webhooks that were not asked now. */
async function moveTurns(tx: PostgresTransaction, turns: readonly TurnRow[], nowMs: number): Promise<void> {
  if (turns.length === 0) return;
  await tx.execute(
    `UPDATE mesh.webhook w SET turn_at = (SELECT greatest(d.due_at, $3) FROM mesh.webhook_delivery d
       WHERE d.mesh_id = w.mesh_id AND d.incarnation = w.incarnation AND d.state = 'pending' ORDER BY d.due_at LIMIT 1)
     FROM unnest($1::uuid[], $2::text[]) AS k (mesh_id, incarnation)
     WHERE w.mesh_id = k.mesh_id AND w.incarnation = k.incarnation`,
    [...keysOf(turns), new Date(nowMs)],
  );
}

function keysOf(turns: readonly TurnRow[]): [string[], string[]] {
  return [turns.map((turn) => turn.mesh_id), turns.map((turn) => turn.incarnation)];
}
