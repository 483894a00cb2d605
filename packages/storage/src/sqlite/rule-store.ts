// Looking for rows that do not fit together, on SQLite: a page is one statement, which sees one moment.
import {
  type FoundRow,
  type RowCursor,
  type RowDialect,
  type RowRule,
  type RowRules,
  type RuleStore,
  toRowPage,
} from "../row-rules.ts";
import type { Sqlite, SqliteValue } from "./sqlite.ts";

export const sqliteDialect: RowDialect = { table: (name) => name, ms: (column) => column };

export type SqliteRulesOptions<Dialect extends RowDialect> = {
  readonly rules: RowRules<Dialect>;
  readonly dialect: Dialect;
  /** Tables whose rows must belong to a mesh. */
  readonly tables: readonly string[];
  /** Where a table's rows are read from, if not from the table; the cursor of a later page is ?4 and on. */
  readonly rowsOf?: (table: string, after: RowCursor | undefined) => string;
  /** Where a table's meshes are read from, if not from the table. */
  readonly meshesOf?: (table: string) => string;
};

/** `?1` is the mesh, `?2` the moment and `?3` the limit. */
export function createSqliteRuleStore<Dialect extends RowDialect>(
  db: Sqlite,
  { rules, dialect, tables, rowsOf = (table) => table, meshesOf = (table) => table }: SqliteRulesOptions<Dialect>,
): RuleStore {
  return {
    rules,
    checkPage: async (name, meshId, after, { nowMs, limit }) => {
      const rule = rules[name];
      if (rule === undefined) throw new Error(`there is no rule ${name}`);
      const text = pageText(rule, dialect, rowsOf(rule.table, after), after);
      const rows = db.sql<FoundRow>(text).all(meshId, nowMs, limit, ...((after ?? []) as SqliteValue[]));
      return toRowPage(rule, rows, limit);
    },
    strayMeshes: async () => tables.flatMap((table) => selectStrayMeshes(db, table, meshesOf(table))),
  };
}

function pageText<Dialect extends RowDialect>(
  { key, broken, examine }: RowRule<Dialect>,
  dialect: Dialect,
  from: string,
  after: RowCursor | undefined,
): string {
  const keys = Object.keys(key).map((column) => `r.${column}`);
  const cursor = keys.map((_, index) => `?${index + 4}`);
  const beyond = after === undefined || keys.length === 0 ? "" : `AND (${keys.join(", ")}) > (${cursor.join(", ")})`;
  const order = keys.length === 0 ? "" : `ORDER BY ${keys.join(", ")}`;
  const columns = [...keys, ...(examine?.columns ?? []).map((column) => `r.${column}`)];
  return `SELECT ${columns.map((column) => `${column}, `).join("")}
      iif(${broken?.(dialect) ?? "0"}, 1, 0) AS broken, ?2 AS now
    FROM ${from} r WHERE r.mesh_id = ?1 ${beyond} ${order} LIMIT ?3`;
}

/** From one mesh to the next, not from row to row. */
function selectStrayMeshes(db: Sqlite, table: string, from: string): string[] {
  return db
    .sql<{ mesh_id: string }>(
      `WITH RECURSIVE m (mesh_id) AS (SELECT min(mesh_id) FROM ${from}
         UNION ALL SELECT (SELECT min(t.mesh_id) FROM ${from} t WHERE t.mesh_id > m.mesh_id) FROM m
         WHERE m.mesh_id IS NOT NULL)
       SELECT mesh_id FROM m WHERE mesh_id IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM mesh WHERE id = m.mesh_id) LIMIT 10`,
    )
    .all()
    .map((row) => `${table}/${row.mesh_id}`);
}
