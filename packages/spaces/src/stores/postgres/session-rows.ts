// Spaces, their sessions and verdicts on PostgreSQL.
import type { PostgresTransaction } from "@claudemesh/storage/postgres";
import type {
  OpenRow,
  SessionRow,
  SignedWrites,
  SpaceRef,
  SpaceRow,
  SpaceSettings,
  VerdictRow,
} from "../../ports/rows.ts";
import {
  type SessionColumns,
  type SpaceColumns,
  sessionColumns,
  spaceColumns,
  toSession,
  toSpace,
  toVerdict,
  type VerdictColumns,
  verdictColumns,
} from "../rows.ts";
import type { Reading } from "./reading.ts";

const selectSpaceText = `SELECT ${spaceColumns} FROM mesh.space WHERE mesh_id = $1 AND space_id = $2`;

export async function selectSpace(db: Reading, space: SpaceRef): Promise<SpaceRow | undefined> {
  const [row] = await db.query<SpaceColumns>(selectSpaceText, [space.meshId, space.spaceId], "space");
  return row && toSpace(row);
}

/**
 * Waits for the space's lock and holds it until the transaction ends. A statement of its own: what later statements
 * read sees everything that was committed under the lock before.
 */
export async function lockSpace(tx: PostgresTransaction, space: SpaceRef): Promise<SpaceRow | undefined> {
  const text = `${selectSpaceText} FOR NO KEY UPDATE`;
  const [row] = await tx.query<SpaceColumns>(text, [space.meshId, space.spaceId], "lock_space");
  return row && toSpace(row);
}

export async function selectSpaces(db: Reading, meshId: string, after: string, limit: number): Promise<SpaceRow[]> {
  const rows = await db.query<SpaceColumns>(
    `SELECT ${spaceColumns} FROM mesh.space WHERE mesh_id = $1 AND space_id > $2 ORDER BY space_id LIMIT $3`,
    [meshId, after, limit],
  );
  return rows.map(toSpace);
}

export async function countRows(
  db: Reading,
  meshId: string,
  what: "spaces" | "sessions",
  upTo: number,
): Promise<number> {
  const table = what === "spaces" ? "mesh.space" : "mesh.space_session";
  const counted = `SELECT count(*)::int AS n FROM (SELECT FROM ${table} WHERE mesh_id = $1 LIMIT $2) AS those_counted`;
  const [row] = await db.query<{ n: number }>(counted, [meshId, upTo]);
  return row?.n ?? 0;
}

export async function insertSpace(
  tx: PostgresTransaction,
  space: SpaceRef,
  { signedWrites, createdBy }: SpaceSettings,
  nowMs: number,
): Promise<"created" | "exists" | "different"> {
  const inserted = await tx.execute(
    `INSERT INTO mesh.space (mesh_id, space_id, signed_writes, last_seq, created_by, created_at)
     VALUES ($1, $2, $3, 0, $4, $5) ON CONFLICT DO NOTHING`,
    [space.meshId, space.spaceId, signedWrites ?? "optional", createdBy, new Date(nowMs)],
  );
  if (inserted === 0) {
    // The insert waited for the other transaction; this statement began afterwards, and sees its row.
    const stored = await selectSpace(tx, space);
    return (signedWrites ?? stored?.signedWrites) === stored?.signedWrites ? "exists" : "different";
  }
  await tx.execute(
    `INSERT INTO mesh.space_branch (mesh_id, space_id, name, lineage, created_seq, created_at)
     VALUES ($1, $2, '', '[]', 0, $3)`,
    [space.meshId, space.spaceId, new Date(nowMs)],
  );
  return "created";
}

export async function updateSignedWrites(
  tx: PostgresTransaction,
  space: SpaceRef,
  signedWrites: SignedWrites,
): Promise<boolean> {
  const updated = await tx.execute("UPDATE mesh.space SET signed_writes = $3 WHERE mesh_id = $1 AND space_id = $2", [
    space.meshId,
    space.spaceId,
    signedWrites,
  ]);
  return updated > 0;
}

const selectSessionText = `SELECT ${sessionColumns} FROM mesh.space_session
  WHERE mesh_id = $1 AND space_id = $2 AND session_id = $3`;

export async function selectSession(db: Reading, space: SpaceRef, sessionId: string): Promise<SessionRow | undefined> {
  const values = [space.meshId, space.spaceId, sessionId];
  const [row] = await db.query<SessionColumns>(selectSessionText, values, "space_session");
  return row && toSession(sessionId, row);
}

export async function lockSession(
  tx: PostgresTransaction,
  space: SpaceRef,
  sessionId: string,
): Promise<SessionRow | undefined> {
  const values = [space.meshId, space.spaceId, sessionId];
  const [row] = await tx.query<SessionColumns>(`${selectSessionText} FOR NO KEY UPDATE`, values, "lock_session");
  return row && toSession(sessionId, row);
}

