// The spaces suites' harness over SQLite files, or over one database in memory that outlives its stores.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { membersMigrations } from "@claudemesh/members/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import type { PreparedSends, SendsOutcome, SpacesStore } from "../../../ports.ts";
import { type OpenSpaces, refusalOf, type SpacesHarness, toTestSends } from "../../conformance-world.ts";
import { createSqliteSpacesStore, spacesMigrations } from "../spaces-store.ts";

const meshId = "mesh-1";

function acceptSends(tx: Sqlite, _: string, sends: PreparedSends): SendsOutcome {
  for (const [index, send] of toTestSends(sends).entries()) {
    const taken = tx.sql("SELECT 1 FROM sent WHERE id = ?").get(send.id) !== undefined;
    const code = refusalOf(send, taken);
    if (code !== undefined) return { type: "refused", index, code };
    tx.sql("INSERT INTO sent (id) VALUES (?)").run(send.id);
  }
  return { type: "accepted", receipt: sends.length };
}

async function prepare(db: Sqlite): Promise<void> {
  await migrateSqlite(db, [...membersMigrations(), ...spacesMigrations()]);
  db.exec("CREATE TABLE sent (id TEXT PRIMARY KEY)");
  db.sql("INSERT INTO mesh (id, name, created_at) VALUES (?, 'm', 1)").run(meshId);
}

export function sqliteStoreOn(db: Sqlite): { readonly store: SpacesStore; readonly commit: GroupCommit } {
  const commit = new GroupCommit(db);
  return { store: createSqliteSpacesStore(db, commit, { acceptSends, sawCommit: () => undefined }), commit };
}

export class SqliteHarness implements SpacesHarness {
  readonly meshId = meshId;
  readonly someTime = "1";
  readonly #folder = mkdtempSync(join(tmpdir(), "claudemesh-spaces-"));
  #databases = 0;

  async reset(): Promise<void> {
    this.#databases += 1;
    const db = openSqlite({ path: this.#path });
    await prepare(db);
    db.close();
  }

  get #path(): string {
    return join(this.#folder, `${this.#databases}.db`);
  }

  async open(): Promise<OpenSpaces> {
    const db = openSqlite({ path: this.#path });
    const { store, commit } = sqliteStoreOn(db);
    return {
      store,
      query: async (sql) => db.sql(sql).all(),
      close: async () => {
        commit.close();
        db.close();
      },
    };
  }

  table(name: string): string {
    return name;
  }

  removeFiles(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** One database in memory; opening it again makes another store over the same rows. */
export class MemoryHarness implements SpacesHarness {
  readonly meshId = meshId;
  readonly someTime = "1";
  #db: Sqlite | undefined;

  async reset(): Promise<void> {
    this.#db?.close();
    this.#db = openSqlite({ path: ":memory:" });
    await prepare(this.#db);
  }

  async open(): Promise<OpenSpaces> {
    const db = this.#db;
    if (db === undefined) throw new Error("the harness has not been reset");
    const { store, commit } = sqliteStoreOn(db);
    return { store, query: async (sql) => db.sql(sql).all(), close: async () => commit.close() };
  }

  table(name: string): string {
    return name;
  }
}
