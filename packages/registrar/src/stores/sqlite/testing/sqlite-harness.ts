// The registrar's suites over one SQLite database: brokers with connections of their own on a file, or one connection
// that all share in memory.
import { membersMigrations } from "@claudemesh/members/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { CrashPoints, type OpenedRegistrar, type RegistrarHarness, type Row } from "../../suites/world.ts";
import { registrarMigrations } from "../registrar-migrations.ts";
import { createSqliteRegistrarStore } from "../registrar-store.ts";
import { createSqliteRegistrarRules } from "../rules.ts";

export class SqliteHarness implements RegistrarHarness {
  readonly kind = "sqlite";
  readonly #path: string;
  readonly #admin: Sqlite;
  #last: Sqlite;

  private constructor(path: string, admin: Sqlite) {
    this.#path = path;
    this.#admin = admin;
    this.#last = admin;
  }

  static async create(path: string): Promise<SqliteHarness> {
    const admin = openSqlite({ path });
    await migrateSqlite(admin, [...membersMigrations(), ...registrarMigrations()]);
    return new SqliteHarness(path, admin);
  }

  get lastOpened(): Sqlite {
    return this.#last;
  }

  async open(): Promise<OpenedRegistrar> {
    const shared = this.#path === ":memory:";
    const db = shared ? this.#admin : openSqlite({ path: this.#path });
    this.#last = db;
    const crash = new CrashPoints();
    const commit = new GroupCommit(db, { hooks: crash });
    return {
      store: createSqliteRegistrarStore(db, commit),
      crash,
      close: async () => {
        commit.close();
        if (!shared) db.close();
      },
    };
  }

  async query(sql: string): Promise<Row[]> {
    if (/^\s*(SELECT|PRAGMA)/i.test(sql)) return this.#admin.sql(sql).all();
    this.#admin.exec(sql);
    return [];
  }

  async queryUnguarded(sql: string): Promise<void> {
    const guards = await this.query("SELECT name FROM sqlite_schema WHERE type = 'trigger'");
    for (const { name } of guards) this.#admin.exec(`DROP TRIGGER ${String(name)}`);
    this.#admin.exec(sql);
  }

  get rules(): RuleStore {
    return createSqliteRegistrarRules(this.#admin);
  }

  table(name: string): string {
    return name;
  }

  end(): void {
    this.#admin.close();
  }
}
