// Looking for rows that do not fit together, on PostgreSQL: a page is one statement, which has one snapshot.
import {
  type FoundRow,
  type KeyType,
  type RowCursor,
  type RowDialect,
  type RowRule,
  type RowRules,
  type RuleStore,
  toRowPage,
} from "../row-rules.ts";
import type { PostgresTransaction } from "./postgres-session.ts";

export const postgresDialect: RowDialect = {
  table: (name) => `mesh.${name}`,
  ms: (column) => `(extract(epoch FROM ${column}) * 1000)::bigint`,
};

const typeNames: Record<KeyType, string> = { text: "text", integer: "bigint", id: "uuid", bytes: "bytea" };

/** `$1` is the mesh and `$2` the moment. */
export function createPostgresRuleStore<Dialect extends RowDialect>(
  db: Pick<PostgresTransaction, "query">,
  options: { readonly rules: RowRules<Dialect>; readonly dialect: Dialect; readonly tables: readonly string[] },
): RuleStore {
  const { rules, dialect, tables } = options;
  return {
    rules,
    checkPage: async (name, meshId, after, { nowMs, limit }) => {
      const rule = rules[name];
      if (rule === undefined) throw new Error(`there is no rule ${name}`);
      const values = [meshId, new Date(nowMs), limit, ...(after ?? [])];
      return toRowPage(rule, await db.query<FoundRow>(pageText(rule, dialect, after), values), limit);
    },
    strayMeshes: async () => {
      const meshIds: string[] = [];
      for (const table of tables) meshIds.push(...(await selectStrayMeshes(db, dialect, table)));
      return meshIds;
    },
  };
}

function pageText<Dialect extends RowDialect>(
  { table, key, broken, examine }: RowRule<Dialect>,
  dialect: Dialect,
  after: RowCursor | undefined,
): string {
  const columns = Object.entries(key);
  const keys = columns.map(([column]) => `r.${column}`);
  const cursor = columns.map(([, type], index) => `$${index + 4}::${typeNames[type]}`);
  const beyond = after === undefined || keys.length === 0 ? "" : `AND (${keys.join(", ")}) > (${cursor.join(", ")})`;
  const order = keys.length === 0 ? "" : `ORDER BY ${keys.join(", ")}`;
  const shown = [...keys, ...(examine?.columns ?? []).map((column) => `r.${column}`)];
  return `SELECT ${shown.map((column) => `${column}, `).join("")}
      (${broken?.(dialect) ?? "false"}) AS broken, $2::timestamptz AS now
    FROM ${dialect.table(table)} r WHERE r.mesh_id = $1 ${beyond} ${order} LIMIT $3`;
}

/** From one mesh to the next, not from row to row. */
async function selectStrayMeshes(
  db: Pick<PostgresTransaction, "query">,
  dialect: RowDialect,
  table: string,
): Promise<string[]> {
  const from = dialect.table(table);
  const rows = await db.query<{ mesh_id: string }>(
    `WITH RECURSIVE m (mesh_id) AS ((SELECT mesh_id FROM ${from} ORDER BY mesh_id LIMIT 1)
       UNION ALL SELECT (SELECT t.mesh_id FROM ${from} t WHERE t.mesh_id > m.mesh_id
         ORDER BY t.mesh_id LIMIT 1) FROM m WHERE m.mesh_id IS NOT NULL)
     SELECT mesh_id FROM m WHERE mesh_id IS NOT NULL
       AND NOT EXISTS (SELECT 1 FROM ${dialect.table("mesh")} WHERE id = m.mesh_id) LIMIT 10`,
  );
  return rows.map((row) => `${table}/${row.mesh_id}`);
}
