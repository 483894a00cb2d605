// The proof on PostgreSQL with one thing missing at a time, each change in a transaction that is rolled back; and for a
// role that rights bind, which most brokers should run as.
import { postgresMembersMigrations } from "@claudemesh/members/postgres";
import { openPostgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { appendOnlyTables, proveSurface, surfaceTables } from "../../core/surface.ts";
import { RegistrarWorld } from "../suites/world.ts";
import { inspectSurface } from "./inspect-surface.ts";
import { postgresRegistrarMigrations } from "./registrar-migrations.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("surface");
const roles = `registrar_role_${process.pid}`;
const columns = Object.entries(surfaceTables).flatMap(([table, names]) => names.map((name) => ({ table, name })));
const optional = [
  "registrar_approval.logical_request_key",
  "registrar_approval.revoked_at",
  ...["code", "conflict", "logical_request_key", "approval_id", "attempt_id"].map((name) => `registrar_audit.${name}`),
];

describe.skipIf(database === undefined)("the proof on PostgreSQL", () => {
  const admin = new pg.Client({ connectionString: database?.url });
  const reading = {
    query: async <R>(text: string, values: readonly unknown[]) =>
      (await admin.query({ text, values: [...values] })).rows as R[],
  };

  beforeAll(async () => {
    await admin.connect();
    const pool = openPostgres({ url: database?.url ?? "", onIdleError: () => undefined });
    await migratePostgres(pool, [...postgresMembersMigrations(), ...postgresRegistrarMigrations()]);
    await pool.close();
  });
  afterAll(async () => {
    await admin.end();
    await database?.drop();
  });

  const prove = async () => proveSurface(await inspectSurface(reading, postgresRegistrarMigrations()));

  async function faultsAfter(...changes: string[]): Promise<string[]> {
    await admin.query("BEGIN");
    try {
      for (const change of changes) await admin.query(change);
      const { fit, criteria } = await prove();
      const faults = criteria.flatMap(({ missing, forbidden }) => [...missing, ...forbidden]);
      expect(fit).toBe(faults.length === 0);
      return [...new Set(faults)];
    } finally {
      await admin.query("ROLLBACK");
    }
  }

  const names = async (sql: string) => (await admin.query<{ name: string; table: string }>(sql)).rows;

  test("holds for the whole schema", async () => {
    expect(await faultsAfter()).toEqual([]);
  });

  test.for(columns)(
    "does not hold without the column $table.$name, or where it may be empty",
    async ({ table, name }) => {
      const fault = `column ${table}.${name}`;
      expect(await faultsAfter(`ALTER TABLE mesh.${table} DROP COLUMN ${name} CASCADE`)).toContain(fault);
      if (optional.includes(`${table}.${name}`)) return;
      const keys = await names(`SELECT a.attname AS name FROM pg_index x JOIN pg_attribute a
      ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey)
      WHERE x.indisprimary AND x.indrelid = 'mesh.${table}'::regclass`);
      if (keys.some((key) => key.name === name)) return;
      expect(await faultsAfter(`ALTER TABLE mesh.${table} ALTER COLUMN ${name} DROP NOT NULL`)).toEqual([fault]);
    },
  );

  test("does not hold without any one constraint, unique index or trigger, or with a trigger disabled", async () => {
    const constraints = await names(`SELECT conname AS name, conrelid::regclass::text AS table FROM pg_constraint
      WHERE conrelid::regclass::text LIKE 'mesh.registrar%' AND contype IN ('c', 'p', 'u')`);
    const indexes = await names(`SELECT x.indexrelid::regclass::text AS name, x.indrelid::regclass::text AS table
      FROM pg_index x WHERE x.indrelid::regclass::text LIKE 'mesh.registrar%' AND x.indisunique AND NOT x.indisprimary`);
    const triggers = await names(`SELECT tgname AS name, tgrelid::regclass::text AS table FROM pg_trigger
      WHERE tgrelid::regclass::text LIKE 'mesh.registrar%' AND NOT tgisinternal`);
    expect([constraints.length, indexes.length, triggers.length]).toEqual([15, 5, 7]);
    const changes = [
      ...constraints.map(({ table, name }) => `ALTER TABLE ${table} DROP CONSTRAINT ${name}`),
      ...indexes.map(({ name }) => `DROP INDEX ${name}`),
      ...triggers.map(({ table, name }) => `DROP TRIGGER ${name} ON ${table}`),
      ...triggers.map(({ table, name }) => `ALTER TABLE ${table} DISABLE TRIGGER ${name}`),
    ];
    for (const change of changes) expect((await faultsAfter(change)).length, change).toBeGreaterThan(0);
  });

  test("does not hold where a guard's function was changed, or a rule or trigger was added", async () => {
    const open = "RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$";
    const changes = [
      `CREATE OR REPLACE FUNCTION mesh.registrar_refuse() ${open}`,
      `CREATE OR REPLACE FUNCTION mesh.registrar_refuse_change() ${open}`,
      "CREATE RULE quiet AS ON DELETE TO mesh.registrar_consume DO INSTEAD NOTHING",
      `CREATE FUNCTION mesh.swallow() ${open};
       CREATE TRIGGER swallow BEFORE INSERT ON mesh.registrar_consume FOR EACH ROW EXECUTE FUNCTION mesh.swallow()`,
    ];
    for (const change of changes) expect((await faultsAfter(change)).length, change).toBeGreaterThan(0);
  });

  test("says where rights cannot bind: the role is a superuser", async () => {
    const [role] = await names("SELECT rolsuper::text AS name FROM pg_roles WHERE rolname = current_user");
    expect((await prove()).notes).toHaveLength(role?.name === "true" ? 1 : 0);
  });
});

const asRole = database === undefined ? undefined : await createTestDatabase("surface_role");

describe.skipIf(asRole === undefined)("a role that rights bind", () => {
  const admin = new pg.Client({ connectionString: asRole?.url });
  const url = new URL(asRole?.url ?? "postgres://nowhere");
  url.username = roles;
  beforeAll(async () => {
    await admin.connect();
    await admin.query(`CREATE ROLE ${roles} LOGIN; GRANT CREATE ON DATABASE ${url.pathname.slice(1)} TO ${roles}`);
  });
  afterAll(async () => {
    await admin.query(`DROP OWNED BY ${roles} CASCADE; DROP ROLE ${roles}`);
    await admin.end();
    await asRole?.drop();
  });

  test("registers, compensates and audits without the right to change a record; with it, the proof fails", async () => {
    const harness = new PostgresHarness(url.href);
    await harness.connect();
    try {
      const world = await RegistrarWorld.start(harness);
      const proof = async () => proveSurface(await world.broker.store.inspect());
      expect(await proof()).toMatchObject({ fit: true, notes: [] });
      world.broker.verifier = { name: "failing", verify: async () => ({ type: "failed", reason: "no" }) };
      expect(await world.ask()).toMatchObject({ status: 201, body: { state: "verify_failed" } });
      const granted = await world.grant({ purpose: "compensate", logical_request_key: "key-1" });
      expect(await world.broker.compensate("key-1", granted)).toMatchObject({ status: 201 });
      expect(await world.ask({ approval_id: "unknown", logical_request_key: "x" })).toMatchObject({ status: 403 });
      await world.broker.revoke(granted.approval_id);
      for (const table of appendOnlyTables) {
        for (const statement of [`DELETE FROM mesh.${table}`, `UPDATE mesh.${table} SET mesh_id = mesh_id`]) {
          await expect(harness.query(statement)).rejects.toMatchObject({ code: "42501" });
        }
      }
      await harness.query(`GRANT DELETE ON mesh.registrar_audit TO ${roles}`);
      const { fit, criteria } = await proof();
      expect(fit).toBe(false);
      expect(criteria.find(({ criterion }) => criterion === "e")?.missing).toEqual([
        "no right to change registrar_audit",
      ]);
      await world.close();
    } finally {
      await harness.end();
    }
  });
});