/** A writer's session, locked, and whether its member is a member now. */
export type FoundWriter = { readonly session: SessionRow | undefined; readonly live: boolean };

/**
 * One for each of them, in their order. A member is locked as such: a revocation waits until the transaction has
 * ended, or was committed before and is seen. The space was locked before, and only the mesh's lock may be asked for
 * afterwards; a revocation takes the member and the mesh in that order too, so that no two wait for each other.
 */
export async function lockWriters(
  tx: PostgresTransaction,
  space: SpaceRef,
  writers: readonly { readonly sessionId: string; readonly memberPubkey: string }[],
): Promise<FoundWriter[]> {
  const sessionIds = writers.map(({ sessionId }) => sessionId);
  const rows = await tx.query<{ live: boolean } & (SessionColumns | Record<keyof SessionColumns, null>)>(
    `SELECT s.*, (SELECT true FROM mesh.member m
         WHERE m.mesh_id = $1 AND m.pubkey = w.pubkey AND m.revoked_at IS NULL FOR SHARE) IS NOT NULL AS live
     FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS w (session_id, pubkey, n)
     LEFT JOIN LATERAL (
       SELECT ${sessionColumns} FROM mesh.space_session
       WHERE mesh_id = $1 AND space_id = $2 AND session_id = w.session_id FOR NO KEY UPDATE) s ON true
     ORDER BY w.n`,
    [space.meshId, space.spaceId, sessionIds, writers.map(({ memberPubkey }) => memberPubkey)],
    "lock_writers",
  );
  return rows.map((row, index) => ({
    live: row.live,
    session: row.epoch === null ? undefined : toSession(sessionIds[index] ?? "", row),
  }));
}

/** The member is locked as in `lockWriters`. */
export async function isLiveMember(tx: PostgresTransaction, meshId: string, pubkey: string): Promise<boolean> {
  const rows = await tx.query(
    "SELECT 1 FROM mesh.member WHERE mesh_id = $1 AND pubkey = $2 AND revoked_at IS NULL FOR SHARE",
    [meshId, pubkey],
    "is_live_member",
  );
  return rows.length > 0;
}

export async function upsertSession(
  tx: PostgresTransaction,
  { meshId, spaceId }: SpaceRef,
  { sessionId, memberPubkey, epoch, tokenHash, lastLocalSeq, usedAtMs }: SessionRow,
): Promise<void> {
  await tx.execute(
    `INSERT INTO mesh.space_session
       (mesh_id, space_id, session_id, member_pubkey, epoch, token_hash, last_local_seq, used_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
     ON CONFLICT (mesh_id, space_id, session_id) DO UPDATE
     SET epoch = excluded.epoch, token_hash = excluded.token_hash, used_at = excluded.used_at`,
    [meshId, spaceId, sessionId, memberPubkey, epoch, tokenHash, lastLocalSeq, new Date(usedAtMs)],
  );
}

export async function selectOpen(
  db: Reading,
  space: SpaceRef,
  memberPubkey: string,
  openHash: Uint8Array,
): Promise<OpenRow | undefined> {
  const [row] = await db.query<{ session_id: string; epoch: number; salt: Uint8Array; resumed: boolean }>(
    `SELECT session_id, epoch, salt, resumed FROM mesh.space_session_open
     WHERE mesh_id = $1 AND space_id = $2 AND member_pubkey = $3 AND open_hash = $4`,
    [space.meshId, space.spaceId, memberPubkey, openHash],
  );
  if (row === undefined) return undefined;
  const { session_id: sessionId, epoch, salt, resumed } = row;
  return { memberPubkey, openHash, sessionId, epoch, salt, resumed };
}

export async function insertOpen(
  tx: PostgresTransaction,
  { meshId, spaceId }: SpaceRef,
  { memberPubkey, openHash, sessionId, epoch, salt, resumed }: OpenRow,
): Promise<void> {
  await tx.execute(
    `INSERT INTO mesh.space_session_open
       (mesh_id, space_id, member_pubkey, open_hash, session_id, epoch, salt, resumed)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [meshId, spaceId, memberPubkey, openHash, sessionId, epoch, salt, resumed],
  );
}

export async function selectVerdicts(
  db: Reading,
  space: SpaceRef,
  sessionId: string,
  localSeqs: readonly number[],
): Promise<VerdictRow[]> {
  const rows = await db.query<VerdictColumns>(
    `SELECT ${verdictColumns} FROM mesh.space_verdict
     WHERE mesh_id = $1 AND space_id = $2 AND session_id = $3 AND local_seq = ANY ($4::bigint[])`,
    [space.meshId, space.spaceId, sessionId, localSeqs],
    "space_verdicts",
  );
  return rows.map((row) => toVerdict(sessionId, row));
}
