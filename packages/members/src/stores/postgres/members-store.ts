// MembersStore on PostgreSQL. Reads see committed rows; each change is one transaction that decides and writes. A
// change of a mesh's members holds the mesh's lock, because accepts read membership under it.
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Postgres, PostgresTransaction } from "@claudemesh/storage/postgres";
import { beforeNul, comparable } from "@claudemesh/storage/postgres-text";
import { decideRole, isLiveOwner } from "../../core/decide-role.ts";
import { decideInviteRevoke, decideJoin, decideName } from "../../core/invite-state.ts";
import type {
  CreateMeshOutcome,
  InviteRevokeOutcome,
  JoinOutcome,
  Member,
  MembersStore,
  Mesh,
  Page,
  RevokeOutcome,
  Role,
  RoleOutcome,
  TokenRecord,
} from "../../ports.ts";
import { type MemberRow, memberColumns, pageOf, type TokenRow, toMember, toTokenRecord } from "../member-rows.ts";
import { createCallerLookUps } from "./caller-look-ups.ts";
import {
  insertInvite,
  markInviteRevoked,
  markInviteUsed,
  selectInvite,
  selectInviteBySecret,
  selectInvites,
} from "./invite-rows.ts";
import type { Reading } from "./reading.ts";
import { countOpenInvites, countTokens, deleteSetting, selectSettings, upsertSetting } from "./setting-rows.ts";

export function postgresMembersMigrations(): Migration[] {
  return loadMigrations("members", new URL("./migrations/", import.meta.url));
}

/**
 * Waits for the mesh's lock and holds it until the transaction ends. It is a statement of its own, so that later reads
 * see everything that was committed under the lock before. Foreign keys that refer to the mesh do not wait for it.
 */
export async function lockMesh(tx: PostgresTransaction, meshId: string): Promise<void> {
  await tx.query("SELECT 1 FROM mesh.mesh WHERE id = $1 FOR NO KEY UPDATE", [meshId], "lock_mesh");
}

/**
 * Must come before the mesh's lock, never after it. A commit to a space locks its member's row (FOR SHARE) and then,
 * where it carries messages, the mesh. A change of a member that took the two locks in the other order could deadlock
 * with it. This order also keeps the rest of the mesh from waiting while a slow commit holds the member's row.
 */
async function lockMember(tx: PostgresTransaction, meshId: string, pubkey: string): Promise<void> {
  const text = "SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 FOR NO KEY UPDATE";
  await tx.query(text, [meshId, ...comparable(pubkey)], "lock_member");
}

/** `looking`: the connections, with generic plans, for the look-ups that precede every request. */
export function createPostgresMembersStore(postgres: Postgres, looking = postgres): MembersStore {
  const committed: Reading = { query: (text, values) => postgres.read(text, values) };
  const lookUps = createCallerLookUps(looking);
  return {
    createMesh: (mesh, owner, nowMs) => postgres.transaction((tx) => insertMesh(tx, mesh, owner, nowMs)),
    findMesh: lookUps.findMesh,
    findMember: (meshId, pubkey) => selectMember(committed, meshId, pubkey),
    isNameTaken: (meshId, name) => hasName(committed, meshId, name),
    findRevoked: (meshId, pubkeys) => selectRevoked(committed, meshId, pubkeys),
    listMembers: (meshId, after, limit) => selectMembers(committed, meshId, after, limit),
    addInvite: (meshId, invite, nowMs) => postgres.transaction((tx) => insertInvite(tx, meshId, invite, nowMs)),
    listInvites: (meshId, after, limit) => selectInvites(committed, meshId, after, limit),
    revokeInvite: (meshId, by, inviteId, nowMs) =>
      postgres.transaction((tx) => endInvite(tx, meshId, by, inviteId, nowMs)),
    join: (meshId, secretHash, member, nowMs) =>
      postgres.transaction((tx) => spendInvite(tx, meshId, secretHash, member, nowMs)),
    addToken: (meshId, token, nowMs) =>
      postgres.transaction(async (tx) => {
        await tx.execute(
          `INSERT INTO mesh.member_token (mesh_id, id, token_hash, pubkey, label, created_at)
           VALUES ($1, $2, $3, $4, $5, $6)`,
          [meshId, token.id, Buffer.from(token.tokenHash, "hex"), token.pubkey, token.label, new Date(nowMs)],
        );
      }),
    findByToken: lookUps.findByToken,
    listTokens: (meshId, pubkey, after, limit) => selectTokens(committed, meshId, pubkey, after, limit),
    revokeToken: (meshId, pubkey, tokenId, nowMs) =>
      postgres.transaction(async (tx) => {
        const changed = await tx.execute(
          `UPDATE mesh.member_token SET revoked_at = coalesce(revoked_at, $4)
           WHERE mesh_id = $1 AND id = $2 AND pubkey = $3`,
          [meshId, ...comparable(tokenId), pubkey, new Date(nowMs)],
        );
        return changed === 1;
      }),
    revokeMember: (meshId, by, pubkey, nowMs) => postgres.transaction((tx) => endMember(tx, meshId, by, pubkey, nowMs)),
    setRole: (meshId, by, pubkey, role) => postgres.transaction((tx) => updateRole(tx, meshId, by, pubkey, role)),
    listSettings: (meshId) => selectSettings(committed, meshId),
    changeSetting: (meshId, by, setting, nowMs) =>
      postgres.transaction((tx) => writeSetting(tx, meshId, by, setting, nowMs)),
    count: (meshId, what, upTo, nowMs) =>
      what === "tokens" ? countTokens(committed, meshId, upTo) : countOpenInvites(committed, meshId, upTo, nowMs),
  };
}

