// MembersStore on SQLite. Reads see committed rows; changes go through the group commit, each job deciding and
// writing inside one transaction.
import type { GroupCommit } from "@claudemesh/storage/group-commit";
import { loadMigrations, type Migration } from "@claudemesh/storage/migrations";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { decideRole, isLiveOwner } from "../../core/decide-role.ts";
import { decideInviteRevoke, decideJoin, decideName } from "../../core/invite-state.ts";
import type {
  CreateMeshOutcome,
  InviteRevokeOutcome,
  JoinOutcome,
  Member,
  MembersStore,
  Mesh,
  MeshMember,
  Page,
  RevokeOutcome,
  Role,
  RoleOutcome,
  TokenRecord,
} from "../../ports.ts";
import { type MemberRow, memberColumns, pageOf, type TokenRow, toMember, toTokenRecord } from "../member-rows.ts";
import {
  insertInvite,
  markInviteRevoked,
  markInviteUsed,
  selectInvite,
  selectInviteBySecret,
  selectInvites,
} from "./invite-rows.ts";
import { countOpenInvites, countTokens, deleteSetting, selectSettings, upsertSetting } from "./setting-rows.ts";

export function membersMigrations(): Migration[] {
  return loadMigrations("members", new URL("./migrations/", import.meta.url));
}

