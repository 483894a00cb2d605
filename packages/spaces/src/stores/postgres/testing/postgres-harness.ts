// The spaces suites' harness over one PostgreSQL database: empty tables for each test, stores over shared pools.

import { postgresMembersMigrations } from "@claudemesh/members/postgres";
import type { SendsOutcome, SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import {
  openPostgres,
  Postgres,
  type PostgresTransaction,
  type PostgresValue,
  type TransactionOptions,
} from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import pg from "pg";
import type { SpacesStore } from "../../../ports.ts";
import type { ScheduleRuns } from "../../../testing/run-schedules.ts";
import { ScheduleServices } from "../../../testing/schedule-services.ts";
import { idsOf, type OpenSpaces, type Row, refusalOf, type SpacesHarness } from "../../suites/world.ts";
import { createPostgresSpaceRules } from "../rules.ts";
import { createPostgresSpacesStore, postgresSpacesMigrations } from "../spaces-store.ts";

export async function acceptSends(
  tx: PostgresTransaction,
  _: string,
  sends: readonly SendToAccept[],
): Promise<SendsOutcome> {
  for (const [index, send] of sends.entries()) {
    const rows = await tx.query("SELECT 1 FROM mesh.sent WHERE id = $1", [send.clientMessageId]);
    const code = refusalOf(send, rows.length > 0);
    if (code !== undefined) return { type: "refused", index, code };
    await tx.execute("INSERT INTO mesh.sent (id) VALUES ($1)", [send.clientMessageId]);
  }
  return { type: "accepted", recipients: idsOf(sends) };
}

/** Counts optimistic writes: those that wrote, and those that found something changed. Notes what else was asked. */
class CountingPostgres extends Postgres {
  readonly optimistic = { written: 0, overtaken: 0 };
  /** By the names of statements, in the order in which they were sent. */
  readonly asked: string[] = [];

  override transaction<R>(body: (tx: PostgresTransaction) => Promise<R>, options?: TransactionOptions): Promise<R> {
    return super.transaction((tx) => body(this.#counting(tx)), options);
  }

  #counting(tx: PostgresTransaction): PostgresTransaction {
    return {
      query: async <Row>(text: string, values?: readonly PostgresValue[], name?: string) => {
        if (name !== undefined) this.asked.push(name);
        const rows = await tx.query<Row>(text, values, name);
        if (name?.endsWith("_if_unchanged")) this.optimistic[rows.length > 0 ? "written" : "overtaken"] += 1;
        return rows;
      },
      execute: (text, values, name) => tx.execute(text, values, name),
      script: (text) => tx.script(text),
    };
  }
}

export class PostgresHarness implements SpacesHarness {
  readonly meshId = "00000000-0000-7000-8000-000000000001";
  readonly someTime = "now()";
  readonly admin: pg.Client;
  /** Shared by all stores: making connections for each test would take longer than the tests. */
  readonly #pools: { readonly committing: CountingPostgres; readonly common: Postgres };

  constructor(url: string) {
    this.admin = new pg.Client({ connectionString: url });
    const options = { url, poolSize: 8, onIdleError: () => undefined };
    this.#pools = {
      committing: new CountingPostgres({ ...options, applicationName: "committing", genericPlans: true }),
      common: openPostgres({ ...options, applicationName: "common" }),
    };
  }

  get optimistic(): CountingPostgres["optimistic"] {
    return this.#pools.committing.optimistic;
  }

  get asked(): string[] {
    return this.#pools.committing.asked;
  }

  async connect(): Promise<void> {
    await this.admin.connect();
    await this.admin.query("SET synchronous_commit = off");
    await migratePostgres(this.#pools.common, [...postgresMembersMigrations(), ...postgresSpacesMigrations()]);
    await this.admin.query("CREATE TABLE mesh.sent (id text PRIMARY KEY)");
  }

  async end(): Promise<void> {
    await this.#pools.committing.close();
    await this.#pools.common.close();
    await this.admin.end();
  }

  /** Empty tables, which is sooner done than making them anew. Everything else may point at the mesh. */
  async reset(): Promise<void> {
    const { rows } = await this.admin.query<{ name: string }>(
      "SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'mesh' ORDER BY tablename = 'mesh'",
    );
    await this.admin.query(rows.map(({ name }) => `DELETE FROM mesh.${name}`).join("; "));
    await this.admin.query("INSERT INTO mesh.mesh (id, name, created_at) VALUES ($1, 'm', now())", [this.meshId]);
  }

  createStore(hooks?: CommitHooks): SpacesStore {
    return createPostgresSpacesStore(this.#pools, { acceptSends, hooks });
  }

  async open(): Promise<OpenSpaces> {
    const store = this.createStore();
    const rules = createPostgresSpaceRules(this.#pools.common);
    return { store, rules, query: (sql) => this.query(sql), close: async () => undefined };
  }

  async query(sql: string): Promise<Row[]> {
    return (await this.admin.query<Record<string, unknown>>(sql)).rows;
  }

  table(name: string): string {
    return `mesh.${name}`;
  }
}

const scheduleMembers = ["a", "b", "c"].map((letter) => letter.repeat(64));

/** For schedules: restarting makes another service over the same rows. */
export class PostgresHost extends ScheduleServices {
  readonly #harness: PostgresHarness;

  private constructor(harness: PostgresHarness) {
    super();
    this.#harness = harness;
  }

  static async start(harness: PostgresHarness): Promise<PostgresHost> {
    await harness.reset();
    for (const pubkey of scheduleMembers) {
      await harness.query(`INSERT INTO mesh.member (mesh_id, pubkey, name, role, joined_at)
        VALUES ('${harness.meshId}', '${pubkey}', 'm', 'member', now())`);
    }
    const host = new PostgresHost(harness);
    await host.restart();
    return host;
  }

  get runs(): Pick<ScheduleRuns, "members" | "meshId" | "host"> {
    return { members: scheduleMembers, meshId: this.#harness.meshId, host: async () => this };
  }

  protected override createStore(hooks: CommitHooks<void>): SpacesStore {
    return this.#harness.createStore(hooks);
  }
}
