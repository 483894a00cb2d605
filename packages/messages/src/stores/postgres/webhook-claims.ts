// What brokers take of webhooks' deliveries, on PostgreSQL. Webhooks are asked in the order of their turns, so that
// finding the next one costs the same whatever others have waiting; those that another broker is asking are left to it.
// What is taken of whom is decided in core/webhook-claims.ts.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { chooseFairly, webhooksToAsk } from "../../core/webhook-claims.ts";
import type { Claim, ClaimTerms } from "../../ports/webhooks.ts";
import { type DueRow, dueLookedAt, type TurnRow, toClaimed } from "../webhook-rows.ts";
import type { Reading } from "./stored-accepts.ts";
import { selectItems } from "./stored-items.ts";
import { createdByOwner } from "./webhooks.ts";

type Taken = { readonly turn: TurnRow; readonly row: DueRow };

/** Whose turn it is: those that do not fail, and behind them those that do. */
async function selectTurns(db: Reading, terms: ClaimTerms, nowMs: number, lock: string): Promise<TurnRow[]> {
  const { healthy, failing } = webhooksToAsk(terms);
  const turns: TurnRow[] = [];
  for (const asked of [
    { failing: false, ...healthy },
    { failing: true, ...failing },
  ]) {
    if (asked.limit === 0) continue;
    const rows = await db.query<TurnRow>(
      `SELECT w.mesh_id, mesh.name AS mesh_name, w.id AS webhook, w.incarnation, w.url, w.secret, w.failing
       FROM mesh.webhook w JOIN mesh.mesh ON mesh.id = w.mesh_id
       WHERE w.deleted_at IS NULL AND w.failing = $1 AND w.turn_at <= $2 AND ${createdByOwner}
         AND NOT w.incarnation = ANY ($3::text[])
       ORDER BY w.turn_at LIMIT $4 ${lock}`,
      [asked.failing, new Date(nowMs), asked.passOver, asked.limit],
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
    due: due.filter((taken) => taken.turn === turn && taken.row.there),
  }));
  const chosen = chooseFairly(webhooks, terms);
  const items = new Map<string, Awaited<ReturnType<typeof selectItems>>>();
  for (const [meshId, taken] of Map.groupBy(chosen, ({ turn }) => turn.mesh_id)) {
    const historyIds = taken.map(({ row }) => row.history_id);
    items.set(meshId, await selectItems(tx, meshId, historyIds));
  }
  const itemOf = ({ turn, row }: Taken) => items.get(turn.mesh_id)?.get(row.history_id);
  // Also what went between two statements.
  const gone = [...due.filter(({ row }) => !row.there), ...chosen.filter((taken) => itemOf(taken) === undefined)];
  await updateRows(tx, "state = 'expired', due_at = NULL, settled_at = $4", gone, [new Date(nowMs)]);
  const tried = chosen.filter((taken) => itemOf(taken) !== undefined);
  const times = [new Date(nowMs), new Date(nowMs + terms.leaseMs)];
  await updateRows(tx, "attempts = d.attempts + 1, last_attempt_at = $4, due_at = $5, held_until = $5", tried, times);
  await moveTurns(tx, turns, nowMs);
  const claimed = tried.flatMap((taken) => {
    const item = itemOf(taken);
    return item === undefined ? [] : [toClaimed(taken.turn, taken.row.attempts + 1, item)];
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
       ORDER BY due_at, history_id LIMIT ${dueLookedAt} FOR UPDATE SKIP LOCKED) d
     ORDER BY d.due_at, d.history_id`,
    [...keysOf(turns), new Date(nowMs)],
  );
}

async function updateRows(
  tx: PostgresTransaction,
  change: string,
  taken: readonly Taken[],
  times: readonly Date[],
): Promise<void> {
  if (taken.length === 0) return;
  const historyIds = taken.map(({ row }) => row.history_id);
  await tx.execute(
    `UPDATE mesh.webhook_delivery d SET ${change}
     FROM unnest($1::uuid[], $2::text[], $3::bigint[]) AS k (mesh_id, incarnation, history_id)
     WHERE d.mesh_id = k.mesh_id AND d.incarnation = k.incarnation AND d.history_id = k.history_id
       AND d.state = 'pending'`,
    [...keysOf(taken.map(({ turn }) => turn)), historyIds, ...times],
  );
}

/** To when the next one is due, or, where that has passed, behind those that were not asked now. */
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
