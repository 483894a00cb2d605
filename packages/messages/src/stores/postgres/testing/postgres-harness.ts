// The messages suites' harness over one PostgreSQL database: fresh tables for each test, stores with connections of
// their own, and the words in which the suites speak to the tables directly.

import { postgresMembersMigrations } from "@claudemesh/members/postgres";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { openPostgres, type Postgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import pg from "pg";
import type { RateLimit } from "../../../core/rate-limit.ts";
import type { AcceptStore } from "../../../ports.ts";
import type { MessagesHarness, OpenMessages } from "../../suites/world.ts";
import { createPostgresMessagesStore, type MessagesPools, postgresMessagesMigrations } from "../messages-store.ts";
import { NamedIds } from "./named-ids.ts";

/** What stands between the suites and the store's accepts: a limiter, or nothing. */
export type AroundAccepts = (accepts: AcceptStore, rate: RateLimit) => AcceptStore;

export class PostgresHarness implements MessagesHarness {
  readonly admin: pg.Client;
  readonly #url: string;
  readonly #around: AroundAccepts;
  readonly #ids = new NamedIds();
  /** Shared by all stores: making connections for each test would take longer than the tests. */
  readonly #pools: MessagesPools;

  constructor(url: string, around: AroundAccepts = (accepts) => accepts) {
    this.#url = url;
    this.#around = around;
    this.admin = new pg.Client({ connectionString: url });
    this.#pools = {
      accepting: this.#openPool("accepting", true),
      looking: this.#openPool("looking", true),
      queueing: this.#openPool("queueing", true),
      common: this.#openPool("common", false),
    };
  }

  async connect(): Promise<void> {
    await this.admin.connect();
    // The suites write times as integers of milliseconds.
    await this.admin.query(`
      SET synchronous_commit = off;
      CREATE FUNCTION public.time_of(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE
        AS 'SELECT to_timestamp(ms / 1000.0)';
      CREATE FUNCTION public.time_of(ms integer) RETURNS timestamptz LANGUAGE sql IMMUTABLE
        AS 'SELECT to_timestamp(ms / 1000.0)';
      CREATE CAST (bigint AS timestamptz) WITH FUNCTION public.time_of(bigint) AS ASSIGNMENT;
      CREATE CAST (integer AS timestamptz) WITH FUNCTION public.time_of(integer) AS ASSIGNMENT;
      CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'made to fail'; END $$`);
    const migrations = [...postgresMembersMigrations(), ...postgresMessagesMigrations()];
    await migratePostgres(this.#pools.common, migrations);
  }

  async end(): Promise<void> {
    await this.closePools();
    await this.admin.end();
  }

  async closePools(): Promise<void> {
    for (const pool of Object.values(this.#pools)) await pool.close();
  }

  #openPool(applicationName: string, genericPlans: boolean): Postgres {
    const onIdleError = () => undefined;
    return openPostgres({ url: this.#url, poolSize: 8, applicationName, genericPlans, onIdleError });
  }

  /** Empty tables, which is sooner done than making them anew. Everything else may point at the mesh. */
  async reset(): Promise<void> {
    const { rows } = await this.admin.query<{ name: string }>(
      "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'mesh' ORDER BY tablename = 'mesh'",
    );
    await this.admin.query(rows.map(({ name }) => `DELETE FROM mesh.${name}`).join("; "));
  }

  async open(rate: RateLimit, hooks?: CommitHooks): Promise<OpenMessages> {
    const store = createPostgresMessagesStore(this.#pools, hooks);
    return {
      store: this.#ids.speakByName({ ...store, accepts: this.#around(store.accepts, rate) }),
      query: (sql) => this.query(sql),
      close: async () => undefined,
    };
  }

  async query(sql: string): Promise<Readonly<Record<string, unknown>>[]> {
    return (await this.admin.query<Record<string, unknown>>(this.#ids.withUuids(sql))).rows;
  }

  table(name: string): string {
    return `mesh.${name}`;
  }

  failingTrigger(name: string, table: string, condition: string): { create: string; drop: string } {
    return {
      create: `CREATE TRIGGER ${name} BEFORE INSERT ON ${table} FOR EACH ROW WHEN (${condition})
        EXECUTE FUNCTION public.refuse()`,
      drop: `DROP TRIGGER ${name} ON ${table}`,
    };
  }
}
