// Deliveries on PostgreSQL: what a recipient has not confirmed, confirming it, and who has something waiting.
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { type StoredItem, toHistoryItem } from "../../core/stored-item.ts";
import type { Reading } from "./stored-accepts.ts";
import { hasMessage, itemColumns, joinMessages } from "./stored-items.ts";

export async function selectUnsettled(
  db: Reading,
  meshId: string,
  recipient: string,
  after: number,
  limit: number,
): Promise<HistoryItem[]> {
  const rows = await db.query<StoredItem>(
    `SELECT ${itemColumns} FROM mesh.delivery_queue d
     JOIN mesh.message_history h ON h.mesh_id = d.mesh_id AND h.history_id = d.history_id
     ${joinMessages}
     WHERE d.mesh_id = $1 AND d.recipient_pubkey = $2 AND d.history_id > $3 AND d.settled_at IS NULL AND ${hasMessage}
     ORDER BY d.history_id LIMIT $4`,
    [meshId, recipient, after, limit],
  );
  return rows.map(toHistoryItem);
}

export type Settling = {
  readonly meshId: string;
  readonly recipient: string;
  readonly historyIds: readonly number[];
  readonly nowMs: number;
};

/** Settles what is his and not settled; everything else is passed over. */
export async function settleInTransaction(tx: PostgresTransaction, settlings: readonly Settling[]): Promise<void> {
  const rows = settlings.flatMap(({ meshId, recipient, historyIds, nowMs }) =>
    historyIds.map((historyId) => ({ meshId, recipient, historyId, nowMs })),
  );
  await tx.execute(
    `UPDATE mesh.delivery_queue d SET settled_at = to_timestamp(s.now_ms / 1000), outcome = 'delivered'
     FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::float8[]) AS s (mesh_id, history_id, recipient, now_ms)
     WHERE d.mesh_id = s.mesh_id AND d.history_id = s.history_id AND d.recipient_pubkey = s.recipient
       AND d.settled_at IS NULL`,
    [
      rows.map((row) => row.meshId),
      rows.map((row) => row.historyId),
      rows.map((row) => row.recipient),
      rows.map((row) => row.nowMs),
    ],
  );
}

export type Recipient = { readonly meshId: string; readonly pubkey: string };

/** Those among the given recipients who have an unsettled delivery. */
export async function selectWaiting(db: Reading, recipients: readonly Recipient[]): Promise<Recipient[]> {
  return db.query<Recipient>(
    `SELECT r.mesh_id AS "meshId", r.pubkey
     FROM unnest($1::uuid[], $2::text[]) AS r (mesh_id, pubkey)
     WHERE EXISTS (SELECT 1 FROM mesh.delivery_queue d
       WHERE d.mesh_id = r.mesh_id AND d.recipient_pubkey = r.pubkey AND d.settled_at IS NULL)`,
    [recipients.map(({ meshId }) => meshId), recipients.map(({ pubkey }) => pubkey)],
  );
}
