// Clearing away after a revocation, on PostgreSQL: deliveries, leases and presence of a former member.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type { FormerMember } from "../../ports/memberships.ts";
import { endLeases } from "./queues.ts";
import type { Reading } from "./stored-accepts.ts";
import { deleteWebhooksOf } from "./webhooks.ts";

export async function endMembership(
  tx: PostgresTransaction,
  former: FormerMember,
  nowMs: number,
  limit: number,
): Promise<number> {
  const { meshId, pubkey } = former;
  const live = await tx.query("SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 AND revoked_at IS NULL", [
    meshId,
    pubkey,
  ]);
  if (live.length > 0) return 0;
  await tx.execute("DELETE FROM mesh.presence_lease WHERE mesh_id = $1 AND member_pubkey = $2", [meshId, pubkey]);
  const webhooks = await deleteWebhooksOf(tx, meshId, pubkey, nowMs);
  const leases = await endLeases(tx, meshId, pubkey, nowMs, limit);
  return webhooks + leases + (await expireDeliveries(tx, former, nowMs, limit - leases));
}

async function expireDeliveries(
  tx: PostgresTransaction,
  { meshId, pubkey }: FormerMember,
  nowMs: number,
  limit: number,
): Promise<number> {
  if (limit <= 0) return 0;
  return tx.execute(
    `UPDATE mesh.delivery_queue d SET settled_at = $3, outcome = 'expired'
     WHERE d.mesh_id = $1 AND d.recipient_pubkey = $2 AND d.settled_at IS NULL AND d.history_id = ANY (ARRAY(
       SELECT u.history_id FROM mesh.delivery_queue u
       WHERE u.mesh_id = $1 AND u.recipient_pubkey = $2 AND u.settled_at IS NULL ORDER BY u.history_id LIMIT $4))`,
    [meshId, pubkey, new Date(nowMs), limit],
  );
}

export function selectUnfinished(db: Reading, limit: number): Promise<FormerMember[]> {
  return db.query<FormerMember>(
    `SELECT m.mesh_id AS "meshId", m.pubkey FROM mesh.member m
     WHERE m.revoked_at IS NOT NULL AND (
       EXISTS (SELECT 1 FROM mesh.delivery_queue d
         WHERE d.mesh_id = m.mesh_id AND d.recipient_pubkey = m.pubkey AND d.settled_at IS NULL)
       OR EXISTS (SELECT 1 FROM mesh.queue_message q
         WHERE q.mesh_id = m.mesh_id AND q.lease_holder = m.pubkey AND q.state = 'leased')
       OR EXISTS (SELECT 1 FROM mesh.webhook w
         WHERE w.mesh_id = m.mesh_id AND w.created_by = m.pubkey AND w.deleted_at IS NULL))
     LIMIT $1`,
    [limit],
  );
}
