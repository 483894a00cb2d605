// Branches and merges of a space on PostgreSQL.
import type { Branch, MergeRow, SpaceRef } from "../../ports/rows.ts";
import { type BranchColumns, branchColumns, toBranch } from "../rows.ts";
import type { Reading, Statement } from "./reading.ts";

export async function selectBranches(db: Reading, space: SpaceRef, names: readonly string[]): Promise<Branch[]> {
  const rows = await db.query<BranchColumns>(
    `SELECT ${branchColumns} FROM mesh.space_branch WHERE mesh_id = $1 AND space_id = $2 AND name = ANY ($3::text[])`,
    [space.meshId, space.spaceId, names],
    "space_branches",
  );
  return rows.map(toBranch);
}

export async function selectBranchPage(
  db: Reading,
  space: SpaceRef,
  after: string | undefined,
  limit: number,
): Promise<Branch[]> {
  const rows = await db.query<BranchColumns>(
    `SELECT ${branchColumns} FROM mesh.space_branch
     WHERE mesh_id = $1 AND space_id = $2 AND ($3::text IS NULL OR name > $3) ORDER BY name LIMIT $4`,
    [space.meshId, space.spaceId, after ?? null, limit],
  );
  return rows.map(toBranch);
}

export function branchInsert({ meshId, spaceId }: SpaceRef, branch: Branch, nowMs: number): Statement {
  return {
    text: `INSERT INTO mesh.space_branch (mesh_id, space_id, name, lineage, created_seq, created_at)
     VALUES ($1, $2, $3, $4, $5, $6)`,
    values: [meshId, spaceId, branch.name, JSON.stringify(branch.lineage), branch.createdSeq, new Date(nowMs)],
  };
}

export function branchDeletion({ meshId, spaceId }: SpaceRef, name: string, seq: number): Statement {
  return {
    text: "UPDATE mesh.space_branch SET deleted_seq = $4 WHERE mesh_id = $1 AND space_id = $2 AND name = $3",
    values: [meshId, spaceId, name, seq],
  };
}

export async function selectMerges(
  db: Reading,
  space: SpaceRef,
  pair: readonly [string, string],
  limit: number,
): Promise<MergeRow[]> {
  const rows = await db.query<{ seq: number; source_branch: string; source_seq: number }>(
    `SELECT seq, source_branch, source_seq FROM mesh.space_merge
     WHERE mesh_id = $1 AND space_id = $2 AND first_branch = $3 AND second_branch = $4 ORDER BY seq DESC LIMIT $5`,
    [space.meshId, space.spaceId, ...pair, limit],
  );
  return rows.map((row) => ({ seq: row.seq, sourceBranch: row.source_branch, sourceSeq: row.source_seq }));
}

export function mergeInsert(
  { meshId, spaceId }: SpaceRef,
  pair: readonly [string, string],
  { seq, sourceBranch, sourceSeq }: MergeRow,
): Statement {
  return {
    text: `INSERT INTO mesh.space_merge (mesh_id, space_id, first_branch, second_branch, seq, source_branch, source_seq)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    values: [meshId, spaceId, ...pair, seq, sourceBranch, sourceSeq],
  };
}
