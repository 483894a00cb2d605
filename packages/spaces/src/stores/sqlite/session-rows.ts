// Spaces, their sessions and verdicts on SQLite. Callers that write hold the write lock, which is every lock there is.
import type { Sqlite } from "@claudemesh/storage/sqlite";
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

export function selectSpace(db: Sqlite, space: SpaceRef): SpaceRow | undefined {
  const row = db
    .sql<SpaceColumns>(`SELECT ${spaceColumns} FROM space WHERE mesh_id = ? AND space_id = ?`)
    .get(space.meshId, space.spaceId);
  return row && toSpace(row);
}

export function selectSpaces(db: Sqlite, meshId: string, after: string, limit: number): SpaceRow[] {
  const rows = db
    .sql<SpaceColumns>(`SELECT ${spaceColumns} FROM space WHERE mesh_id = ? AND space_id > ? ORDER BY space_id LIMIT ?`)
    .all(meshId, after, limit);
  return rows.map(toSpace);
}

export function countRows(db: Sqlite, meshId: string, what: "spaces" | "sessions", upTo: number): number {
  const table = what === "spaces" ? "space" : "space_session";
  const counted = `SELECT count(*) AS n FROM (SELECT 1 FROM ${table} WHERE mesh_id = ? LIMIT ?)`;
  return db.sql<{ n: number }>(counted).get(meshId, upTo)?.n ?? 0;
}

export function insertSpace(
  tx: Sqlite,
  space: SpaceRef,
  { signedWrites, createdBy }: SpaceSettings,
  nowMs: number,
): "created" | "exists" | "different" {
  const stored = selectSpace(tx, space);
  if (stored !== undefined)
    return (signedWrites ?? stored.signedWrites) === stored.signedWrites ? "exists" : "different";
  tx.sql(
    `INSERT INTO space (mesh_id, space_id, signed_writes, last_seq, created_by, created_at) VALUES (?, ?, ?, 0, ?, ?)`,
  ).run(space.meshId, space.spaceId, signedWrites ?? "optional", createdBy, nowMs);
  tx.sql(
    `INSERT INTO space_branch (mesh_id, space_id, name, lineage, created_seq, created_at) VALUES (?, ?, '', '[]', 0, ?)`,
  ).run(space.meshId, space.spaceId, nowMs);
  return "created";
}

export function updateSignedWrites(tx: Sqlite, space: SpaceRef, signedWrites: SignedWrites): boolean {
  const { changes } = tx
    .sql("UPDATE space SET signed_writes = ? WHERE mesh_id = ? AND space_id = ?")
    .run(signedWrites, space.meshId, space.spaceId);
  return changes > 0;
}

export function raiseLastSeq(tx: Sqlite, space: SpaceRef, seq: number): void {
  tx.sql("UPDATE space SET last_seq = ? WHERE mesh_id = ? AND space_id = ?").run(seq, space.meshId, space.spaceId);
}

export function selectSession(db: Sqlite, space: SpaceRef, sessionId: string): SessionRow | undefined {
  const row = db
    .sql<SessionColumns>(
      `SELECT ${sessionColumns} FROM space_session WHERE mesh_id = ? AND space_id = ? AND session_id = ?`,
    )
    .get(space.meshId, space.spaceId, sessionId);
  return row && toSession(sessionId, row);
}

export function upsertSession(tx: Sqlite, { meshId, spaceId }: SpaceRef, session: SessionRow): void {
  const { sessionId, memberPubkey, epoch, tokenHash, lastLocalSeq, usedAtMs } = session;
  tx.sql(
    `INSERT INTO space_session
       (mesh_id, space_id, session_id, member_pubkey, epoch, token_hash, last_local_seq, used_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (mesh_id, space_id, session_id) DO UPDATE
     SET epoch = excluded.epoch, token_hash = excluded.token_hash, used_at = excluded.used_at`,
  ).run(meshId, spaceId, sessionId, memberPubkey, epoch, tokenHash, lastLocalSeq, usedAtMs);
}

export function selectOpen(
  db: Sqlite,
  space: SpaceRef,
  memberPubkey: string,
  openHash: Uint8Array,
): OpenRow | undefined {
  const row = db
    .sql<{ session_id: string; epoch: number; salt: Uint8Array; resumed: number }>(
      `SELECT session_id, epoch, salt, resumed FROM space_session_open
       WHERE mesh_id = ? AND space_id = ? AND member_pubkey = ? AND open_hash = ?`,
    )
    .get(space.meshId, space.spaceId, memberPubkey, openHash);
  if (row === undefined) return undefined;
  const { session_id: sessionId, epoch, salt, resumed } = row;
  return { memberPubkey, openHash, sessionId, epoch, salt, resumed: resumed === 1 };
}

export function insertOpen(tx: Sqlite, { meshId, spaceId }: SpaceRef, open: OpenRow): void {
  const { memberPubkey, openHash, sessionId, epoch, salt, resumed } = open;
  tx.sql(
    `INSERT INTO space_session_open
       (mesh_id, space_id, member_pubkey, open_hash, session_id, epoch, salt, resumed)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(meshId, spaceId, memberPubkey, openHash, sessionId, epoch, salt, resumed ? 1 : 0);
}

export function selectVerdicts(
  db: Sqlite,
  space: SpaceRef,
  sessionId: string,
  localSeqs: readonly number[],
): VerdictRow[] {
  const select = db.sql<VerdictColumns>(
    `SELECT ${verdictColumns} FROM space_verdict
     WHERE mesh_id = ? AND space_id = ? AND session_id = ? AND local_seq = ?`,
  );
  return localSeqs.flatMap((localSeq) => {
    const row = select.get(space.meshId, space.spaceId, sessionId, localSeq);
    return row === undefined ? [] : [toVerdict(sessionId, row)];
  });
}

export function insertVerdicts(tx: Sqlite, { meshId, spaceId }: SpaceRef, verdicts: readonly VerdictRow[]): void {
  const insert = tx.sql(
    `INSERT INTO space_verdict
       (mesh_id, space_id, session_id, local_seq, member_pubkey, fingerprint, branch, seq, result, decided_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const { sessionId, localSeq, memberPubkey, fingerprint, branch, seq, result, decidedAtMs } of verdicts) {
    insert.run(
      meshId,
      spaceId,
      sessionId,
      localSeq,
      memberPubkey,
      fingerprint,
      branch,
      seq ?? null,
      result,
      decidedAtMs,
    );
  }
}

/** Each session moves to the verdict that is given for it. */
export function moveSessions(tx: Sqlite, space: SpaceRef, verdicts: readonly VerdictRow[]): void {
  const move = tx.sql(
    `UPDATE space_session SET last_local_seq = ?, used_at = ?
     WHERE mesh_id = ? AND space_id = ? AND session_id = ?`,
  );
  for (const { sessionId, localSeq, decidedAtMs } of verdicts) {
    move.run(localSeq, decidedAtMs, space.meshId, space.spaceId, sessionId);
  }
}
