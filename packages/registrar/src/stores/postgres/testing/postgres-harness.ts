// The registrar's suites over one PostgreSQL database. Records cannot be removed, so that each test has a mesh of its own
// instead of empty tables.
import { postgresMembersMigrations } from "@claudemesh/members/postgres";
import { openPostgres, type Postgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import pg from "pg";
import { CrashPoints, type OpenedRegistrar, type RegistrarHarness, type Row } from "../../suites/world.ts";
import { postgresRegistrarMigrations } from "../registrar-migrations.ts";
import { createPostgresRegistrarStore } from "../registrar-store.ts";
import { createPostgresRegistrarRules } from "../rules.ts";

export class PostgresHarness implements RegistrarHarness {
  readonly kind = "postgres";
  readonly #admin: pg.Client;
  /** Shared by all brokers of a test file: making connections for each test would take longer than the tests. */
  readonly #pool: Postgres;

  constructor(url: string) {
    this.#admin = new pg.Client({ connectionString: url });
    this.#pool = openPostgres({ url, poolSize: 12, onIdleError: () => undefined });
  }

  get pool(): Postgres {
    return this.#pool;
  }

  async connect(): Promise<void> {
    await this.#admin.connect();
    await migratePostgres(this.#pool, [...postgresMembersMigrations(), ...postgresRegistrarMigrations()]);
  }

  async end(): Promise<void> {
    await this.#pool.close();
    await this.#admin.end();
  }

  async open(): Promise<OpenedRegistrar> {
    const crash = new CrashPoints();
    const store = createPostgresRegistrarStore(this.#pool, { hooks: crash });
    return { store, crash, close: async () => undefined };
  }

  async query(sql: string): Promise<Row[]> {
    return (await this.#admin.query<Record<string, unknown>>(sql)).rows;
  }

  async queryUnguarded(sql: string): Promise<void> {
    await this.#admin.query(`BEGIN; SET LOCAL session_replication_role = replica; ${sql}; COMMIT`);
  }

  get rules(): RuleStore {
    return createPostgresRegistrarRules(this.#pool);
  }

  table(name: string): string {
    return `mesh.${name}`;
  }
}
