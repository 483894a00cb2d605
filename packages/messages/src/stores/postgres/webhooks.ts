// Webhooks on PostgreSQL: creating, listing, deleting, and going through their deliveries again. What a broker does with
// deliveries is in webhook-deliveries.ts.
import { lockMesh } from "@claudemesh/members/postgres";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { beforeNul } from "@claudemesh/storage/postgres-text";
import type { WebhookDeliveryState } from "../../core/webhook-delivery.ts";
import type { NewWebhook, WebhookStore } from "../../ports/webhooks.ts";
import { type DeliveryRow, toDeliveryItem, toWebhookPage, type WebhookRow } from "../webhook-rows.ts";
import type { Reading } from "./stored-accepts.ts";

export type WebhookKey = { readonly meshId: string; readonly incarnation: string };

/** Of `mesh.webhook w`. */
export const createdByOwner = `EXISTS (SELECT 1 FROM mesh.member m
  WHERE m.mesh_id = w.mesh_id AND m.pubkey = w.created_by AND m.role = 'owner' AND m.revoked_at IS NULL)`;

/**
 * Called before a delivery becomes due: moves its webhook's turn to that time, unless the turn comes earlier. The lock
 * that this takes keeps a claim from setting the turn without the delivery, which it cannot see yet.
 */
export async function bringTurnForward(
  tx: PostgresTransaction,
  { meshId, incarnation }: WebhookKey,
  dueAtMs: number,
): Promise<void> {
  await tx.execute(
    "UPDATE mesh.webhook SET turn_at = least(turn_at, $3::timestamptz) WHERE mesh_id = $1 AND incarnation = $2",
    [meshId, incarnation, new Date(dueAtMs)],
  );
}

type Found = { incarnation: string; fingerprint: Uint8Array; created_at: Date };

/** Undefined where there is no such webhook. */
export async function selectWebhook(db: Reading, meshId: string, id: string): Promise<Found | undefined> {
  const [row] = await db.query<Found>(
    `SELECT incarnation, fingerprint, created_at FROM mesh.webhook
     WHERE mesh_id = $1 AND id = $2 AND deleted_at IS NULL`,
    [meshId, id],
  );
  return row;
}

/** Under the mesh's lock, so that two at once cannot pass the limit. */
export async function insertWebhook(
  tx: PostgresTransaction,
  webhook: NewWebhook,
  nowMs: number,
  perMeshMax: number,
): Promise<"created" | "exists" | "different" | "full"> {
  await lockMesh(tx, webhook.meshId);
  const stored = await selectWebhook(tx, webhook.meshId, webhook.id);
  if (stored !== undefined) {
    return Buffer.compare(stored.fingerprint, webhook.fingerprint) === 0 ? "exists" : "different";
  }
  const [live] = await tx.query<{ n: number }>(
    "SELECT count(*) AS n FROM mesh.webhook WHERE mesh_id = $1 AND deleted_at IS NULL",
    [webhook.meshId],
  );
  if ((live?.n ?? 0) >= perMeshMax) return "full";
  await tx.execute(
    `INSERT INTO mesh.webhook (mesh_id, incarnation, id, url, topics, secret, fingerprint, created_by, created_at,
       written_up_to, stepped_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9,
       coalesce((SELECT last_history_id FROM mesh.mesh_history_counter WHERE mesh_id = $1), 0), $9)`,
    [
      webhook.meshId,
      webhook.incarnation,
      webhook.id,
      webhook.url,
      webhook.topics ?? null,
      webhook.secret,
      webhook.fingerprint,
      webhook.createdBy,
      new Date(nowMs),
    ],
  );
  return "created";
}

const countOf = (state: "pending" | "parked") => `(SELECT count(*) FROM mesh.webhook_delivery d
  WHERE d.mesh_id = w.mesh_id AND d.incarnation = w.incarnation AND d.state = '${state}') AS ${state}`;

export async function selectWebhooks(
  db: Reading,
  meshId: string,
  after: string,
  limit: number,
): ReturnType<WebhookStore["list"]> {
  const rows = await db.query<WebhookRow>(
    `SELECT w.id, w.url, w.topics, w.created_by, w.created_at, w.written_up_to,
       ${countOf("pending")}, ${countOf("parked")}
     FROM mesh.webhook w WHERE w.mesh_id = $1 AND w.id > $2 AND w.deleted_at IS NULL ORDER BY w.id LIMIT $3`,
    [meshId, beforeNul(after), limit],
  );
  return toWebhookPage(rows, limit);
}

export async function deleteWebhook(tx: PostgresTransaction, meshId: string, id: string, nowMs: number): Promise<void> {
  await tx.execute(
    "UPDATE mesh.webhook SET deleted_at = $3, secret = '' WHERE mesh_id = $1 AND id = $2 AND deleted_at IS NULL",
    [meshId, id, new Date(nowMs)],
  );
}

