// The rule that lets the tables be spread over many servers by mesh, on SQLite: every primary key and every unique
// index begins with mesh_id. Only the directory of meshes, the list of brokers and the migration ledger have keys of their own.
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { describe, expect, test } from "vitest";
import { sqliteMigrations } from "./sqlite-backend.ts";

const exempt = new Set(["mesh", "broker_lease", "schema_migration"]);

describe("the schema on SQLite", () => {
  test("begins every key with mesh_id", async () => {
    const db = openSqlite({ path: ":memory:" });
    await migrateSqlite(db, sqliteMigrations());
    // Virtual tables and what they keep behind the scenes have no keys of ours.
    const tables = db
      .sql<{ name: string }>(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite%'",
      )
      .all();
    const keys: string[][] = [];
    for (const { name: table } of tables) {
      if (exempt.has(table)) continue;
      const primary = db
        .sql<{ name: string }>("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk")
        .all(table)
        .map((column) => column.name);
      keys.push([table, "primary key", ...primary]);
      const indexes = db.sql<{ name: string }>('SELECT name FROM pragma_index_list(?) WHERE "unique" = 1').all(table);
      for (const { name: index } of indexes) {
        const columns = db.sql<{ name: string }>("SELECT name FROM pragma_index_info(?) ORDER BY seqno").all(index);
        keys.push([table, index, ...columns.map((column) => column.name)]);
      }
    }
    db.close();
    expect(keys.length).toBeGreaterThan(20);
    expect(keys.filter(([, , first]) => first !== "mesh_id")).toEqual([]);
  });
});
