// The rule that lets the tables be spread over many servers by mesh, on PostgreSQL: every primary key and every unique
// index begins with mesh_id. Only the directory of meshes, the brokers' own key and the
// migration ledger have keys of their own.
import { openPostgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import { afterAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../tests/support/services.ts";
import { postgresMigrations } from "./postgres-backend.ts";

const database = await createTestDatabase("schema");
afterAll(() => database?.drop());

const exempt = new Set(["mesh.mesh", "mesh.broker_key", "mesh.broker_lease", "claudemesh.schema_migration"]);

describe.skipIf(database === undefined)("the schema on PostgreSQL", () => {
  test("begins every key with mesh_id, and every table has one", async () => {
    const postgres = openPostgres({ url: database?.url ?? "", onIdleError: () => undefined });
    await migratePostgres(postgres, postgresMigrations());
    const keys = await postgres.read<{ table: string; index: string; first: string; primary: boolean }>(
      `SELECT n.nspname || '.' || t.relname AS "table", i.relname AS index, a.attname AS first,
         x.indisprimary AS "primary"
       FROM pg_index x
       JOIN pg_class t ON t.oid = x.indrelid
       JOIN pg_class i ON i.oid = x.indexrelid
       JOIN pg_namespace n ON n.oid = t.relnamespace
       JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0]
       WHERE x.indisunique AND n.nspname !~ '^(pg_|information_schema)'`,
    );
    const tables = await postgres.read<{ name: string }>(
      `SELECT schemaname || '.' || tablename AS name FROM pg_tables
       WHERE schemaname !~ '^(pg_|information_schema)'`,
    );
    await postgres.close();
    const checked = keys.filter(({ table }) => !exempt.has(table));
    expect(checked.length).toBeGreaterThan(20);
    expect(checked.filter(({ first }) => first !== "mesh_id")).toEqual([]);
    const withPrimary = new Set(keys.filter(({ primary }) => primary).map(({ table }) => table));
    expect(tables.map(({ name }) => name).filter((name) => !withPrimary.has(name))).toEqual([]);
  });
});
