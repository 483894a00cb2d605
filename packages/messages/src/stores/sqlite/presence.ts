// Presence leases and profiles on SQLite.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { cutToPage } from "../../core/page-room.ts";
import type { Peer, PresenceLease, Profile } from "../../ports/presence.ts";

export function upsertLeases(tx: Sqlite, leases: readonly PresenceLease[], nowMs: number, expiresAtMs: number): void {
  const upsert = tx.sql(
    `INSERT INTO presence_lease (mesh_id, member_pubkey, connection_id, connected_at, expires_at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (mesh_id, member_pubkey, connection_id) DO UPDATE SET expires_at = excluded.expires_at`,
  );
  for (const { meshId, pubkey, connectionId } of leases) upsert.run(meshId, pubkey, connectionId, nowMs, expiresAtMs);
}

export function deleteLeases(tx: Sqlite, leases: readonly PresenceLease[]): void {
  const remove = tx.sql("DELETE FROM presence_lease WHERE mesh_id = ? AND member_pubkey = ? AND connection_id = ?");
  for (const { meshId, pubkey, connectionId } of leases) remove.run(meshId, pubkey, connectionId);
}

export function sweepLeases(tx: Sqlite, nowMs: number, limit: number): number {
  return tx
    .sql(
      `DELETE FROM presence_lease WHERE (mesh_id, member_pubkey, connection_id) IN
         (SELECT mesh_id, member_pubkey, connection_id FROM presence_lease WHERE expires_at <= ? LIMIT ?)`,
    )
    .run(nowMs, limit).changes;
}

type ProfileRow = {
  summary: string | null;
  status: string | null;
  visible: number | null;
  avatar: string | null;
  title: string | null;
  bio: string | null;
  capabilities: string | null;
};

const profileColumns = "p.summary, p.status, p.visible, p.avatar, p.title, p.bio, p.capabilities";

export function selectPeers(
  db: Sqlite,
  query: { meshId: string; reader: string | undefined; after: string; limit: number },
  nowMs: number,
): { items: Peer[]; nextCursor: string | undefined } {
  const rows = db
    .sql<ProfileRow & { pubkey: string; name: string; role: Peer["role"]; connected_at: number }>(
      `SELECT m.pubkey, m.name, m.role, min(l.connected_at) AS connected_at, ${profileColumns}
       FROM presence_lease l
       JOIN member m ON m.mesh_id = l.mesh_id AND m.pubkey = l.member_pubkey AND m.revoked_at IS NULL
       LEFT JOIN member_profile p ON p.mesh_id = l.mesh_id AND p.member_pubkey = l.member_pubkey
       WHERE l.mesh_id = ? AND l.member_pubkey > ? AND l.expires_at > ?
         AND (coalesce(p.visible, 1) = 1 OR l.member_pubkey = ?)
       GROUP BY l.member_pubkey ORDER BY l.member_pubkey LIMIT ?`,
    )
    .all(query.meshId, query.after, nowMs, query.reader ?? null, query.limit);
  const peers = rows.map((row): Peer => {
    const { pubkey, name, role } = row;
    return { pubkey, name, role, connectedAtMs: row.connected_at, profile: toProfile(row) };
  });
  return cutToPage(peers, query.limit, ({ pubkey }) => pubkey);
}

export function updateProfile(
  tx: Sqlite,
  meshId: string,
  pubkey: string,
  change: Partial<Profile>,
  nowMs: number,
): Profile {
  const stored = tx
    .sql<ProfileRow>(`SELECT ${profileColumns} FROM member_profile p WHERE p.mesh_id = ? AND p.member_pubkey = ?`)
    .get(meshId, pubkey);
  const profile: Profile = { ...toProfile(stored), ...change };
  tx.sql(
    `INSERT INTO member_profile
       (mesh_id, member_pubkey, summary, status, visible, avatar, title, bio, capabilities, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (mesh_id, member_pubkey) DO UPDATE SET summary = excluded.summary, status = excluded.status,
       visible = excluded.visible, avatar = excluded.avatar, title = excluded.title, bio = excluded.bio,
       capabilities = excluded.capabilities, updated_at = excluded.updated_at`,
  ).run(
    meshId,
    pubkey,
    profile.summary,
    profile.status,
    profile.visible ? 1 : 0,
    profile.avatar,
    profile.title,
    profile.bio,
    JSON.stringify(profile.capabilities),
    nowMs,
  );
  return profile;
}

/** A member that has said nothing of itself is visible and has an empty profile. */
function toProfile(row: ProfileRow | undefined): Profile {
  return {
    summary: row?.summary ?? "",
    status: row?.status ?? "",
    visible: row?.visible !== 0,
    avatar: row?.avatar ?? "",
    title: row?.title ?? "",
    bio: row?.bio ?? "",
    capabilities: parseOwnJsonText(row?.capabilities ?? "[]") as string[],
  };
}
