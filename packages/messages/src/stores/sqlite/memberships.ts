// Clearing away after a revocation, on SQLite: deliveries, leases, presence and webhooks of a former member; and the
// webhooks of a former owner.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { FormerMember } from "../../ports/memberships.ts";
import { endLeases } from "./queues.ts";
import { deleteWebhooksOf } from "./webhooks.ts";

export function endMembership(tx: Sqlite, former: FormerMember, nowMs: number, limit: number): number {
  const { meshId, pubkey } = former;
  const role = selectRole(tx, former);
  if (role === "owner") return 0;
  const webhooks = deleteWebhooksOf(tx, meshId, pubkey, nowMs);
  if (role !== undefined) return webhooks;
  tx.sql("DELETE FROM presence_lease WHERE mesh_id = ? AND member_pubkey = ?").run(meshId, pubkey);
  const leases = endLeases(tx, meshId, pubkey, nowMs, limit);
  return webhooks + leases + expireDeliveries(tx, former, nowMs, limit - leases);
}

/** Undefined where it is no live member. */
function selectRole(tx: Sqlite, { meshId, pubkey }: FormerMember): string | undefined {
  return tx
    .sql<{ role: string }>("SELECT role FROM member WHERE mesh_id = ? AND pubkey = ? AND revoked_at IS NULL")
    .get(meshId, pubkey)?.role;
}

function expireDeliveries(tx: Sqlite, { meshId, pubkey }: FormerMember, nowMs: number, limit: number): number {
  if (limit <= 0) return 0;
  const due = tx
    .sql<{ history_id: number }>(
      `SELECT history_id FROM delivery_queue INDEXED BY delivery_queue_unsettled
       WHERE mesh_id = ? AND recipient_pubkey = ? AND settled_at IS NULL ORDER BY history_id LIMIT ?`,
    )
    .all(meshId, pubkey, limit);
  const expire = tx.sql(
    `UPDATE delivery_queue SET settled_at = ?, outcome = 'expired'
     WHERE mesh_id = ? AND history_id = ? AND recipient_pubkey = ? AND settled_at IS NULL`,
  );
  for (const { history_id } of due) expire.run(nowMs, meshId, history_id, pubkey);
  return due.length;
}

export function selectUnfinished(db: Sqlite, limit: number): FormerMember[] {
  return db
    .sql<{ mesh_id: string; pubkey: string }>(
      `SELECT m.mesh_id, m.pubkey FROM member m
       WHERE m.revoked_at IS NOT NULL AND (
         EXISTS (SELECT 1 FROM delivery_queue d INDEXED BY delivery_queue_unsettled
           WHERE d.mesh_id = m.mesh_id AND d.recipient_pubkey = m.pubkey AND d.settled_at IS NULL)
         OR EXISTS (SELECT 1 FROM queue_message q
           WHERE q.mesh_id = m.mesh_id AND q.lease_holder = m.pubkey AND q.state = 'leased'))
       UNION
       SELECT m.mesh_id, m.pubkey FROM webhook w JOIN member m ON m.mesh_id = w.mesh_id AND m.pubkey = w.created_by
       WHERE w.deleted_at IS NULL AND (m.revoked_at IS NOT NULL OR m.role <> 'owner')
       LIMIT ?`,
    )
    .all(limit)
    .map(({ mesh_id, pubkey }) => ({ meshId: mesh_id, pubkey }));
}
