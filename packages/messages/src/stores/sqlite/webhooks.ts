// Webhooks on SQLite: creating, listing, deleting, and going through their deliveries again. What a broker does with
// deliveries is in webhook-deliveries.ts.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { WebhookDeliveryState } from "../../core/webhook-delivery.ts";
import type { NewWebhook, WebhookStore } from "../../ports/webhooks.ts";
import { type DeliveryRow, toDeliveryItem, toWebhookPage, type WebhookRow } from "../webhook-rows.ts";

export type WebhookKey = { readonly meshId: string; readonly incarnation: string };

/** Of `webhook w`. */
export const createdByOwner = `EXISTS (SELECT 1 FROM member m
  WHERE m.mesh_id = w.mesh_id AND m.pubkey = w.created_by AND m.role = 'owner' AND m.revoked_at IS NULL)`;

/** Called where a delivery becomes due: moves its webhook's turn to that time, unless the turn comes earlier. */
export function bringTurnForward(tx: Sqlite, { meshId, incarnation }: WebhookKey, dueAtMs: number): void {
  tx.sql("UPDATE webhook SET turn_at = min(coalesce(turn_at, ?1), ?1) WHERE mesh_id = ?2 AND incarnation = ?3").run(
    dueAtMs,
    meshId,
    incarnation,
  );
}

type Found = { incarnation: string; fingerprint: Uint8Array; created_at: number };

/** Undefined where there is no such webhook. */
export function selectWebhook(db: Sqlite, meshId: string, id: string): Found | undefined {
  return db
    .sql<Found>(
      "SELECT incarnation, fingerprint, created_at FROM webhook WHERE mesh_id = ? AND id = ? AND deleted_at IS NULL",
    )
    .get(meshId, id);
}

export function insertWebhook(
  tx: Sqlite,
  webhook: NewWebhook,
  nowMs: number,
  perMeshMax: number,
): "created" | "exists" | "different" | "full" {
  const stored = selectWebhook(tx, webhook.meshId, webhook.id);
  if (stored !== undefined)
    return Buffer.compare(stored.fingerprint, webhook.fingerprint) === 0 ? "exists" : "different";
  const live = tx
    .sql<{ n: number }>("SELECT count(*) AS n FROM webhook WHERE mesh_id = ? AND deleted_at IS NULL")
    .get(webhook.meshId);
  if ((live?.n ?? 0) >= perMeshMax) return "full";
  tx.sql(
    `INSERT INTO webhook (mesh_id, incarnation, id, url, topics, secret, fingerprint, created_by, created_at,
       written_up_to, stepped_at)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
       coalesce((SELECT last_history_id FROM mesh_history_counter WHERE mesh_id = ?1), 0), ?9)`,
  ).run(
    webhook.meshId,
    webhook.incarnation,
    webhook.id,
    webhook.url,
    webhook.topics === undefined ? null : JSON.stringify(webhook.topics),
    webhook.secret,
    webhook.fingerprint,
    webhook.createdBy,
    nowMs,
  );
  return "created";
}

const countOf = (state: "pending" | "parked") => `(SELECT count(*) FROM webhook_delivery d
  WHERE d.mesh_id = w.mesh_id AND d.incarnation = w.incarnation AND d.state = '${state}') AS ${state}`;

export function selectWebhooks(
  db: Sqlite,
  meshId: string,
  after: string,
  limit: number,
): Awaited<ReturnType<WebhookStore["list"]>> {
  const rows = db
    .sql<Omit<WebhookRow, "topics"> & { readonly topics: string | null }>(
      `SELECT w.id, w.url, w.topics, w.created_by, w.created_at, w.written_up_to, ${countOf("pending")}, ${countOf("parked")}
       FROM webhook w WHERE w.mesh_id = ? AND w.id > ? AND w.deleted_at IS NULL ORDER BY w.id LIMIT ?`,
    )
    .all(meshId, after, limit);
  const topicsOf = (text: string | null) => (text === null ? null : (parseOwnJsonText(text) as string[]));
  return toWebhookPage(
    rows.map((row) => ({ ...row, topics: topicsOf(row.topics) })),
    limit,
  );
}

export function deleteWebhook(tx: Sqlite, meshId: string, id: string, nowMs: number): void {
  tx.sql("UPDATE webhook SET deleted_at = ?, secret = '' WHERE mesh_id = ? AND id = ? AND deleted_at IS NULL").run(
    nowMs,
    meshId,
    id,
  );
}

