// The messages suites' harness over one PostgreSQL database: fresh tables for each test, stores with connections of
// their own, and the words in which the suites speak to the tables directly.

import type { MembersStore } from "@claudemesh/members/ports";
import { createPostgresMembersStore, postgresMembersMigrations } from "@claudemesh/members/postgres";
import { openPostgres, type Postgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import pg from "pg";
import type { RateLimit } from "../../../core/rate-limit.ts";
import type { AcceptStore, MessagesStore } from "../../../ports.ts";
import type { MessagesHarness, OpenMessages } from "../../conformance-world.ts";
import type { TransactionProbe } from "../accept-batches.ts";
import { createPostgresMessagesStore, postgresMessagesMigrations } from "../messages-store.ts";
import { speakByName, withUuids } from "./named-ids.ts";

export const noProbe: TransactionProbe = { beforeCommit: () => undefined, afterCommit: () => undefined };

/** What stands between the suites and the store's accepts: a limiter, or nothing. */
export type AroundAccepts = (accepts: AcceptStore, rate: RateLimit) => AcceptStore;

export class PostgresHarness implements MessagesHarness {
  readonly admin: pg.Client;
  readonly #url: string;
  readonly #around: AroundAccepts;

  constructor(url: string, around: AroundAccepts = (accepts) => accepts) {
    this.#url = url;
    this.#around = around;
    this.admin = new pg.Client({ connectionString: url });
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
        AS $$ BEGIN RAISE EXCEPTION 'told to fail'; END $$`);
    const postgres = this.openPool();
    await migratePostgres(postgres, [...postgresMembersMigrations(), ...postgresMessagesMigrations()]);
    await postgres.close();
  }

  async end(): Promise<void> {
    await this.admin.end();
  }

  openPool(name = "test"): Postgres {
    return openPostgres({ url: this.#url, poolSize: 4, applicationName: name, onIdleError: () => undefined });
  }

  /** Empty tables, which is sooner done than making them anew. Everything else may point at the mesh. */
  async reset(): Promise<void> {
    const { rows } = await this.admin.query<{ name: string }>(
      "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'mesh' ORDER BY tablename = 'mesh'",
    );
    await this.admin.query(rows.map(({ name }) => `DELETE FROM mesh.${name}`).join("; "));
  }

  async open(rate: RateLimit, probe: TransactionProbe = noProbe): Promise<OpenMessages & { members: MembersStore }> {
    const accepting = this.openPool("accepting");
    const common = this.openPool("common");
    const store = createPostgresMessagesStore({ accepting, common }, probe);
    const limited = { ...store, accepts: this.#around(store.accepts, rate) };
    return {
      store: speakByName(limited) as MessagesStore,
      members: speakByName(createPostgresMembersStore(common)),
      query: (sql) => this.query(sql),
      async close() {
        await accepting.close();
        await common.close();
      },
    };
  }

  async query(sql: string): Promise<Readonly<Record<string, unknown>>[]> {
    return (await this.admin.query<Record<string, unknown>>(withUuids(sql))).rows;
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
