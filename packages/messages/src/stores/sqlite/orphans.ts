// Looking for rows that do not fit together, on SQLite: a page is one statement, which sees one moment.
import type { Sqlite, SqliteValue } from "@claudemesh/storage/sqlite";
import type { OrphanCheckName, OrphanCursor, OrphanPage } from "../../ports/orphans.ts";
import { type Dialect, type OrphanCheck, orphanChecks, tablesOfMeshes } from "../orphan-checks.ts";
import { keyText } from "../orphan-keys.ts";

const weekMs = 7 * 86_400_000;

/** Of one mesh; a search row's number holds its mesh and its place in history, see the table. */
const searchBase = "(SELECT c.mesh_number FROM message_search_cursor c WHERE c.mesh_id = ?1) * 1099511627776";
const searchRows = (
  after: string,
) => `(SELECT ?1 AS mesh_id, s.rowid - ${searchBase} AS history_id FROM message_search s
  WHERE s.rowid > ${searchBase} + ${after} AND s.rowid < ${searchBase} + 1099511627776 ORDER BY s.rowid LIMIT ?3)`;

const dialect: Dialect = {
  table: (name) => name,
  isFalse: (expression) => `(${expression} = 0)`,
  historyOfDedupe: "h.history_id = r.history_id AND h.broker_message_id = r.broker_message_id",
  now: "?2",
  weekAgo: `(?2 - ${weekMs})`,
};

export function checkPage(
  db: Sqlite,
  name: OrphanCheckName,
  meshId: string,
  after: OrphanCursor | undefined,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): OrphanPage {
  const check: OrphanCheck = orphanChecks[name];
  const columns = Object.keys(check.key);
  const keys = columns.map((column) => `r.${column}`);
  const given = columns.map((_, index) => `?${index + 4}`);
  const beyond = after === undefined || keys.length === 0 ? "" : `AND (${keys.join(", ")}) > (${given.join(", ")})`;
  const order = keys.length === 0 ? "" : `ORDER BY ${keys.join(", ")}`;
  const rows = db
    .sql<Record<string, string | number | Uint8Array>>(
      `SELECT ${keys.map((key) => `${key}, `).join("")} iif(${check.broken(dialect)}, 1, 0) AS broken, ?2 AS now
       FROM ${check.table === "message_search" ? searchRows(after === undefined ? "0" : "CAST(?4 AS INTEGER)") : check.table} r WHERE r.mesh_id = ?1 ${beyond} ${order} LIMIT ?3`,
    )
    .all(meshId, nowMs, limit, ...((after ?? []) as SqliteValue[]));
  const keyOf = (row: (typeof rows)[number]): OrphanCursor => columns.map((column) => row[column] ?? "");
  const last = rows.length === limit && columns.length > 0 ? rows.at(-1) : undefined;
  return {
    rows: rows.length,
    found: rows.filter((row) => row.broken === 1).map((row) => keyText(keyOf(row))),
    next: last && keyOf(last),
  };
}

export function selectStrayMeshes(db: Sqlite): string[] {
  return tablesOfMeshes.flatMap((table) => {
    // From one mesh to the next, not from row to row.
    const rows = db
      .sql<{ mesh_id: string }>(
        `WITH RECURSIVE m (mesh_id) AS (SELECT min(mesh_id) FROM ${strayTable(table)}
           UNION ALL SELECT (SELECT min(t.mesh_id) FROM ${strayTable(table)} t WHERE t.mesh_id > m.mesh_id) FROM m
           WHERE m.mesh_id IS NOT NULL)
         SELECT mesh_id FROM m WHERE mesh_id IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM mesh WHERE id = m.mesh_id) LIMIT 10`,
      )
      .all();
    return rows.map((row) => `${table}/${row.mesh_id}`);
  });
}

/** Search rows are numbered by the cursors' meshes. */
function strayTable(table: string): string {
  return table === "message_search" ? "message_search_cursor" : table;
}

export function claimCheck(tx: Sqlite, meshId: string, nowMs: number, beforeMs: number): boolean {
  const { changes } = tx
    .sql(
      `INSERT INTO mesh_housekeeping (mesh_id, removed_up_to, checked_at) VALUES (?1, 0, ?2)
       ON CONFLICT (mesh_id) DO UPDATE SET checked_at = ?2 WHERE checked_at < ?3`,
    )
    .run(meshId, nowMs, beforeMs);
  return changes > 0;
}
