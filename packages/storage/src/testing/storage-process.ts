// A process of its own for tests that need one: another writer, a holder of a lock, a victim of SIGKILL. The first
// argument says which, the second is the database's path; what it has to say it prints line by line.
import assert from "node:assert/strict";
import process from "node:process";
import { createFailpoints, parseFailpoints } from "../failpoints.ts";
import type { Migration } from "../migrations/migrations.ts";
import { GroupCommit } from "../sqlite/group-commit.ts";
import { acquireInstanceLock } from "../sqlite/instance-lock.ts";
import { openSqlite } from "../sqlite/sqlite.ts";
import { migrateSqlite } from "../sqlite/sqlite-migrations.ts";
import { StorageError } from "../storage-error.ts";

const roles: Record<string, (path: string) => Promise<void>> = {
  commitUntilKilled,
  commitUntilRefused,
  crashAtFailpoint,
  holdLock,
  increment,
  migrate,
};

const [role = "", path = ""] = process.argv.slice(2);
const start = roles[role];
assert(start !== undefined, `there is no role ${role}`);
await start(path);

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

function kindOf(error: unknown): string {
  return error instanceof StorageError ? error.kind : String(error);
}

/** Sixteen callers insert one row after the other and print each id once its commit is answered. */
async function commitUntilKilled(path: string): Promise<void> {
  const db = openSqlite({ path });
  db.exec("CREATE TABLE IF NOT EXISTS event (id INTEGER PRIMARY KEY AUTOINCREMENT, filler BLOB NOT NULL) STRICT");
  const commits = new GroupCommit(db);
  const filler = new Uint8Array(300);
  const insert = () => Number(db.sql("INSERT INTO event (filler) VALUES (?)").run(filler).lastInsertRowid);
  print("ready");
  const caller = async () => {
    for (;;) print(String(await commits.submit(insert)));
  };
  await Promise.all(Array.from({ length: 16 }, caller));
}

/** Inserts until the disk refuses, then prints the last id that was acknowledged and the kinds of two refusals. */
async function commitUntilRefused(path: string): Promise<void> {
  const db = openSqlite({ path });
  db.exec("CREATE TABLE event (id INTEGER PRIMARY KEY, filler BLOB NOT NULL) STRICT");
  const commits = new GroupCommit(db);
  let acknowledged = 0;
  const insert = () => db.sql("INSERT INTO event (filler) VALUES (?)").run(new Uint8Array(4000)).lastInsertRowid;
  const pair = () => Promise.allSettled([commits.submit(insert), commits.submit(insert)]);
  for (;;) {
    const outcomes = await pair();
    const kinds = outcomes.map((outcome) => (outcome.status === "rejected" ? kindOf(outcome.reason) : "fulfilled"));
    for (const outcome of outcomes) if (outcome.status === "fulfilled") acknowledged = outcome.value;
    if (kinds.includes("fulfilled")) continue;
    print(JSON.stringify({ acknowledged, kinds }));
    return;
  }
}

async function crashAtFailpoint(rules: string): Promise<void> {
  const failpoints = createFailpoints(parseFailpoints(rules, ["demo.sync", "demo.async"]));
  for (let hit = 1; hit <= 3; hit += 1) {
    failpoints.hitSync("demo.sync");
    await failpoints.hit("demo.async");
    print(`survived ${hit}`);
  }
}

/** Drops its handle and collects garbage before it says that it holds the lock. */
async function holdLock(path: string): Promise<void> {
  try {
    await acquireInstanceLock(path, { waitMs: 0 });
  } catch (error) {
    print(kindOf(error));
    return;
  }
  globalThis.gc?.();
  print("held");
  setInterval(() => globalThis.gc?.(), 10);
}

async function increment(path: string): Promise<void> {
  const db = openSqlite({ path, busyTimeoutMs: 30_000 });
  for (let round = 0; round < 100; round += 1) {
    db.transaction(() => {
      const row = db.sql<{ n: number }>("SELECT n FROM counter").get();
      db.sql("UPDATE counter SET n = ?").run((row?.n ?? 0) + 1);
    });
  }
  db.close();
}

async function migrate(path: string): Promise<void> {
  const migrations: Migration[] = Array.from({ length: 20 }, (_, index) => ({
    package: "steps",
    number: index + 1,
    name: "step",
    sql: `CREATE TABLE step_${index + 1} (id INTEGER PRIMARY KEY) STRICT;`,
  }));
  const db = openSqlite({ path, busyTimeoutMs: 30_000 });
  for (const { number } of await migrateSqlite(db, migrations)) print(String(number));
  db.close();
}
