// The commit log and what members signed, on PostgreSQL.
import type { CommitRow, InvocationRow, RowBound, SpaceRef } from "../../ports/rows.ts";
import { type CommitColumns, commitColumns, toCommit } from "../rows.ts";
import type { Reading, Statement } from "./reading.ts";

export async function selectLog(db: Reading, space: SpaceRef, after: number, bound: RowBound): Promise<CommitRow[]> {
  const rows = await db.query<CommitColumns>(
    `SELECT ${commitColumns} FROM (
       SELECT ${commitColumns}, sum(octet_length(original)) OVER (ORDER BY seq) AS bytes, row_number() OVER (ORDER BY seq) AS n
       FROM mesh.space_commit WHERE mesh_id = $1 AND space_id = $2 AND seq > $3 ORDER BY seq LIMIT $4) c
     WHERE bytes <= $5 OR n = 1 ORDER BY seq`,
    [space.meshId, space.spaceId, after, bound.rows, bound.bytes],
  );
  return rows.map(toCommit);
}

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
