// The commit log and what members signed, on PostgreSQL.
import type { CommitRow, InvocationRow, LogCursor, RowBound, SpaceRef } from "../../ports/rows.ts";
import { type CommitColumns, commitColumns, toCommit } from "../rows.ts";
import type { Reading, Statement } from "./reading.ts";

export async function selectLog(
  db: Reading,
  space: SpaceRef,
  cursor: LogCursor,
  bound: RowBound,
): Promise<CommitRow[]> {
  const isForward = "after" in cursor;
  const from = isForward ? cursor.after : cursor.before;
  const values = [space.meshId, space.spaceId, from, bound.rows, bound.bytes];
  const rows = await db.query<CommitColumns>(isForward ? logSqlAfter : logSqlBefore, values);
  return rows.map(toCommit);
}

/** From the cursor on, so that what is left out for its bytes is what is furthest from it. */
const logSql = (range: string, nearestFirst: string) => `SELECT ${commitColumns} FROM (
    SELECT ${commitColumns}, sum(octet_length(original)) OVER (ORDER BY ${nearestFirst}) AS bytes,
      row_number() OVER (ORDER BY ${nearestFirst}) AS n
    FROM mesh.space_commit WHERE mesh_id = $1 AND space_id = $2 AND ${range} ORDER BY ${nearestFirst} LIMIT $4) c
  WHERE bytes <= $5 OR n = 1 ORDER BY seq`;
const logSqlAfter = logSql("seq > $3", "seq");
const logSqlBefore = logSql("seq < $3", "seq DESC");

export async function selectInvocation(db: Reading, space: SpaceRef, hash: string): Promise<InvocationRow | undefined> {
  const [row] = await db.query<{ hash: string; content: string }>(
    "SELECT hash, content FROM mesh.space_invocation WHERE mesh_id = $1 AND space_id = $2 AND hash = $3",
    [space.meshId, space.spaceId, hash],
  );
  return row;
}

/** The same content again is the same row. */
export function invocationsInsert({ meshId, spaceId }: SpaceRef, invocations: readonly InvocationRow[]): Statement {
  return {
    text: `INSERT INTO mesh.space_invocation (mesh_id, space_id, hash, content)
     SELECT $1, $2, * FROM unnest($3::text[], $4::text[]) ON CONFLICT DO NOTHING`,
    values: [meshId, spaceId, invocations.map((row) => row.hash), invocations.map((row) => row.content)],
  };
}
