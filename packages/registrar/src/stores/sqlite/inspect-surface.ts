// What a live SQLite schema has of the registrar's surface. A trigger counts only if it is, word for word, the one that
// the migration makes: one that was weakened is as good as none.
import type { Migration } from "@claudemesh/storage/migrations";
import type { Sqlite } from "@claudemesh/storage/sqlite";
import { type SurfaceFacts, surfaceTables, surfaceWords } from "../../core/surface.ts";

export function inspectSurface(db: Sqlite, migrations: readonly Migration[]): SurfaceFacts {
  const facts = new Set<string>();
  for (const table of Object.keys(surfaceTables)) {
    const { sql } =
      db.sql<{ sql: string }>("SELECT sql FROM sqlite_schema WHERE type = 'table' AND name = ?").get(table) ?? {};
    if (sql === undefined) continue;
    for (const fact of tableFacts(db, table, sql)) facts.add(fact);
  }
  for (const fact of triggerFacts(db, migrations)) facts.add(fact);
  return { store: "sqlite", facts, notes: [] };
}

function tableFacts(db: Sqlite, table: string, sql: string): string[] {
  const columns = db
    .sql<{ name: string; notnull: number; pk: number }>('SELECT name, "notnull", pk FROM pragma_table_info(?)')
    .all(table);
  const primary = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  const references = db.sql<{ table: string }>('SELECT "table" FROM pragma_foreign_key_list(?)').all(table);
  return [
    ...columns.map(({ name, notnull }) => surfaceWords.foundColumn(table, name, notnull === 1)),
    // A table with rowids can lose a row to INSERT OR REPLACE by rowid, so that its key protects nothing.
    ...(/\bWITHOUT ROWID\b/i.test(sql) ? [surfaceWords.unique(table, ...primary.map(({ name }) => name))] : []),
    ...uniqueIndexes(db, table).map((names) => surfaceWords.unique(table, ...names)),
    ...[...sql.matchAll(/CONSTRAINT (\w+) CHECK/g)].map(([, name = ""]) => surfaceWords.check(name)),
    ...references.map((reference) => `reference ${table} to ${reference.table}`),
  ];
}

function uniqueIndexes(db: Sqlite, table: string): string[][] {
  const indexes = db
    .sql<{ name: string }>(
      `SELECT name FROM pragma_index_list(?) WHERE "unique" = 1 AND partial = 0 AND origin <> 'pk'`,
    )
    .all(table);
  return indexes.map(({ name }) =>
    db
      .sql<{ name: string | null }>("SELECT name FROM pragma_index_info(?) ORDER BY seqno")
      .all(name)
      // An index on an expression has no column's name.
      .map((column) => column.name ?? "an expression"),
  );
}

function triggerFacts(db: Sqlite, migrations: readonly Migration[]): string[] {
  const expected = new Map(
    migrations.flatMap(({ sql }) =>
      [...sql.matchAll(/CREATE TRIGGER (\w+)[\s\S]*?END(?=;)/g)].map(([text, name = ""]) => [name, oneLine(text)]),
    ),
  );
  const triggers = db
    .sql<{ name: string; tbl_name: string; sql: string }>(
      "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name LIKE 'registrar%'",
    )
    .all();
  return triggers.map(({ name, tbl_name, sql }) => {
    const event = /_(update|delete|replace)$/.exec(name)?.[1];
    const intact = event !== undefined && expected.get(name) === oneLine(sql);
    return intact ? surfaceWords.guard(tbl_name, event) : `unknown trigger ${name} on ${tbl_name}`;
  });
}

function oneLine(sql: string): string {
  return sql.replaceAll(/\s+/g, " ").trim();
}
