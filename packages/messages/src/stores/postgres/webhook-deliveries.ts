// Deliveries of webhooks on PostgreSQL: written from committed history, settled, forgotten; claims are in
// webhook-claims.ts. Writing moves the webhook's written_up_to in the same transaction, so that a crash repeats nothing and
// forgets nothing; rows that another broker has locked are left to it. A transaction that changes both locks the webhook first.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { JudgedTry } from "../../core/webhook-delivery.ts";
import type { WebhookStore } from "../../ports/webhooks.ts";
import { openDeliveriesMax } from "../webhook-rows.ts";
import type { Reading } from "./stored-accepts.ts";
import { asNew, bringTurnForward, createdByOwner, mayBeReplayed, type WebhookKey } from "./webhooks.ts";

const rowsPerStep = 500;

type Behind = {
  mesh_id: string;
  incarnation: string;
  topics: string[] | null;
  written_up_to: number;
  last_history_id: number;
};

/** Webhooks that have history left to read and room for deliveries. */
const behind = `mesh.webhook w JOIN mesh.mesh_history_counter c ON c.mesh_id = w.mesh_id
  WHERE w.deleted_at IS NULL AND c.last_history_id > w.written_up_to AND ${createdByOwner}
    AND NOT EXISTS (SELECT 1 FROM mesh.webhook_delivery d
      WHERE d.mesh_id = w.mesh_id AND d.incarnation = w.incarnation AND d.state = 'pending'
      LIMIT 1 OFFSET ${openDeliveriesMax - 1})`;

/** Checks first, so that nothing is locked while there is nothing to do. */
export async function isBehind(db: Reading): Promise<boolean> {
  return (await db.query(`SELECT 1 FROM ${behind} LIMIT 1`)).length > 0;
}

export async function writeNextDeliveries(tx: PostgresTransaction, nowMs: number): Promise<boolean> {
  const [next] = await tx.query<Behind>(
    `SELECT w.mesh_id, w.incarnation, w.topics, w.written_up_to, c.last_history_id FROM ${behind}
     ORDER BY w.stepped_at, w.mesh_id, w.incarnation LIMIT 1 FOR UPDATE OF w SKIP LOCKED`,
  );
  if (next === undefined) return false;
  const { mesh_id: meshId, incarnation, written_up_to: after } = next;
  const upTo = Math.min(next.last_history_id, after + rowsPerStep);
  const now = new Date(nowMs);
  // Rows exist already only where history is gone through again.
  const written = await tx.execute(
    `INSERT INTO mesh.webhook_delivery AS d
       (mesh_id, incarnation, history_id, broker_message_id, state, attempts, due_at)
     SELECT h.mesh_id, $2, h.history_id, h.broker_message_id, 'pending', 0, $6 FROM mesh.message_history h
     WHERE h.mesh_id = $1 AND h.history_id > $3 AND h.history_id <= $4 AND h.destination_kind = 'topic'
       AND EXISTS (SELECT 1 FROM mesh.topic_message t WHERE t.mesh_id = h.mesh_id AND t.id = h.broker_message_id)
       AND ($5::text[] IS NULL OR h.destination_ref = ANY ($5::text[]))
     ORDER BY h.history_id
     ON CONFLICT (mesh_id, incarnation, history_id)
       DO UPDATE SET ${asNew("excluded.due_at")} WHERE ${mayBeReplayed("$6")}`,
    [meshId, incarnation, after, upTo, next.topics, now],
  );
  if (written > 0) await bringTurnForward(tx, { meshId, incarnation }, nowMs);
  await tx.execute(
    "UPDATE mesh.webhook SET written_up_to = $3, stepped_at = $4 WHERE mesh_id = $1 AND incarnation = $2",
    [meshId, incarnation, upTo, now],
  );
  return true;
}