export function createSqliteMembersStore(db: Sqlite, commit: GroupCommit): MembersStore {
  const tokens = new SnapshotTokens();
  return {
    createMesh: (mesh, owner, nowMs) => commit.submit((tx) => insertMesh(tx, mesh, owner, nowMs)),
    findMesh: async (nameOrId) => selectMesh(db, nameOrId),
    findMember: async (meshId, pubkey) => selectMember(db, meshId, pubkey),
    isNameTaken: async (meshId, name) => hasName(db, meshId, name),
    findRevoked: async (meshId, pubkeys) => pubkeys.filter((pubkey) => !isLiveMember(db, meshId, pubkey)),
    listMembers: async (meshId, after, limit) => selectMembers(db, meshId, after, limit),
    addInvite: (meshId, invite, nowMs) => commit.submit((tx) => insertInvite(tx, meshId, invite, nowMs)),
    listInvites: async (meshId, after, limit) => selectInvites(db, meshId, after, limit),
    revokeInvite: (meshId, by, inviteId, nowMs) => commit.submit((tx) => endInvite(tx, meshId, by, inviteId, nowMs)),
    join: (meshId, secretHash, member, nowMs) =>
      commit.submit((tx) => spendInvite(tx, meshId, secretHash, member, nowMs)),
    addToken: (meshId, token, nowMs) =>
      commit.submit((tx) => {
        tx.sql(
          "INSERT INTO member_token (mesh_id, id, token_hash, pubkey, label, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        ).run(meshId, token.id, Buffer.from(token.tokenHash, "hex"), token.pubkey, token.label, nowMs);
      }),
    findByToken: (nameOrId, tokenHash) => commit.read((tx) => tokens.find(tx, nameOrId, tokenHash)),
    listTokens: async (meshId, pubkey, after, limit) => selectTokens(db, meshId, pubkey, after, limit),
    revokeToken: (meshId, pubkey, tokenId, nowMs) =>
      commit.submit((tx) => {
        const result = tx
          .sql(
            "UPDATE member_token SET revoked_at = coalesce(revoked_at, ?) WHERE mesh_id = ? AND id = ? AND pubkey = ?",
          )
          .run(nowMs, meshId, tokenId, pubkey);
        return result.changes === 1;
      }),
    revokeMember: (meshId, by, pubkey, nowMs) => commit.submit((tx) => endMember(tx, meshId, by, pubkey, nowMs)),
    setRole: (meshId, by, pubkey, role) => commit.submit((tx) => updateRole(tx, meshId, by, pubkey, role)),
    listSettings: async (meshId) => selectSettings(db, meshId),
    changeSetting: (meshId, by, setting, nowMs) => commit.submit((tx) => writeSetting(tx, meshId, by, setting, nowMs)),
    count: async (meshId, what, upTo, nowMs) =>
      what === "tokens" ? countTokens(db, meshId, upTo) : countOpenInvites(db, meshId, upTo, nowMs),
  };
}

function insertMesh(tx: Sqlite, mesh: Mesh, owner: { pubkey: string; name: string }, nowMs: number): CreateMeshOutcome {
  const stored = selectMesh(tx, mesh.name);
  if (stored !== undefined) {
    const member = selectMember(tx, stored.id, owner.pubkey);
    const same = member?.role === "owner" && member.name === owner.name && !member.revoked;
    return same ? { type: "exists", mesh: stored, owner: member } : { type: "different" };
  }
  tx.sql("INSERT INTO mesh (id, name, created_at) VALUES (?, ?, ?)").run(mesh.id, mesh.name, nowMs);
  return { type: "created", mesh, owner: insertMember(tx, mesh.id, owner, "owner", nowMs) };
}

function insertMember(
  tx: Sqlite,
  meshId: string,
  member: { pubkey: string; name: string },
  role: Role,
  nowMs: number,
): Member {
  tx.sql("INSERT INTO member (mesh_id, pubkey, name, role, joined_at) VALUES (?, ?, ?, ?, ?)").run(
    meshId,
    member.pubkey,
    member.name,
    role,
    nowMs,
  );
  return { meshId, pubkey: member.pubkey, name: member.name, role, joinedAt: nowMs, revoked: false };
}

function spendInvite(
  tx: Sqlite,
  meshId: string,
  secretHash: Uint8Array,
  member: { pubkey: string; name: string | undefined },
  nowMs: number,
): JoinOutcome {
  const invite = selectInviteBySecret(tx, meshId, secretHash);
  if (invite === undefined) return { type: "refused" };
  const present = selectMember(tx, meshId, member.pubkey);
  const decision = decideJoin(invite, { pubkey: member.pubkey, present }, nowMs);
  if (decision === "already_member" && present !== undefined) return { type: decision, member: present };
  if (decision !== "joined") return { type: "refused" };
  const named = decideName(invite, member.name);
  if (named.type !== "named") return named;
  const { name } = named;
  if (hasName(tx, meshId, name)) return { type: "name_taken" };
  markInviteUsed(tx, meshId, invite.id, member.pubkey, nowMs);
  return { type: "joined", member: insertMember(tx, meshId, { pubkey: member.pubkey, name }, "member", nowMs) };
}

function endInvite(tx: Sqlite, meshId: string, by: string, inviteId: string, nowMs: number): InviteRevokeOutcome {
  const outcome = decideInviteRevoke(selectMember(tx, meshId, by), selectInvite(tx, meshId, inviteId));
  if (outcome.type === "revoked") markInviteRevoked(tx, meshId, inviteId, nowMs);
  return outcome;
}

function endMember(tx: Sqlite, meshId: string, by: string, pubkey: string, nowMs: number): RevokeOutcome {
  if (!isLiveOwner(selectMember(tx, meshId, by))) return "not_an_owner";
  const member = selectMember(tx, meshId, pubkey);
  if (member === undefined) return "not_found";
  if (member.revoked) return "already_revoked";
  if (member.role === "owner" && countOwners(tx, meshId) === 1) return "last_owner";
  tx.sql("UPDATE member SET revoked_at = ? WHERE mesh_id = ? AND pubkey = ? AND revoked_at IS NULL").run(
    nowMs,
    meshId,
    pubkey,
  );
  tx.sql("UPDATE member_token SET revoked_at = coalesce(revoked_at, ?) WHERE mesh_id = ? AND pubkey = ?").run(
    nowMs,
    meshId,
    pubkey,
  );
  return "revoked";
}

function updateRole(tx: Sqlite, meshId: string, by: string, pubkey: string, role: Role): RoleOutcome {
  const caller = selectMember(tx, meshId, by);
  const member = selectMember(tx, meshId, pubkey);
  const outcome = decideRole({ caller, member, role, owners: countOwners(tx, meshId) });
  if (outcome === "changed") {
    tx.sql("UPDATE member SET role = ? WHERE mesh_id = ? AND pubkey = ?").run(role, meshId, pubkey);
  }
  return outcome;
}

function writeSetting(
  tx: Sqlite,
  meshId: string,
  by: string,
  { key, value }: { readonly key: string; readonly value: string | undefined },
  nowMs: number,
): boolean {
  if (!isLiveOwner(selectMember(tx, meshId, by))) return false;
  if (value === undefined) deleteSetting(tx, meshId, key);
  else upsertSetting(tx, meshId, { key, value, setBy: by, setAt: nowMs });
  return true;
}

/** True for the name of a member or a former member. */
function hasName(db: Sqlite, meshId: string, name: string): boolean {
  return db.sql("SELECT 1 FROM member WHERE mesh_id = ? AND lower(name) = lower(?)").get(meshId, name) !== undefined;
}

function countOwners(tx: Sqlite, meshId: string): number {
  const row = tx
    .sql<{ owners: number }>(
      "SELECT count(*) AS owners FROM member WHERE mesh_id = ? AND role = 'owner' AND revoked_at IS NULL",
    )
    .get(meshId);
  return row?.owners ?? 0;
}

function selectMesh(db: Sqlite, nameOrId: string): Mesh | undefined {
  const byId = db.sql<Mesh>("SELECT id, name FROM mesh WHERE id = ?").get(nameOrId);
  return byId ?? db.sql<Mesh>("SELECT id, name FROM mesh WHERE name = ?").get(nameOrId);
}

/** For transactions that must know, under the write lock, that a member has not been revoked. */
export function isLiveMember(tx: Sqlite, meshId: string, pubkey: string): boolean {
  return (
    tx.sql("SELECT 1 FROM member WHERE mesh_id = ? AND pubkey = ? AND revoked_at IS NULL").get(meshId, pubkey) !==
    undefined
  );
}

function selectMember(db: Sqlite, meshId: string, pubkey: string): Member | undefined {
  const row = db
    .sql<MemberRow>(`SELECT ${memberColumns} FROM member m WHERE m.mesh_id = ? AND m.pubkey = ?`)
    .get(meshId, pubkey);
  return row && toMember(row);
}

function selectMembers(db: Sqlite, meshId: string, after: string, limit: number): Page<Member> {
  const rows = db
    .sql<MemberRow>(
      `SELECT ${memberColumns} FROM member m
       WHERE m.mesh_id = ? AND m.pubkey > ? AND m.revoked_at IS NULL ORDER BY m.pubkey LIMIT ?`,
    )
    .all(meshId, after, limit);
  return pageOf(rows.map(toMember), limit, (member) => member.pubkey);
}

/**
 * Requests with the same token that share a snapshot would all read the same rows, so the first one's result serves the
 * others.
 */
class SnapshotTokens {
  readonly #callers = new Map<string, { readonly nameOrId: string; readonly caller: MeshMember }>();
  #snapshot = -1;

  find(db: Sqlite, nameOrId: string, tokenHash: string): MeshMember | undefined {
    if (!db.isTransaction) return selectByToken(db, nameOrId, tokenHash);
    if (db.transactionNumber !== this.#snapshot) {
      this.#snapshot = db.transactionNumber;
      this.#callers.clear();
    }
    const cached = this.#callers.get(tokenHash);
    // A mesh may be looked up by its name and by its id.
    if (cached?.nameOrId === nameOrId) return cached.caller;
    const caller = selectByToken(db, nameOrId, tokenHash);
    if (caller !== undefined) this.#callers.set(tokenHash, { nameOrId, caller });
    return caller;
  }
}

// A token is found by the mesh's id alone, so that an id that is also a name cannot lead to another mesh.
function selectByToken(db: Sqlite, nameOrId: string, tokenHash: string): MeshMember | undefined {
  const byId = selectTokenOfMesh(db, nameOrId, tokenHash);
  if (byId !== undefined) return byId;
  const mesh = selectMesh(db, nameOrId);
  return mesh === undefined || mesh.id === nameOrId ? undefined : selectTokenOfMesh(db, mesh.id, tokenHash);
}

function selectTokenOfMesh(db: Sqlite, meshId: string, tokenHash: string): MeshMember | undefined {
  const row = db
    .sql<MemberRow & { mesh_name: string }>(
      `SELECT ${memberColumns}, mesh.name AS mesh_name
       FROM member_token t
       JOIN member m ON m.mesh_id = t.mesh_id AND m.pubkey = t.pubkey
       JOIN mesh ON mesh.id = t.mesh_id
       WHERE t.mesh_id = ? AND t.token_hash = ? AND t.revoked_at IS NULL`,
    )
    .get(meshId, Buffer.from(tokenHash, "hex"));
  return row && { mesh: { id: row.mesh_id, name: row.mesh_name }, member: toMember(row) };
}

function selectTokens(db: Sqlite, meshId: string, pubkey: string, after: string, limit: number): Page<TokenRecord> {
  const rows = db
    .sql<TokenRow>(
      "SELECT id, label, created_at, revoked_at FROM member_token WHERE mesh_id = ? AND id > ? AND pubkey = ? ORDER BY id LIMIT ?",
    )
    .all(meshId, after, pubkey, limit);
  return pageOf(rows.map(toTokenRecord), limit, (record) => record.id);
}
