// Presence leases and profiles on PostgreSQL.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import { beforeNul } from "@claudemesh/storage/postgres-text";
import { cutToPage } from "../../core/page-room.ts";
import type { Peer, PresenceLease, Profile } from "../../ports/presence.ts";
import type { Reading } from "./stored-accepts.ts";

/** In one order, so that brokers that renew the same leases never wait for each other in a circle. */
function columnsOf(leases: readonly PresenceLease[]): [string[], string[], string[]] {
  const byKey = new Map(leases.map((lease) => [`${lease.meshId}/${lease.pubkey}/${lease.connectionId}`, lease]));
  const sorted = [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, lease]) => lease);
  return [
    sorted.map(({ meshId }) => meshId),
    sorted.map(({ pubkey }) => pubkey),
    sorted.map(({ connectionId }) => connectionId),
  ];
}

export async function upsertLeases(
  tx: PostgresTransaction,
  leases: readonly PresenceLease[],
  nowMs: number,
  expiresAtMs: number,
): Promise<void> {
  await tx.execute(
    `INSERT INTO mesh.presence_lease (mesh_id, member_pubkey, connection_id, connected_at, expires_at)
     SELECT mesh_id, pubkey, connection_id, $4, $5
     FROM unnest($1::uuid[], $2::text[], $3::text[]) AS l (mesh_id, pubkey, connection_id)
     ON CONFLICT (mesh_id, member_pubkey, connection_id) DO UPDATE SET expires_at = excluded.expires_at`,
    [...columnsOf(leases), new Date(nowMs), new Date(expiresAtMs)],
  );
}

export async function deleteLeases(tx: PostgresTransaction, leases: readonly PresenceLease[]): Promise<void> {
  await tx.execute(
    `DELETE FROM mesh.presence_lease p
     USING unnest($1::uuid[], $2::text[], $3::text[]) AS l (mesh_id, pubkey, connection_id)
     WHERE p.mesh_id = l.mesh_id AND p.member_pubkey = l.pubkey AND p.connection_id = l.connection_id`,
    columnsOf(leases),
  );
}

/** Rows that another broker is sweeping or renewing are left to it. */
export async function sweepLeases(tx: PostgresTransaction, nowMs: number, limit: number): Promise<number> {
  return tx.execute(
    `DELETE FROM mesh.presence_lease p
     USING (SELECT mesh_id, member_pubkey, connection_id FROM mesh.presence_lease
       WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED) AS l
     WHERE p.mesh_id = l.mesh_id AND p.member_pubkey = l.member_pubkey AND p.connection_id = l.connection_id`,
    [new Date(nowMs), limit],
  );
}

type ProfileRow = { [Field in keyof Profile]: Profile[Field] | null };

const profileColumns = "p.summary, p.status, p.visible, p.avatar, p.title, p.bio, p.capabilities";

type PeerRow = ProfileRow & { pubkey: string; name: string; role: Peer["role"]; connected_at: Date };

export async function selectPeers(
  db: Reading,
  query: { meshId: string; reader: string | undefined; after: string; limit: number },
  nowMs: number,
): Promise<{ items: Peer[]; nextCursor: string | undefined }> {
  const rows = await db.query<PeerRow>(
    `SELECT m.pubkey, m.name, m.role, l.connected_at, ${profileColumns}
     FROM (SELECT member_pubkey, min(connected_at) AS connected_at FROM mesh.presence_lease
       WHERE mesh_id = $1 AND member_pubkey > $2 AND expires_at > $3 GROUP BY member_pubkey) AS l
     JOIN mesh.member m ON m.mesh_id = $1 AND m.pubkey = l.member_pubkey AND m.revoked_at IS NULL
     LEFT JOIN mesh.member_profile p ON p.mesh_id = $1 AND p.member_pubkey = l.member_pubkey
     WHERE coalesce(p.visible, true) OR l.member_pubkey = $4
     ORDER BY l.member_pubkey LIMIT $5`,
    [query.meshId, beforeNul(query.after), new Date(nowMs), query.reader ?? null, query.limit],
  );
  const peers = rows.map((row): Peer => {
    const { pubkey, name, role } = row;
    return { pubkey, name, role, connectedAtMs: row.connected_at.getTime(), profile: toProfile(row) };
  });
  return cutToPage(peers, query.limit, ({ pubkey }) => pubkey);
}

export async function updateProfile(
  tx: PostgresTransaction,
  meshId: string,
  pubkey: string,
  change: Partial<Profile>,
  nowMs: number,
): Promise<Profile> {
  // There may be no row to hold yet: the member's own is held instead.
  await tx.query("SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 FOR NO KEY UPDATE", [meshId, pubkey]);
  const [stored] = await tx.query<ProfileRow>(
    `SELECT ${profileColumns} FROM mesh.member_profile p WHERE p.mesh_id = $1 AND p.member_pubkey = $2`,
    [meshId, pubkey],
  );
  const profile: Profile = { ...toProfile(stored), ...change };
  const { summary, status, visible, avatar, title, bio, capabilities } = profile;
  await tx.execute(
    `INSERT INTO mesh.member_profile
       (mesh_id, member_pubkey, summary, status, visible, avatar, title, bio, capabilities, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (mesh_id, member_pubkey) DO UPDATE SET summary = excluded.summary, status = excluded.status,
       visible = excluded.visible, avatar = excluded.avatar, title = excluded.title, bio = excluded.bio,
       capabilities = excluded.capabilities, updated_at = excluded.updated_at`,
    [meshId, pubkey, summary, status, visible, avatar, title, bio, capabilities, new Date(nowMs)],
  );
  return profile;
}

/** A member that has said nothing of itself is visible and has an empty profile. */
function toProfile(row: ProfileRow | undefined): Profile {
  return {
    summary: row?.summary ?? "",
    status: row?.status ?? "",
    visible: row?.visible ?? true,
    avatar: row?.avatar ?? "",
    title: row?.title ?? "",
    bio: row?.bio ?? "",
    capabilities: row?.capabilities ?? [],
  };
}