export async function settleDelivery(
  tx: PostgresTransaction,
  delivery: Parameters<WebhookStore["settle"]>[0],
  judged: JudgedTry,
  nowMs: number,
): Promise<void> {
  const key = [delivery.meshId, delivery.incarnation, delivery.historyId];
  if (judged.state === "delivered") {
    await setFailing(tx, delivery, false);
    await tx.execute(
      `UPDATE mesh.webhook_delivery
       SET state = 'delivered', due_at = NULL, settled_at = $4, last_status = $5, last_error = NULL
       WHERE mesh_id = $1 AND incarnation = $2 AND history_id = $3 AND state = 'pending'`,
      [...key, new Date(nowMs), judged.status],
    );
    return;
  }
  const pending = judged.state === "pending";
  if (pending) await bringTurnForward(tx, delivery, judged.dueAtMs);
  if (!pending || judged.failed) await setFailing(tx, delivery, true);
  await tx.execute(
    `UPDATE mesh.webhook_delivery SET state = $5, due_at = $6, held_until = NULL, settled_at = $7, last_status = $8, last_error = $9
     WHERE mesh_id = $1 AND incarnation = $2 AND history_id = $3 AND state = 'pending' AND attempts = $4`,
    [
      ...key,
      delivery.attempt,
      judged.state,
      pending ? new Date(judged.dueAtMs) : null,
      pending ? null : new Date(nowMs),
      judged.status ?? null,
      judged.error,
    ],
  );
}

async function setFailing(
  tx: PostgresTransaction,
  { meshId, incarnation }: WebhookKey,
  failing: boolean,
): Promise<void> {
  await tx.execute(
    "UPDATE mesh.webhook SET failing = $3 WHERE mesh_id = $1 AND incarnation = $2 AND failing <> $3::boolean",
    [meshId, incarnation, failing],
  );
}

export async function pruneDeliveries(
  tx: PostgresTransaction,
  settledBeforeMs: number,
  limit: number,
): Promise<number> {
  let pruned = 0;
  for (const state of ["delivered", "expired"]) {
    pruned += await tx.execute(
      `DELETE FROM mesh.webhook_delivery WHERE (mesh_id, incarnation, history_id) IN (
         SELECT mesh_id, incarnation, history_id FROM mesh.webhook_delivery
         WHERE state = $1 AND settled_at < $2 ORDER BY settled_at LIMIT $3 FOR UPDATE SKIP LOCKED)`,
      [state, new Date(settledBeforeMs), limit - pruned],
    );
  }
  return pruned + (await pruneDeleted(tx, limit - pruned));
}

async function pruneDeleted(tx: PostgresTransaction, limit: number): Promise<number> {
  if (limit <= 0) return 0;
  const [gone] = await tx.query<{ mesh_id: string; incarnation: string }>(
    `SELECT mesh_id, incarnation FROM mesh.webhook WHERE deleted_at IS NOT NULL
     ORDER BY deleted_at LIMIT 1 FOR UPDATE SKIP LOCKED`,
  );
  if (gone === undefined) return 0;
  const key = [gone.mesh_id, gone.incarnation];
  const removed = await tx.execute(
    `DELETE FROM mesh.webhook_delivery WHERE mesh_id = $1 AND incarnation = $2 AND history_id = ANY (ARRAY(
       SELECT history_id FROM mesh.webhook_delivery WHERE mesh_id = $1 AND incarnation = $2 LIMIT $3))`,
    [...key, limit],
  );
  if (removed === limit) return removed;
  await tx.execute("DELETE FROM mesh.webhook WHERE mesh_id = $1 AND incarnation = $2", key);
  return removed + 1;
}

export async function countDeliveries(db: Reading): ReturnType<WebhookStore["counts"]> {
  const rows = await db.query<{ state: "pending" | "parked"; n: number }>(
    `SELECT state, count(*) AS n FROM mesh.webhook_delivery WHERE state IN ('pending', 'parked') GROUP BY state`,
  );
  const count = (state: string) => rows.find((row) => row.state === state)?.n ?? 0;
  return { pending: count("pending"), parked: count("parked") };
}
