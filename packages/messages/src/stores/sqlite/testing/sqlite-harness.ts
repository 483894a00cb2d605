// The messages suites' harness over SQLite: a fresh file for each test in a folder of its own, and stores with
// connections of their own to it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { membersMigrations } from "@claudemesh/members/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { ampleRate, type MessagesHarness, type OpenMessages } from "../../suites/world.ts";
import { createSqliteMessagesStore, messagesMigrations } from "../messages-store.ts";

export class SqliteHarness implements MessagesHarness {
  readonly #folder = mkdtempSync(join(tmpdir(), "claudemesh-messages-"));
  #databases = 0;

  get path(): string {
    return join(this.#folder, `${this.#databases}.db`);
  }

  end(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async reset(): Promise<void> {
    this.#databases += 1;
    const db = openSqlite({ path: this.path });
    await migrateSqlite(db, [...membersMigrations(), ...messagesMigrations()]);
    db.close();
  }

  async open(rate = ampleRate): Promise<OpenMessages> {
    return openMessages(openSqlite({ path: this.path }), rate);
  }

  table(name: string): string {
    return name;
  }

  failingTrigger(name: string, table: string, condition: string): { create: string; drop: string } {
    return {
      create: `CREATE TRIGGER ${name} BEFORE INSERT ON ${table} WHEN ${condition}
        BEGIN SELECT RAISE(ABORT, 'made to fail'); END`,
      drop: `DROP TRIGGER ${name}`,
    };
  }
}

export function openMessages(db: Sqlite, rate = ampleRate): OpenMessages {
  const commit = new GroupCommit(db);
  return {
    store: createSqliteMessagesStore(db, commit, rate),
    query: async (sql) => db.sql(sql).all(),
    async close() {
      commit.close();
      db.close();
    },
  };
}