async function insertMesh(
  tx: PostgresTransaction,
  mesh: Mesh,
  owner: { pubkey: string; name: string },
  nowMs: number,
): Promise<CreateMeshOutcome> {
  // Waits for a transaction that is creating a mesh of this name, and then reads the row that it created.
  const created = await tx.execute(
    "INSERT INTO mesh.mesh (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
    [mesh.id, mesh.name, new Date(nowMs)],
  );
  if (created === 1) return { type: "created", mesh, owner: await insertMember(tx, mesh.id, owner, "owner", nowMs) };
  const stored = await selectMeshByName(tx, mesh.name);
  if (stored === undefined) return { type: "different" };
  const member = await selectMember(tx, stored.id, owner.pubkey);
  const same = member?.role === "owner" && member.name === owner.name && !member.revoked;
  return same ? { type: "exists", mesh: stored, owner: member } : { type: "different" };
}

async function insertMember(
  tx: PostgresTransaction,
  meshId: string,
  member: { pubkey: string; name: string },
  role: Role,
  nowMs: number,
): Promise<Member> {
  await tx.execute("INSERT INTO mesh.member (mesh_id, pubkey, name, role, joined_at) VALUES ($1, $2, $3, $4, $5)", [
    meshId,
    member.pubkey,
    member.name,
    role,
    new Date(nowMs),
  ]);
  return { meshId, pubkey: member.pubkey, name: member.name, role, joinedAt: nowMs, revoked: false };
}

async function spendInvite(
  tx: PostgresTransaction,
  meshId: string,
  secretHash: Uint8Array,
  member: { pubkey: string; name: string | undefined },
  nowMs: number,
): Promise<JoinOutcome> {
  await lockMesh(tx, meshId);
  const invite = await selectInviteBySecret(tx, meshId, secretHash);
  if (invite === undefined) return { type: "refused" };
  const present = await selectMember(tx, meshId, member.pubkey);
  const decision = decideJoin(invite, { pubkey: member.pubkey, present }, nowMs);
  if (decision === "already_member" && present !== undefined) return { type: decision, member: present };
  if (decision !== "joined") return { type: "refused" };
  const named = decideName(invite, member.name);
  if (named.type !== "named") return named;
  const { name } = named;
  if (await hasName(tx, meshId, name)) return { type: "name_taken" };
  await markInviteUsed(tx, meshId, invite.id, member.pubkey, nowMs);
  return { type: "joined", member: await insertMember(tx, meshId, { pubkey: member.pubkey, name }, "member", nowMs) };
}

async function endInvite(
  tx: PostgresTransaction,
  meshId: string,
  by: string,
  inviteId: string,
  nowMs: number,
): Promise<InviteRevokeOutcome> {
  await lockMesh(tx, meshId);
  const caller = await selectMember(tx, meshId, by);
  const outcome = decideInviteRevoke(caller, await selectInvite(tx, meshId, inviteId));
  if (outcome.type === "revoked") await markInviteRevoked(tx, meshId, inviteId, nowMs);
  return outcome;
}

