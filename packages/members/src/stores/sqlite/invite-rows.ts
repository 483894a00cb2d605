// Invites on SQLite. The caller has checked who may do what.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { InviteRecord, NewInvite, Page } from "../../ports.ts";
import { type InviteRow, inviteColumns, pageOf, toInviteRecord } from "../member-rows.ts";

const madeByOwner = `EXISTS (SELECT 1 FROM member m WHERE m.mesh_id = i.mesh_id AND m.pubkey = i.created_by
  AND m.role = 'owner' AND m.revoked_at IS NULL) AS made_by_owner`;

export function insertInvite(tx: Sqlite, meshId: string, invite: NewInvite, nowMs: number): void {
  tx.sql(
    `INSERT INTO invite (mesh_id, secret_hash, id, created_by, created_at, expires_at, member_name)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(meshId, invite.secretHash, invite.id, invite.createdBy, nowMs, invite.expiresAt, invite.memberName ?? null);
}

export function selectInvites(db: Sqlite, meshId: string, after: string, limit: number): Page<InviteRecord> {
  const rows = db
    .sql<InviteRow>(
      `SELECT ${inviteColumns}, ${madeByOwner} FROM invite i WHERE i.mesh_id = ? AND i.id > ? ORDER BY i.id LIMIT ?`,
    )
    .all(meshId, after, limit);
  return pageOf(rows.map(toInviteRecord), limit, (invite) => invite.id);
}

export function selectInvite(tx: Sqlite, meshId: string, id: string): InviteRecord | undefined {
  const row = tx
    .sql<InviteRow>(`SELECT ${inviteColumns}, ${madeByOwner} FROM invite i WHERE i.mesh_id = ? AND i.id = ?`)
    .get(meshId, id);
  return row && toInviteRecord(row);
}

export function selectInviteBySecret(tx: Sqlite, meshId: string, secretHash: Uint8Array): InviteRecord | undefined {
  const row = tx
    .sql<InviteRow>(`SELECT ${inviteColumns}, ${madeByOwner} FROM invite i WHERE i.mesh_id = ? AND i.secret_hash = ?`)
    .get(meshId, secretHash);
  return row && toInviteRecord(row);
}

export function markInviteUsed(tx: Sqlite, meshId: string, id: string, pubkey: string, nowMs: number): void {
  tx.sql("UPDATE invite SET used_by = ?, used_at = ? WHERE mesh_id = ? AND id = ? AND used_by IS NULL").run(
    pubkey,
    nowMs,
    meshId,
    id,
  );
}

export function markInviteRevoked(tx: Sqlite, meshId: string, id: string, nowMs: number): void {
  tx.sql("UPDATE invite SET revoked_at = ? WHERE mesh_id = ? AND id = ? AND revoked_at IS NULL").run(nowMs, meshId, id);
}