/** Of a former member. Returns how many there were. */
export function deleteWebhooksOf(
  tx: PostgresTransaction,
  meshId: string,
  pubkey: string,
  nowMs: number,
): Promise<number> {
  return tx.execute(
    `UPDATE mesh.webhook SET deleted_at = $3, secret = ''
     WHERE mesh_id = $1 AND created_by = $2 AND deleted_at IS NULL`,
    [meshId, pubkey, new Date(nowMs)],
  );
}

const selectDeliveryRows = (inState: string) => `SELECT history_id, broker_message_id, state, attempts, due_at,
    last_attempt_at, last_status, last_error, settled_at
  FROM mesh.webhook_delivery WHERE mesh_id = $1 AND incarnation = $2 AND history_id > $3 ${inState}
  ORDER BY history_id LIMIT $4`;
const selectRowsOf = (state: WebhookDeliveryState) => selectDeliveryRows(`AND state = '${state}'`);

/** A text for each state: only a state that is written there is looked up in its index. */
const deliveryRows = {
  any: selectDeliveryRows(""),
  pending: selectRowsOf("pending"),
  delivered: selectRowsOf("delivered"),
  parked: selectRowsOf("parked"),
  expired: selectRowsOf("expired"),
};

export async function selectDeliveries(
  db: Reading,
  query: Parameters<WebhookStore["deliveries"]>[0],
): ReturnType<WebhookStore["deliveries"]> {
  const webhook = await selectWebhook(db, query.meshId, query.id);
  if (webhook === undefined) return undefined;
  const rows = await db.query<DeliveryRow>(deliveryRows[query.state ?? "any"], [
    query.meshId,
    webhook.incarnation,
    query.after,
    query.limit,
  ]);
  return {
    items: rows.map(toDeliveryItem),
    nextAfter: rows.length === query.limit ? rows.at(-1)?.history_id : undefined,
  };
}

/** Due from then on, with all its tries available again. */
export const asNew = (dueAt: string) =>
  `state = 'pending', attempts = 0, due_at = ${dueAt}, held_until = NULL, settled_at = NULL`;

/** Of `d`: whatever is not open, and what waits for its next try; not what a broker tries, or what is due already. */
export const mayBeReplayed = (now: string) =>
  `(d.state <> 'pending' OR (d.due_at > ${now} AND (d.held_until IS NULL OR d.held_until <= ${now})))`;

export async function replayDeliveries(
  tx: PostgresTransaction,
  meshId: string,
  id: string,
  which: Parameters<WebhookStore["replay"]>[2],
  nowMs: number,
): Promise<number | undefined> {
  const webhook = await selectWebhook(tx, meshId, id);
  if (webhook === undefined) return undefined;
  const { incarnation } = webhook;
  const now = new Date(nowMs);
  await bringTurnForward(tx, { meshId, incarnation }, nowMs);
  const wanted =
    "historyIds" in which ? which.historyIds : await selectStuck(tx, meshId, incarnation, now, which.limit);
  return tx.execute(
    `UPDATE mesh.webhook_delivery d SET ${asNew("$4")}
     WHERE d.mesh_id = $1 AND d.incarnation = $2 AND d.history_id = ANY ($3::bigint[]) AND ${mayBeReplayed("$4")}`,
    [meshId, incarnation, wanted, now],
  );
}

/** What is parked, followed by what waits for its next try. */
async function selectStuck(
  tx: PostgresTransaction,
  meshId: string,
  incarnation: string,
  now: Date,
  limit: number,
): Promise<number[]> {
  const parked = await tx.query<{ history_id: number }>(
    `SELECT history_id FROM mesh.webhook_delivery WHERE mesh_id = $1 AND incarnation = $2 AND state = 'parked'
     ORDER BY history_id LIMIT $3`,
    [meshId, incarnation, limit],
  );
  const waiting = await tx.query<{ history_id: number }>(
    `SELECT history_id FROM mesh.webhook_delivery
     WHERE mesh_id = $1 AND incarnation = $2 AND state = 'pending' AND due_at > $3
       AND (held_until IS NULL OR held_until <= $3)
     ORDER BY due_at LIMIT $4`,
    [meshId, incarnation, now, limit - parked.length],
  );
  return [...parked, ...waiting].map((row) => row.history_id);
}

export async function rewindWebhook(
  tx: PostgresTransaction,
  meshId: string,
  id: string,
  fromHistoryId: number,
): Promise<boolean> {
  const changed = await tx.execute(
    `UPDATE mesh.webhook SET written_up_to = least(written_up_to, $3::bigint)
     WHERE mesh_id = $1 AND id = $2 AND deleted_at IS NULL`,
    [meshId, id, fromHistoryId - 1],
  );
  return changed === 1;
}