/** Of a former member. Returns how many there were. */
export function deleteWebhooksOf(tx: Sqlite, meshId: string, pubkey: string, nowMs: number): number {
  return tx
    .sql("UPDATE webhook SET deleted_at = ?, secret = '' WHERE mesh_id = ? AND created_by = ? AND deleted_at IS NULL")
    .run(nowMs, meshId, pubkey).changes;
}

const selectDeliveryRows = (indexed: string, inState: string) => `SELECT history_id, broker_message_id, state, attempts,
    due_at, last_attempt_at, last_status, last_error, settled_at
  FROM webhook_delivery ${indexed} WHERE mesh_id = ? AND incarnation = ? AND history_id > ? ${inState}
  ORDER BY history_id LIMIT ?`;
const selectRowsOf = (state: WebhookDeliveryState) =>
  selectDeliveryRows(`INDEXED BY webhook_delivery_${state}`, `AND state = '${state}'`);

/** A text for each state: only a state that is written there is looked up in its index. */
const deliveryRows = {
  any: selectDeliveryRows("", ""),
  pending: selectRowsOf("pending"),
  delivered: selectRowsOf("delivered"),
  parked: selectRowsOf("parked"),
  expired: selectRowsOf("expired"),
};

export function selectDeliveries(
  db: Sqlite,
  query: Parameters<WebhookStore["deliveries"]>[0],
): Awaited<ReturnType<WebhookStore["deliveries"]>> {
  const webhook = selectWebhook(db, query.meshId, query.id);
  if (webhook === undefined) return undefined;
  const rows = db
    .sql<DeliveryRow>(deliveryRows[query.state ?? "any"])
    .all(query.meshId, webhook.incarnation, query.after, query.limit);
  return {
    items: rows.map(toDeliveryItem),
    nextAfter: rows.length === query.limit ? rows.at(-1)?.history_id : undefined,
  };
}

/** Due from then on, with all its tries available again. */
export const asNew = (dueAt: string) =>
  `state = 'pending', attempts = 0, due_at = ${dueAt}, held_until = NULL, settled_at = NULL`;

/** Whatever is not open, and what waits for its next try; not what a broker tries, or what is due already. */
export const mayBeReplayed = (now: string) =>
  `(state <> 'pending' OR (due_at > ${now} AND coalesce(held_until, 0) <= ${now}))`;

export function replayDeliveries(
  tx: Sqlite,
  meshId: string,
  id: string,
  which: Parameters<WebhookStore["replay"]>[2],
  nowMs: number,
): number | undefined {
  const webhook = selectWebhook(tx, meshId, id);
  if (webhook === undefined) return undefined;
  const wanted = "historyIds" in which ? which.historyIds : selectStuck(tx, meshId, webhook, nowMs, which.limit);
  const putBack = tx.sql(
    `UPDATE webhook_delivery SET ${asNew("?1")}
     WHERE mesh_id = ?2 AND incarnation = ?3 AND history_id = ?4 AND ${mayBeReplayed("?1")}`,
  );
  bringTurnForward(tx, { meshId, incarnation: webhook.incarnation }, nowMs);
  return wanted.reduce((n, historyId) => n + putBack.run(nowMs, meshId, webhook.incarnation, historyId).changes, 0);
}

/** What is parked, followed by what waits for its next try. */
function selectStuck(tx: Sqlite, meshId: string, { incarnation }: Found, nowMs: number, limit: number): number[] {
  const parked = tx
    .sql<{ history_id: number }>(
      `SELECT history_id FROM webhook_delivery INDEXED BY webhook_delivery_parked
       WHERE mesh_id = ? AND incarnation = ? AND state = 'parked' ORDER BY history_id LIMIT ?`,
    )
    .all(meshId, incarnation, limit);
  const waiting = tx
    .sql<{ history_id: number }>(
      `SELECT history_id FROM webhook_delivery INDEXED BY webhook_delivery_due
       WHERE mesh_id = ?1 AND incarnation = ?2 AND state = 'pending' AND due_at > ?3 AND coalesce(held_until, 0) <= ?3
       ORDER BY due_at LIMIT ?4`,
    )
    .all(meshId, incarnation, nowMs, limit - parked.length);
  return [...parked, ...waiting].map((row) => row.history_id);
}

export function rewindWebhook(tx: Sqlite, meshId: string, id: string, fromHistoryId: number): boolean {
  const { changes } = tx
    .sql(
      `UPDATE webhook SET written_up_to = min(written_up_to, ?)
       WHERE mesh_id = ? AND id = ? AND deleted_at IS NULL`,
    )
    .run(fromHistoryId - 1, meshId, id);
  return changes === 1;
}
