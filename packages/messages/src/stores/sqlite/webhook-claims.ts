// Claiming deliveries of webhooks on SQLite. Webhooks are asked in the order of their turns, so that finding the next one costs
// the same whatever others have waiting. core/webhook-claims.ts decides which deliveries are claimed.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { chooseFairly, webhooksToAsk } from "../../core/webhook-claims.ts";
import type { Claim, ClaimTerms } from "../../ports/webhooks.ts";
import { type DueRow, duePerWebhook, type TurnRow, toClaimed } from "../webhook-rows.ts";
import { selectItem } from "./stored-items.ts";
import { createdByOwner } from "./webhooks.ts";

type DueDelivery = { readonly turn: TurnRow; readonly row: DueRow };

/** The webhooks whose turn it is: those that do not fail, and behind them those that do. */
export function selectTurns(db: Sqlite, terms: ClaimTerms, nowMs: number): TurnRow[] {
  const { healthy, failing } = webhooksToAsk(terms);
  return [
    { failing: 0, ...healthy },
    { failing: 1, ...failing },
  ].flatMap((query) =>
    query.limit === 0
      ? []
      : db
          .sql<TurnRow>(
            `SELECT w.mesh_id, mesh.name AS mesh_name, w.id AS webhook, w.incarnation, w.url, w.secret, w.failing
             FROM webhook w INDEXED BY webhook_turn JOIN mesh ON mesh.id = w.mesh_id
             WHERE w.deleted_at IS NULL AND w.failing = ? AND w.turn_at <= ? AND ${createdByOwner}
               AND w.incarnation NOT IN (SELECT value FROM json_each(?))
             ORDER BY w.turn_at LIMIT ?`,
          )
          .all(query.failing, nowMs, JSON.stringify(query.except), query.limit),
  );
}

export function claimDeliveries(tx: Sqlite, terms: ClaimTerms, nowMs: number): Claim {
  const turns = selectTurns(tx, terms, nowMs);
  const due = turns.flatMap((turn) => selectDue(tx, turn, nowMs).map((row) => ({ turn, row })));
  const webhooks = turns.map((turn) => ({
    incarnation: turn.incarnation,
    failing: Boolean(turn.failing),
    due: due.filter((each) => each.turn === turn && each.row.there),
  }));
  const chosen = chooseFairly(webhooks, terms).map((each) => {
    const item = selectItem(tx, each.turn.mesh_id, each.row.history_id);
    return { ...each, item };
  });
  const gone = [...due.filter(({ row }) => !row.there), ...chosen.filter(({ item }) => item === undefined)];
  for (const each of gone) expire(tx, each, nowMs);
  const claimed = chosen.flatMap(({ turn, row, item }) => {
    if (item === undefined) return [];
    beginTry(tx, { turn, row }, terms, nowMs);
    return [toClaimed(turn, row.attempts + 1, item)];
  });
  for (const turn of turns) moveTurn(tx, turn, nowMs);
  return { claimed, expired: gone.length };
}

function selectDue(tx: Sqlite, turn: TurnRow, nowMs: number): DueRow[] {
  return tx
    .sql<DueRow>(
      `SELECT d.history_id, d.attempts, EXISTS (SELECT 1 FROM topic_message t
         WHERE t.mesh_id = d.mesh_id AND t.id = d.broker_message_id) AS there
       FROM webhook_delivery d INDEXED BY webhook_delivery_due
       WHERE d.mesh_id = ? AND d.incarnation = ? AND d.state = 'pending' AND d.due_at <= ?
       ORDER BY d.due_at, d.history_id LIMIT ${duePerWebhook}`,
    )
    .all(turn.mesh_id, turn.incarnation, nowMs);
}

function expire(tx: Sqlite, { turn, row }: DueDelivery, nowMs: number): void {
  tx.sql(
    `UPDATE webhook_delivery SET state = 'expired', due_at = NULL, settled_at = ?
     WHERE mesh_id = ? AND incarnation = ? AND history_id = ? AND state = 'pending'`,
  ).run(nowMs, turn.mesh_id, turn.incarnation, row.history_id);
}

function beginTry(tx: Sqlite, { turn, row }: DueDelivery, { leaseMs }: ClaimTerms, nowMs: number): void {
  tx.sql(
    `UPDATE webhook_delivery SET attempts = attempts + 1, due_at = ?1, held_until = ?1, last_attempt_at = ?2
     WHERE mesh_id = ?3 AND incarnation = ?4 AND history_id = ?5 AND state = 'pending'`,
  ).run(nowMs + leaseMs, nowMs, turn.mesh_id, turn.incarnation, row.history_id);
}

/** Sets the turn to when the next delivery is due or, where that has passed, behind webhooks that were not asked now. */
function moveTurn(tx: Sqlite, { mesh_id: meshId, incarnation }: TurnRow, nowMs: number): void {
  tx.sql(
    `UPDATE webhook SET turn_at = (SELECT max(d.due_at, ?1) FROM webhook_delivery d INDEXED BY webhook_delivery_due
       WHERE d.mesh_id = ?2 AND d.incarnation = ?3 AND d.state = 'pending' ORDER BY d.due_at LIMIT 1)
     WHERE mesh_id = ?2 AND incarnation = ?3`,
  ).run(nowMs, meshId, incarnation);
}
