// Branches and merges of a space on SQLite.
import type { Sqlite } from "@claudemesh/storage/sqlite";
import type { Branch, MergeRow, SpaceRef } from "../../ports/rows.ts";
import { type BranchColumns, branchColumns, toBranch } from "../rows.ts";

export function selectBranches(db: Sqlite, space: SpaceRef, names: readonly string[]): Branch[] {
  const select = db.sql<BranchColumns>(
    `SELECT ${branchColumns} FROM space_branch WHERE mesh_id = ? AND space_id = ? AND name = ?`,
  );
  return names.flatMap((name) => {
    const row = select.get(space.meshId, space.spaceId, name);
    return row === undefined ? [] : [toBranch(row)];
  });
}

export function selectBranchPage(db: Sqlite, space: SpaceRef, after: string | undefined, limit: number): Branch[] {
  const rows = db
    .sql<BranchColumns>(
      `SELECT ${branchColumns} FROM space_branch WHERE mesh_id = ? AND space_id = ? AND (? IS NULL OR name > ?)
       ORDER BY name LIMIT ?`,
    )
    .all(space.meshId, space.spaceId, after ?? null, after ?? null, limit);
  return rows.map(toBranch);
}

export function insertBranch(tx: Sqlite, space: SpaceRef, branch: Branch, nowMs: number): void {
  tx.sql(
    `INSERT INTO space_branch (mesh_id, space_id, name, lineage, created_seq, created_at) VALUES (?, ?, ?, ?, ?, ?)`,
  ).run(space.meshId, space.spaceId, branch.name, JSON.stringify(branch.lineage), branch.createdSeq, nowMs);
}

export function markBranchDeleted(tx: Sqlite, space: SpaceRef, name: string, seq: number): void {
  tx.sql("UPDATE space_branch SET deleted_seq = ? WHERE mesh_id = ? AND space_id = ? AND name = ?").run(
    seq,
    space.meshId,
    space.spaceId,
    name,
  );
}

export function selectMerges(db: Sqlite, space: SpaceRef, pair: readonly [string, string], limit: number): MergeRow[] {
  const rows = db
    .sql<{ seq: number; source_branch: string; source_seq: number }>(
      `SELECT seq, source_branch, source_seq FROM space_merge
       WHERE mesh_id = ? AND space_id = ? AND first_branch = ? AND second_branch = ? ORDER BY seq DESC LIMIT ?`,
    )
    .all(space.meshId, space.spaceId, ...pair, limit);
  return rows.map((row) => ({ seq: row.seq, sourceBranch: row.source_branch, sourceSeq: row.source_seq }));
}

export function insertMerge(tx: Sqlite, space: SpaceRef, pair: readonly [string, string], merge: MergeRow): void {
  tx.sql(
    `INSERT INTO space_merge (mesh_id, space_id, first_branch, second_branch, seq, source_branch, source_seq)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  ).run(space.meshId, space.spaceId, ...pair, merge.seq, merge.sourceBranch, merge.sourceSeq);
}
