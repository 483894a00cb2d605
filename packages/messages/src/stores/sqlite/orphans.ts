// Looking for rows of messages that do not fit together, on SQLite.
import type { RuleStore } from "@claudemesh/storage/row-rules";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { createSqliteRuleStore, sqliteDialect } from "@claudemesh/storage/sqlite-rules";
import type { MeshCheck } from "../../ports/orphans.ts";
import { orphanChecks, tablesOfMeshes } from "../orphan-checks.ts";
import type { Dialect } from "../orphan-rule.ts";

const dayMs = 86_400_000;

/** Of one mesh; a search row's number holds its mesh and its history row, see the table. */
const searchBase = "(SELECT c.mesh_number FROM message_search_cursor c WHERE c.mesh_id = ?1) * 1099511627776";
const searchRows = (
  after: string,
) => `(SELECT ?1 AS mesh_id, s.rowid - ${searchBase} AS history_id FROM message_search s
  WHERE s.rowid > ${searchBase} + ${after} AND s.rowid < ${searchBase} + 1099511627776 ORDER BY s.rowid LIMIT ?3)`;

const dialect: Dialect = {
  ...sqliteDialect,
  isFalse: (expression) => `(${expression} = 0)`,
  historyOfDedupe: "h.history_id = r.history_id AND h.broker_message_id = r.broker_message_id",
  mentionsOfMessage: "json_each(iif(json_valid(r.meta), r.meta, '{}'), '$.mentions') j",
  now: "?2",
  daysAgo: (days) => `(?2 - ${days * dayMs})`,
  daysBefore: (column, days) => `(${column} - ${days * dayMs})`,
};

export function createRules(db: Sqlite): RuleStore {
  return createSqliteRuleStore(db, {
    rules: orphanChecks,
    dialect,
    tables: tablesOfMeshes,
    rowsOf: (table, after) =>
      table === "message_search" ? searchRows(after === undefined ? "0" : "CAST(?4 AS INTEGER)") : table,
    // Search rows are numbered by the cursors' meshes.
    meshesOf: (table) => (table === "message_search" ? "message_search_cursor" : table),
  });
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

export function updateCheck(tx: Sqlite, meshId: string, { endedAtMs, found, rules }: MeshCheck): void {
  tx.sql(
    `INSERT INTO mesh_housekeeping (mesh_id, removed_up_to, checked_at, check_ended_at, check_found, check_rules)
     VALUES (?1, 0, ?2, ?2, ?3, ?4)
     ON CONFLICT (mesh_id) DO UPDATE SET check_ended_at = ?2, check_found = ?3, check_rules = ?4`,
  ).run(meshId, endedAtMs, found, rules.join(" "));
}

export function selectCheck(db: Sqlite, meshId: string): MeshCheck | undefined {
  const row = db
    .sql<{ endedAtMs: number; found: number; rules: string }>(
      `SELECT check_ended_at AS endedAtMs, check_found AS found, check_rules AS rules FROM mesh_housekeeping
       WHERE mesh_id = ? AND check_ended_at IS NOT NULL`,
    )
    .get(meshId);
  return row && { ...row, rules: row.rules.split(" ").filter((name) => name !== "") };
}
