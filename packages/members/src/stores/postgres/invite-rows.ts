// Invites on PostgreSQL. The caller has checked who may do what, and holds the mesh's lock for each change.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { beforeNul, comparable } from "@claudemesh/storage/postgres-text";
import type { InviteRecord, NewInvite, Page } from "../../ports.ts";
import { type InviteRow, inviteColumns, pageOf, toInviteRecord } from "../member-rows.ts";
import type { Reading } from "./reading.ts";

const madeByOwner = `EXISTS (SELECT FROM mesh.member m WHERE m.mesh_id = i.mesh_id AND m.pubkey = i.created_by
  AND m.role = 'owner' AND m.revoked_at IS NULL) AS made_by_owner`;

export async function insertInvite(
  tx: PostgresTransaction,
  meshId: string,
  invite: NewInvite,
  nowMs: number,
): Promise<void> {
  await tx.execute(
    `INSERT INTO mesh.invite (mesh_id, secret_hash, id, created_by, created_at, expires_at, member_name)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [
      meshId,
      invite.secretHash,
      invite.id,
      invite.createdBy,
      new Date(nowMs),
      new Date(invite.expiresAt),
      invite.memberName ?? null,
    ],
  );
}

export async function selectInvites(
  db: Reading,
  meshId: string,
  after: string,
  limit: number,
): Promise<Page<InviteRecord>> {
  const rows = await db.query<InviteRow>(
    `SELECT ${inviteColumns}, ${madeByOwner} FROM mesh.invite i
     WHERE i.mesh_id = $1 AND i.id > $2 ORDER BY i.id LIMIT $3`,
    [meshId, beforeNul(after), limit],
  );
  return pageOf(rows.map(toInviteRecord), limit, (invite) => invite.id);
}

export async function selectInvite(
  tx: PostgresTransaction,
  meshId: string,
  id: string,
): Promise<InviteRecord | undefined> {
  const text = `SELECT ${inviteColumns}, ${madeByOwner} FROM mesh.invite i WHERE i.mesh_id = $1 AND i.id = $2`;
  const [row] = await tx.query<InviteRow>(text, [meshId, ...comparable(id)]);
  return row && toInviteRecord(row);
}

export async function selectInviteBySecret(
  tx: PostgresTransaction,
  meshId: string,
  secretHash: Uint8Array,
): Promise<InviteRecord | undefined> {
  const text = `SELECT ${inviteColumns}, ${madeByOwner} FROM mesh.invite i WHERE i.mesh_id = $1 AND i.secret_hash = $2`;
  const [row] = await tx.query<InviteRow>(text, [meshId, secretHash]);
  return row && toInviteRecord(row);
}

export async function markInviteUsed(
  tx: PostgresTransaction,
  meshId: string,
  id: string,
  pubkey: string,
  nowMs: number,
): Promise<void> {
  const values = [meshId, id, pubkey, new Date(nowMs)];
  await tx.execute("UPDATE mesh.invite SET used_by = $3, used_at = $4 WHERE mesh_id = $1 AND id = $2", values);
}

export async function markInviteRevoked(
  tx: PostgresTransaction,
  meshId: string,
  id: string,
  nowMs: number,
): Promise<void> {
  const values = [meshId, id, new Date(nowMs)];
  await tx.execute("UPDATE mesh.invite SET revoked_at = $3 WHERE mesh_id = $1 AND id = $2", values);
}
