// Clearing away after a revocation, on PostgreSQL: deliveries, leases, presence and webhooks of a former member; and the
// webhooks of a former owner.
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
  const role = await selectRole(tx, former);
  if (role === "owner") return 0;
  const webhooks = await deleteWebhooksOf(tx, meshId, pubkey, nowMs);
  if (role !== undefined) return webhooks;
  await tx.execute("DELETE FROM mesh.presence_lease WHERE mesh_id = $1 AND member_pubkey = $2", [meshId, pubkey]);
  const leases = await endLeases(tx, meshId, pubkey, nowMs, limit);
  return webhooks + leases + (await expireDeliveries(tx, former, nowMs, limit - leases));
}

/** Undefined where it is no live member. Locks the row, so that a member whose webhooks are just being ended becomes no owner. */
async function selectRole(tx: PostgresTransaction, { meshId, pubkey }: FormerMember): Promise<string | undefined> {
  const [row] = await tx.query<{ role: string }>(
    "SELECT role FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 AND revoked_at IS NULL FOR SHARE",
    [meshId, pubkey],
  );
  return row?.role;
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
         WHERE q.mesh_id = m.mesh_id AND q.lease_holder = m.pubkey AND q.state = 'leased'))
     UNION
     SELECT m.mesh_id, m.pubkey FROM mesh.webhook w JOIN mesh.member m ON m.mesh_id = w.mesh_id AND m.pubkey = w.created_by
     WHERE w.deleted_at IS NULL AND (m.revoked_at IS NOT NULL OR m.role <> 'owner')
     LIMIT $1`,
    [limit],
  );
}
