// The commit log and what members signed, on SQLite.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { CommitRow, InvocationRow, LogCursor, RowBound, SpaceRef } from "../../ports/rows.ts";
import { type CommitColumns, commitColumns, toCommit } from "../rows.ts";

export function selectLog(db: Sqlite, space: SpaceRef, cursor: LogCursor, bound: RowBound): CommitRow[] {
  const isForward = "after" in cursor;
  const range = [space.meshId, space.spaceId, isForward ? cursor.after : cursor.before] as const;
  const logRows = isForward ? logRowsAfter : logRowsBefore;
  const sizes = db
    .sql<{ bytes: number }>(`SELECT octet_length(original) AS bytes ${logRows}`)
    .all(...range, bound.rows);
  let bytes = 0;
  const beyond = sizes.findIndex((row, index) => {
    bytes += row.bytes;
    return bytes > bound.bytes && index > 0;
  });
  const fitting = beyond < 0 ? sizes.length : beyond;
  const rows = db.sql<CommitColumns>(`SELECT ${commitColumns} ${logRows}`).all(...range, fitting);
  return (isForward ? rows : rows.toReversed()).map(toCommit);
}

const logRowsAfter = "FROM space_commit WHERE mesh_id = ? AND space_id = ? AND seq > ? ORDER BY seq LIMIT ?";
const logRowsBefore = "FROM space_commit WHERE mesh_id = ? AND space_id = ? AND seq < ? ORDER BY seq DESC LIMIT ?";

export function insertCommits(tx: Sqlite, { meshId, spaceId }: SpaceRef, commits: readonly CommitRow[]): void {
  const insert = tx.sql(
    `INSERT INTO space_commit (mesh_id, space_id, seq, branch, session_id, local_seq, member_pubkey, original,
       resolution, invocation_ref, authorization_ref, committed_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const commit of commits) {
    const { seq, branch, sessionId, localSeq, memberPubkey, original, resolution, committedAtMs } = commit;
    const { invocationRef = null, authorizationRef = null } = commit;
    const request = [sessionId, localSeq, memberPubkey, original, resolution] as const;
    insert.run(meshId, spaceId, seq, branch, ...request, invocationRef, authorizationRef, committedAtMs);
  }
}

export function selectInvocation(db: Sqlite, space: SpaceRef, hash: string): InvocationRow | undefined {
  return db
    .sql<{ hash: string; content: string }>(
      "SELECT hash, content FROM space_invocation WHERE mesh_id = ? AND space_id = ? AND hash = ?",
    )
    .get(space.meshId, space.spaceId, hash);
}

/** The same content again is the same row. */
export function insertInvocations(tx: Sqlite, space: SpaceRef, invocations: readonly InvocationRow[]): void {
  const insert = tx.sql(
    "INSERT INTO space_invocation (mesh_id, space_id, hash, content) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
  );
  for (const { hash, content } of invocations) insert.run(space.meshId, space.spaceId, hash, content);
}
