// Deliveries of webhooks on SQLite: written from committed history, settled, forgotten; claims are in webhook-claims.ts.
// Writing moves the webhook's written_up_to in the same transaction, so that a crash repeats nothing and forgets nothing.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { JudgedTry } from "../../core/webhook-delivery.ts";
import type { WebhookStore } from "../../ports/webhooks.ts";
import { openDeliveriesMax } from "../webhook-rows.ts";
import { asNew, bringTurnForward, createdByOwner, mayBeReplayed, type WebhookKey } from "./webhooks.ts";

/** History rows that one step looks at: short enough that accepts do not notice. */
const rowsPerStep = 100;

type Behind = {
  mesh_id: string;
  incarnation: string;
  topics: string | null;
  written_up_to: number;
  last_history_id: number;
};

/** The webhook that has waited longest, of those that have history left to read and room for deliveries. */
export function selectBehind(db: Sqlite): Behind | undefined {
  return db
    .sql<Behind>(
      `SELECT w.mesh_id, w.incarnation, w.topics, w.written_up_to, c.last_history_id
       FROM webhook w JOIN mesh_history_counter c ON c.mesh_id = w.mesh_id
       WHERE w.deleted_at IS NULL AND c.last_history_id > w.written_up_to AND ${createdByOwner}
         AND NOT EXISTS (SELECT 1 FROM webhook_delivery d
           WHERE d.mesh_id = w.mesh_id AND d.incarnation = w.incarnation AND d.state = 'pending'
           LIMIT 1 OFFSET ${openDeliveriesMax - 1})
       ORDER BY w.stepped_at, w.mesh_id, w.incarnation LIMIT 1`,
    )
    .get();
}

export function writeNextDeliveries(tx: Sqlite, nowMs: number): boolean {
  const behind = selectBehind(tx);
  if (behind === undefined) return false;
  const { mesh_id: meshId, incarnation, topics, written_up_to: after } = behind;
  const upTo = Math.min(behind.last_history_id, after + rowsPerStep);
  // Rows exist already only where history is gone through again.
  const written = tx
    .sql(
      `INSERT INTO webhook_delivery (mesh_id, incarnation, history_id, broker_message_id, state, attempts, due_at)
     SELECT h.mesh_id, ?1, h.history_id, h.broker_message_id, 'pending', 0, ?2 FROM message_history h
     WHERE h.mesh_id = ?3 AND h.history_id > ?4 AND h.history_id <= ?5 AND h.destination_kind = 'topic'
       AND EXISTS (SELECT 1 FROM topic_message t WHERE t.mesh_id = h.mesh_id AND t.id = h.broker_message_id)
       AND (?6 IS NULL OR h.destination_ref IN (SELECT value FROM json_each(?6)))
     ON CONFLICT DO UPDATE SET ${asNew("excluded.due_at")} WHERE ${mayBeReplayed("?2")}`,
    )
    .run(incarnation, nowMs, meshId, after, upTo, topics).changes;
  if (written > 0) bringTurnForward(tx, { meshId, incarnation }, nowMs);
  tx.sql("UPDATE webhook SET written_up_to = ?, stepped_at = ? WHERE mesh_id = ? AND incarnation = ?").run(
    upTo,
    nowMs,
    meshId,
    incarnation,
  );
  return true;
}

export function settleDelivery(
  tx: Sqlite,
  delivery: Parameters<WebhookStore["settle"]>[0],
  judged: JudgedTry,
  nowMs: number,
): void {
  const key = [delivery.meshId, delivery.incarnation, delivery.historyId];
  if (judged.state === "delivered") {
    tx.sql(
      `UPDATE webhook_delivery SET state = 'delivered', due_at = NULL, settled_at = ?, last_status = ?, last_error = NULL
       WHERE mesh_id = ? AND incarnation = ? AND history_id = ? AND state = 'pending'`,
    ).run(nowMs, judged.status, ...key);
    setFailing(tx, delivery, 0);
    return;
  }
  if (judged.state === "parked" || judged.failed) setFailing(tx, delivery, 1);
  const dueAtMs = judged.state === "pending" ? judged.dueAtMs : null;
  if (dueAtMs !== null) bringTurnForward(tx, delivery, dueAtMs);
  tx.sql(
    `UPDATE webhook_delivery SET state = ?, due_at = ?, held_until = NULL, settled_at = ?, last_status = ?, last_error = ?
     WHERE mesh_id = ? AND incarnation = ? AND history_id = ? AND state = 'pending' AND attempts = ?`,
  ).run(
    judged.state,
    dueAtMs,
    judged.state === "pending" ? null : nowMs,
    judged.status ?? null,
    judged.error,
    ...key,
    delivery.attempt,
  );
}

function setFailing(tx: Sqlite, { meshId, incarnation }: WebhookKey, failing: 0 | 1): void {
  tx.sql("UPDATE webhook SET failing = ?1 WHERE mesh_id = ?2 AND incarnation = ?3 AND failing <> ?1").run(
    failing,
    meshId,
    incarnation,
  );
}

export function pruneDeliveries(tx: Sqlite, settledBeforeMs: number, limit: number): number {
  let pruned = 0;
  for (const state of ["delivered", "expired"]) {
    pruned += tx
      .sql(
        `DELETE FROM webhook_delivery WHERE (mesh_id, incarnation, history_id) IN (
           SELECT mesh_id, incarnation, history_id FROM webhook_delivery
           WHERE state = ? AND settled_at < ? ORDER BY settled_at LIMIT ?)`,
      )
      .run(state, settledBeforeMs, limit - pruned).changes;
  }
  return pruned + pruneDeleted(tx, limit - pruned);
}

function pruneDeleted(tx: Sqlite, limit: number): number {
  const gone = tx
    .sql<{ mesh_id: string; incarnation: string }>(
      "SELECT mesh_id, incarnation FROM webhook WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT 1",
    )
    .get();
  if (gone === undefined || limit <= 0) return 0;
  const { changes } = tx
    .sql(
      `DELETE FROM webhook_delivery WHERE mesh_id = ?1 AND incarnation = ?2 AND history_id IN (
         SELECT history_id FROM webhook_delivery WHERE mesh_id = ?1 AND incarnation = ?2 LIMIT ?3)`,
    )
    .run(gone.mesh_id, gone.incarnation, limit);
  if (changes === limit) return changes;
  tx.sql("DELETE FROM webhook WHERE mesh_id = ? AND incarnation = ?").run(gone.mesh_id, gone.incarnation);
  return changes + 1;
}

/** Whether pruning would find anything. Checking first leaves the write lock alone. */
export function hasPrunable(db: Sqlite, settledBeforeMs: number): boolean {
  const row = db
    .sql(
      `SELECT 1 FROM webhook WHERE deleted_at IS NOT NULL
       UNION ALL SELECT 1 FROM webhook_delivery WHERE state = 'delivered' AND settled_at < ?1
       UNION ALL SELECT 1 FROM webhook_delivery WHERE state = 'expired' AND settled_at < ?1 LIMIT 1`,
    )
    .get(settledBeforeMs);
  return row !== undefined;
}

export function countDeliveries(db: Sqlite): Awaited<ReturnType<WebhookStore["counts"]>> {
  const count = (state: string) =>
    db.sql<{ n: number }>("SELECT count(*) AS n FROM webhook_delivery WHERE state = ?").get(state)?.n ?? 0;
  return { pending: count("pending"), parked: count("parked") };
}
