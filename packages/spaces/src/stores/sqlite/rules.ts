// Looking for rows of spaces that do not fit together, on SQLite.
import { type RowCursor, type RuleStore, tablesOf } from "@claudemesh/storage/row-rules";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { createSqliteRuleStore, sqliteDialect } from "@claudemesh/storage/sqlite-rules";
import { type CommitText, type RevisionKey, withCommitRevisions } from "../commit-revisions.ts";
import { spaceRules } from "../row-rules.ts";

export function createSqliteSpaceRules(db: Sqlite): RuleStore {
  const rules = createSqliteRuleStore(db, { rules: spaceRules, dialect: sqliteDialect, tables: tablesOf(spaceRules) });
  return withCommitRevisions(rules, {
    readCommits: async (meshId, after, limit) => selectCommits(db, meshId, after, limit),
    findMissing: async (meshId, keys) => keys.filter((key) => !hasRevision(db, meshId, key)),
  });
}

function selectCommits(db: Sqlite, meshId: string, after: RowCursor | undefined, limit: number): CommitText[] {
  const [spaceId = "", seq = 0] = after ?? [];
  return db
    .sql<CommitText>(
      `SELECT space_id, seq, branch, original FROM space_commit WHERE mesh_id = ? AND (space_id, seq) > (?, ?)
       ORDER BY space_id, seq LIMIT ?`,
    )
    .all(meshId, spaceId, seq, limit);
}

function hasRevision(
  db: Sqlite,
  meshId: string,
  { spaceId, branch, entityId, seq, opIndex, op }: RevisionKey,
): boolean {
  const row = db
    .sql(
      `SELECT 1 FROM space_revision WHERE mesh_id = ? AND space_id = ? AND branch = ? AND entity_id = ? AND seq = ?
         AND op_index = ? AND op = ?`,
    )
    .get(meshId, spaceId, branch, entityId, seq, opIndex, op);
  return row !== undefined;
}
