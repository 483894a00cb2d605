// The spaces suites' harness over SQLite files, and the schedules' host over databases in memory.
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { membersMigrations } from "@claudemesh/members/sqlite";
import type { SendsOutcome, SendToAccept } from "@claudemesh/protocol/messages/commit-sends";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite, type Sqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import type { SpacesStore } from "../../../ports.ts";
import type { ScheduleRuns } from "../../../testing/run-schedules.ts";
import { ScheduleServices } from "../../../testing/schedule-services.ts";
import { idsOf, type OpenSpaces, refusalOf, type SpacesHarness } from "../../suites/world.ts";
import { createSqliteSpaceRules } from "../rules.ts";
import { createSqliteSpacesStore, spacesMigrations } from "../spaces-store.ts";

const meshId = "mesh-1";

export function acceptSends(tx: Sqlite, _: string, sends: readonly SendToAccept[]): SendsOutcome {
  for (const [index, send] of sends.entries()) {
    const taken = tx.sql("SELECT 1 FROM sent WHERE id = ?").get(send.clientMessageId) !== undefined;
    const code = refusalOf(send, taken);
    if (code !== undefined) return { type: "refused", index, code };
    tx.sql("INSERT INTO sent (id) VALUES (?)").run(send.clientMessageId);
  }
  return { type: "accepted", recipients: idsOf(sends) };
}

async function prepare(db: Sqlite): Promise<void> {
  await migrateSqlite(db, [...membersMigrations(), ...spacesMigrations()]);
  db.exec("CREATE TABLE sent (id TEXT PRIMARY KEY)");
  db.sql("INSERT INTO mesh (id, name, created_at) VALUES (?, 'm', 1)").run(meshId);
}

function sqliteStoreOn(
  db: Sqlite,
  hooks?: CommitHooks<void>,
): { readonly store: SpacesStore; readonly commit: GroupCommit } {
  const commit = new GroupCommit(db, { hooks });
  return { store: createSqliteSpacesStore(db, commit, { acceptSends }), commit };
}

export function spacesOn(db: Sqlite): OpenSpaces {
  const { store, commit } = sqliteStoreOn(db);
  return {
    store,
    rules: createSqliteSpaceRules(db),
    query: async (sql) => db.sql(sql).all(),
    close: async () => {
      commit.close();
      db.close();
    },
  };
}

export class SqliteHarness implements SpacesHarness {
  readonly meshId = meshId;
  readonly someTime = "1";
  readonly #folder = mkdtempSync(join(tmpdir(), "claudemesh-spaces-"));
  #databases = 0;

  /** A copy of a database that was made once, which is sooner done than making it anew. */
  async reset(): Promise<void> {
    const template = join(this.#folder, "template.db");
    if (this.#databases === 0) {
      const db = openSqlite({ path: template });
      await prepare(db);
      db.close();
    }
    this.#databases += 1;
    copyFileSync(template, this.path);
  }

  get path(): string {
    return join(this.#folder, `${this.#databases}.db`);
  }

  async open(): Promise<OpenSpaces> {
    return spacesOn(openSqlite({ path: this.path }));
  }

  table(name: string): string {
    return name;
  }

  removeFiles(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export const scheduleMembers = ["a", "b", "c"].map((letter) => letter.repeat(64));
const schedulesPerDatabase = 200;

/** Databases in memory for schedules: restarting makes another service over the same rows. */
export class MemoryHost extends ScheduleServices {
  #db: Sqlite | undefined;

  runs(given: Pick<ScheduleRuns, "count" | "seed" | "members">): ScheduleRuns {
    let runs = 0;
    const host = async () => {
      if (runs++ % schedulesPerDatabase === 0) await this.#reset();
      else await this.restart();
      return this;
    };
    return { ...given, meshId, host };
  }

  async #reset(): Promise<void> {
    this.#db?.close();
    this.#db = openSqlite({ path: ":memory:" });
    await prepare(this.#db);
    for (const pubkey of scheduleMembers) {
      this.#db.sql("INSERT INTO member VALUES (?, ?, 'm', 'member', 1, NULL)").run(meshId, pubkey);
    }
    await this.restart();
  }

  protected override createStore(hooks: CommitHooks<void>): SpacesStore {
    if (this.#db === undefined) throw new Error("the host has not been reset");
    return sqliteStoreOn(this.#db, hooks).store;
  }
}