async function endMember(
  tx: PostgresTransaction,
  meshId: string,
  by: string,
  pubkey: string,
  nowMs: number,
): Promise<RevokeOutcome> {
  await lockMember(tx, meshId, pubkey);
  await lockMesh(tx, meshId);
  if (!isLiveOwner(await selectMember(tx, meshId, by))) return "not_an_owner";
  const member = await selectMember(tx, meshId, pubkey);
  if (member === undefined) return "not_found";
  if (member.revoked) return "already_revoked";
  if (member.role === "owner" && (await countOwners(tx, meshId)) === 1) return "last_owner";
  const values = [meshId, pubkey, new Date(nowMs)];
  await tx.execute("UPDATE mesh.member SET revoked_at = $3 WHERE mesh_id = $1 AND pubkey = $2", values);
  await tx.execute(
    "UPDATE mesh.member_token SET revoked_at = coalesce(revoked_at, $3) WHERE mesh_id = $1 AND pubkey = $2",
    values,
  );
  return "revoked";
}

async function updateRole(
  tx: PostgresTransaction,
  meshId: string,
  by: string,
  pubkey: string,
  role: Role,
): Promise<RoleOutcome> {
  await lockMember(tx, meshId, pubkey);
  await lockMesh(tx, meshId);
  const caller = await selectMember(tx, meshId, by);
  const member = await selectMember(tx, meshId, pubkey);
  const outcome = decideRole({ caller, member, role, owners: await countOwners(tx, meshId) });
  if (outcome === "changed") {
    await tx.execute("UPDATE mesh.member SET role = $3 WHERE mesh_id = $1 AND pubkey = $2", [meshId, pubkey, role]);
  }
  return outcome;
}

async function writeSetting(
  tx: PostgresTransaction,
  meshId: string,
  by: string,
  { key, value }: { readonly key: string; readonly value: string | undefined },
  nowMs: number,
): Promise<boolean> {
  await lockMesh(tx, meshId);
  if (!isLiveOwner(await selectMember(tx, meshId, by))) return false;
  if (value === undefined) await deleteSetting(tx, meshId, key);
  else await upsertSetting(tx, meshId, { key, value, setBy: by, setAt: nowMs });
  return true;
}

/** True for the name of a member or a former member. Not every database's own language lower-cases I to i. */
async function hasName(db: Reading, meshId: string, name: string): Promise<boolean> {
  const text = `SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND lower(name) = lower($2 COLLATE "C") LIMIT 1`;
  return (await db.query(text, [meshId, ...comparable(name)])).length > 0;
}

async function countOwners(tx: PostgresTransaction, meshId: string): Promise<number> {
  const [row] = await tx.query<{ owners: number }>(
    "SELECT count(*) AS owners FROM mesh.member WHERE mesh_id = $1 AND role = 'owner' AND revoked_at IS NULL",
    [meshId],
  );
  return row?.owners ?? 0;
}

async function selectMeshByName(db: Reading, name: string): Promise<Mesh | undefined> {
  const [mesh] = await db.query<Mesh>("SELECT id, name FROM mesh.mesh WHERE name = $1", comparable(name));
  return mesh;
}

async function selectMember(db: Reading, meshId: string, pubkey: string): Promise<Member | undefined> {
  const [row] = await db.query<MemberRow>(
    `SELECT ${memberColumns} FROM mesh.member m WHERE m.mesh_id = $1 AND m.pubkey = $2`,
    [meshId, ...comparable(pubkey)],
  );
  return row && toMember(row);
}

async function selectRevoked(db: Reading, meshId: string, pubkeys: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ pubkey: string }>(
    `SELECT k.pubkey FROM unnest($2::text[]) WITH ORDINALITY AS k (pubkey, n)
     WHERE NOT EXISTS (SELECT 1 FROM mesh.member m
       WHERE m.mesh_id = $1 AND m.pubkey = k.pubkey AND m.revoked_at IS NULL)
     ORDER BY k.n`,
    [meshId, pubkeys],
  );
  return rows.map((row) => row.pubkey);
}

async function selectMembers(db: Reading, meshId: string, after: string, limit: number): Promise<Page<Member>> {
  const rows = await db.query<MemberRow>(
    `SELECT ${memberColumns} FROM mesh.member m
     WHERE m.mesh_id = $1 AND m.pubkey > $2 AND m.revoked_at IS NULL ORDER BY m.pubkey LIMIT $3`,
    [meshId, beforeNul(after), limit],
  );
  return pageOf(rows.map(toMember), limit, (member) => member.pubkey);
}

async function selectTokens(
  db: Reading,
  meshId: string,
  pubkey: string,
  after: string,
  limit: number,
): Promise<Page<TokenRecord>> {
  const rows = await db.query<TokenRow>(
    `SELECT id, label, created_at, revoked_at FROM mesh.member_token
     WHERE mesh_id = $1 AND id > $2 AND pubkey = $3 ORDER BY id LIMIT $4`,
    [meshId, beforeNul(after), pubkey, limit],
  );
  return pageOf(rows.map(toTokenRecord), limit, (record) => record.id);
}
