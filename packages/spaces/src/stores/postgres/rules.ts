// Looking for rows of spaces that do not fit together, on PostgreSQL.
import type { Postgres } from "@claudemesh/storage/postgres";
import { createPostgresRuleStore, postgresDialect } from "@claudemesh/storage/postgres-rules";
import { type RuleStore, tablesOf } from "@claudemesh/storage/row-rules";
import { type CommitText, type RevisionKey, withCommitRevisions } from "../commit-revisions.ts";
import { spaceRules } from "../row-rules.ts";

export function createPostgresSpaceRules(postgres: Postgres): RuleStore {
  const reading = { query: <Row>(text: string, values?: readonly unknown[]) => postgres.read<Row>(text, values) };
  const rules = createPostgresRuleStore(reading, {
    rules: spaceRules,
    dialect: postgresDialect,
    tables: tablesOf(spaceRules),
  });
  return withCommitRevisions(rules, {
    readCommits: (meshId, [spaceId = "", seq = 0] = [], limit) =>
      postgres.read<CommitText>(
        `SELECT space_id, seq, branch, original FROM mesh.space_commit
         WHERE mesh_id = $1 AND (space_id, seq) > ($2::text, $3::bigint) ORDER BY space_id, seq LIMIT $4`,
        [meshId, spaceId, seq, limit],
      ),
    findMissing: (meshId, keys) => selectMissing(postgres, meshId, keys),
  });
}

async function selectMissing(postgres: Postgres, meshId: string, keys: readonly RevisionKey[]): Promise<RevisionKey[]> {
  if (keys.length === 0) return [];
  const rows = await postgres.read<{ n: number }>(
    `SELECT k.n FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::integer[], $7::text[]) WITH ORDINALITY
       AS k (space_id, branch, entity_id, seq, op_index, op, n)
     WHERE NOT EXISTS (SELECT 1 FROM mesh.space_revision w
       WHERE w.mesh_id = $1 AND w.space_id = k.space_id AND w.branch = k.branch AND w.entity_id = k.entity_id
         AND w.seq = k.seq AND w.op_index = k.op_index AND w.op = k.op)`,
    [
      meshId,
      keys.map(({ spaceId }) => spaceId),
      keys.map(({ branch }) => branch),
      keys.map(({ entityId }) => entityId),
      keys.map(({ seq }) => seq),
      keys.map(({ opIndex }) => opIndex),
      keys.map(({ op }) => op),
    ],
  );
  return rows.flatMap(({ n }) => keys[Number(n) - 1] ?? []);
}
