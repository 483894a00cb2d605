// SQLite through the conformance suite, and what is particular to it: file modes, settings, the driver's traps.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { afterAll, describe, expect, test } from "vitest";
import { describeStorageSuite, type Row, type SuiteStore } from "../database.suite.ts";
import { StorageError } from "../storage-error.ts";
import { makeTemporaryFolder, startStorageProcess } from "../testing/storage-processes.ts";
import { openSqlite, openSqliteReadOnly, type Sqlite } from "./sqlite.ts";
import { migrateSqlite } from "./sqlite-migrations.ts";

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

/** The mode that each creation of a file got under the umask of that moment, and each one that it was changed to. */
function modesInTrace(trace: string, name: string): number[] {
  let umask = 0;
  const modes: number[] = [];
  for (const call of trace.split("\n")) {
    const masked = /umask\((0[0-7]*)\)/.exec(call);
    if (masked !== null) umask = Number.parseInt(masked[1] ?? "", 8);
    const mode = Number.parseInt(/, (0[0-7]+)\) += /.exec(call)?.[1] ?? "", 8);
    if (Number.isNaN(mode)) continue;
    if (call.includes("O_CREAT") && call.includes(name)) modes.push(mode & ~umask);
    if (call.includes("chmod(")) modes.push(mode);
  }
  return modes;
}

function withUmask<R>(mask: number, body: () => R): R {
  const before = process.umask(mask);
  try {
    return body();
  } finally {
    process.umask(before);
  }
}

function failureOf(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("it did not fail");
}

function toSuiteStore(db: Sqlite): SuiteStore {
  return {
    async transaction(body) {
      return db.transaction(() => {
        const steps = body();
        let step = steps.next();
        while (step.done !== true) step = steps.next(db.sql<Row>(step.value).all());
        return step.value;
      });
    },
    migrate: (migrations) => migrateSqlite(db, migrations),
    async close() {
      db.close();
    },
  };
}

describe("SQLite", async () => {
  let databases = 0;
  const folder = await mkdtemp(join(tmpdir(), "claudemesh-conformance-"));
  afterAll(() => rm(folder, { recursive: true }));
  describeStorageSuite({
    async reset() {
      databases += 1;
    },
    open: async () => toSuiteStore(openSqlite({ path: join(folder, `${databases}.db`) })),
    table: (name) => name,
    ledger: "schema_migration",
  });
});

describe("the file", () => {
  test.each([0, 0o022, 0o777])("is 0600 with its log and index, whatever the umask (%o)", (umask) => {
    const path = join(makeTemporaryFolder(), "store.db");
    const db = withUmask(umask, () => openSqlite({ path }));
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    expect([path, `${path}-wal`, `${path}-shm`].map(modeOf)).toEqual(["600", "600", "600"]);
    db.close();
  });

  test.runIf(spawnSync("strace", ["-V"]).status === 0)("has no moment with a wider mode", async () => {
    const folder = makeTemporaryFolder();
    const trace = join(folder, "trace");
    const path = join(folder, "store.db");
    const tracer = ["strace", "-f", "-o", trace, "-e", "trace=umask,open,openat,creat,chmod,fchmod,fchmodat"];
    const { ended } = startStorageProcess("migrate", path, ["/bin/sh", "-c", 'umask 0; exec "$@"', "sh", ...tracer]);
    expect(await ended).toBe(0);
    const modes = modesInTrace(readFileSync(trace, "utf8"), "store.db");
    expect(modes.length).toBeGreaterThanOrEqual(4);
    expect(new Set(modes)).toEqual(new Set([0o600]));
  });

  test("gives the umask back", () => {
    withUmask(0o027, () => {
      openSqlite({ path: join(makeTemporaryFolder(), "store.db") }).close();
      expect(process.umask()).toBe(0o027);
    });
  });

  test("is tightened when it was left readable for others", () => {
    const path = join(makeTemporaryFolder(), "store.db");
    openSqlite({ path }).close();
    chmodSync(path, 0o644);
    const db = openSqlite({ path });
    expect(modeOf(path)).toBe("600");
    db.close();
  });

  test("is refused where a link, a folder or a link instead of its log is in the way", () => {
    const folder = makeTemporaryFolder();
    writeFileSync(join(folder, "elsewhere"), "");
    symlinkSync(join(folder, "elsewhere"), join(folder, "link.db"));
    symlinkSync(join(folder, "nowhere"), join(folder, "dangling.db"));
    symlinkSync(join(folder, "elsewhere"), join(folder, "log.db-wal"));
    mkdirSync(join(folder, "folder.db"));
    for (const name of ["link.db", "dangling.db", "log.db", "folder.db"]) {
      const failure = failureOf(() => openSqlite({ path: join(folder, name) }));
      expect(failure, name).toMatchObject({ kind: "path_refused" });
      expect((failure as Error).message).toContain(join(folder, name));
    }
  });

  test("that holds something else is corrupt", () => {
    const path = join(makeTemporaryFolder(), "store.db");
    writeFileSync(path, "this is no database, however long one reads it ".repeat(100));
    expect(failureOf(() => openSqlite({ path }))).toMatchObject({ kind: "corrupt" });
  });

  test("in a folder that does not exist, or missing where it must exist, is unavailable and not created", () => {
    const folder = makeTemporaryFolder();
    expect(failureOf(() => openSqlite({ path: join(folder, "no", "store.db") }))).toMatchObject({
      kind: "unavailable",
    });
    const path = join(folder, "store.db");
    expect(failureOf(() => openSqlite({ path, mustExist: true }))).toMatchObject({ kind: "unavailable" });
    expect(statSync(path, { throwIfNoEntry: false })).toBeUndefined();
  });
});

describe("a connection", () => {
  test("flushes every commit, enforces references and waits for locks", () => {
    const db = openSqlite({ path: join(makeTemporaryFolder(), "store.db"), busyTimeoutMs: 1234 });
    const names = [
      "journal_mode",
      "synchronous",
      "foreign_keys",
      "busy_timeout",
      "fullfsync",
      "checkpoint_fullfsync",
      "trusted_schema",
    ];
    const values = names.map((name) => Object.values(db.sql(`PRAGMA ${name}`).get() ?? {})[0]);
    expect(values).toEqual(["wal", 2, 1, 1234, 1, 1, 0]);
    db.close();
  });

  test("has as much memory for pages as the options say", () => {
    const db = openSqlite({ path: join(makeTemporaryFolder(), "store.db"), cacheBytes: 8 * 1_048_576 });
    expect(db.sql("PRAGMA cache_size").get()).toEqual({ cache_size: -8192 });
    db.close();
  });

  test("keeps a full-text index by triggers although the schema is not trusted", () => {
    const db = openSqlite({ path: ":memory:" });
    db.exec(`CREATE TABLE note (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
      CREATE VIRTUAL TABLE note_text USING fts5 (body, content = 'note', content_rowid = 'id');
      CREATE TRIGGER note_added AFTER INSERT ON note BEGIN
        INSERT INTO note_text (rowid, body) VALUES (new.id, new.body);
      END;
      INSERT INTO note (body) VALUES ('a quick brown fox');`);
    expect(db.sql("SELECT rowid FROM note_text WHERE note_text MATCH ?").all("brown")).toHaveLength(1);
  });

  test("says busy when another process keeps the lock", () => {
    const path = join(makeTemporaryFolder(), "store.db");
    const db = openSqlite({ path, busyTimeoutMs: 1 });
    const holder = new DatabaseSync(path);
    holder.exec("BEGIN IMMEDIATE");
    expect(failureOf(() => db.transaction(() => undefined))).toMatchObject({ kind: "busy" });
    holder.close();
    expect(db.transaction(() => "free")).toBe("free");
    db.close();
  });

  test("leaves nothing in the log when it closes", () => {
    const path = join(makeTemporaryFolder(), "store.db");
    const db = openSqlite({ path });
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    expect(db.close()).toEqual({ checkpointed: true });
    expect(db.close()).toEqual({ checkpointed: false });
    expect(statSync(`${path}-wal`, { throwIfNoEntry: false })).toBeUndefined();
  });

  test("closes while a reader is in the way, and the log keeps what it holds", () => {
    const path = join(makeTemporaryFolder(), "store.db");
    const db = openSqlite({ path, busyTimeoutMs: 1 });
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    const reader = new DatabaseSync(path);
    reader.exec("BEGIN; SELECT count(*) FROM t");
    db.exec("INSERT INTO t VALUES (1)");
    expect(db.close()).toEqual({ checkpointed: false });
    reader.close();
    const again = openSqlite({ path });
    expect(again.sql("SELECT id FROM t").all()).toHaveLength(1);
    again.close();
  });

  test("shares a file with other processes, and no update is lost", async () => {
    const path = join(makeTemporaryFolder(), "store.db");
    const db = openSqlite({ path });
    db.exec("CREATE TABLE counter (n INTEGER NOT NULL) STRICT; INSERT INTO counter VALUES (0)");
    const processes = [1, 2, 3].map(() => startStorageProcess("increment", path));
    expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual([0, 0, 0]);
    expect(db.sql("SELECT n FROM counter").get()).toMatchObject({ n: 300 });
    db.close();
  });
});

describe("a statement", () => {
  test("is one: text after it is refused instead of ignored", () => {
    const db = openSqlite({ path: ":memory:" });
    expect(() => db.sql("SELECT 1; SELECT 2")).toThrow("this would be ignored: SELECT 2");
    expect(() => db.sql("-- only a remark")).toThrow();
    expect(db.sql("-- what for\nSELECT 'ä;' AS v ;\n ").get()).toMatchObject({ v: "ä;" });
  });

  test("gives rows as lists where it is asked for tuples, and as objects elsewhere, also for the same text", () => {
    const db = openSqlite({ path: ":memory:" });
    const text = "SELECT 1 AS n, 'a' AS n, NULL AS other";
    expect(db.sqlTuples(text).all()).toEqual([[1, "a", null]]);
    expect(db.sql(text).get()).toMatchObject({ n: "a", other: null });
    expect(db.sqlTuples(text).get()).toEqual([1, "a", null]);
    expect(db.sqlTuples("SELECT 1 WHERE 0").get()).toBeUndefined();
  });

  test("writes every row of what it selects without saying so, and fails as one that says so", () => {
    const db = openSqlite({ path: ":memory:" });
    db.exec("CREATE TABLE source (n INTEGER); CREATE TABLE target (n INTEGER UNIQUE)");
    const insert = db.sql("INSERT INTO source (n) VALUES (?)");
    for (let n = 1; n <= 500; n++) insert.write(n);
    const copy = db.sql("INSERT INTO target (n) SELECT n FROM source WHERE n > ?");
    expect(copy.write(0)).toBeUndefined();
    expect(db.sql("SELECT count(*) AS n, sum(n) AS sum FROM target").get()).toEqual({ n: 500, sum: 125_250 });
    expect(failureOf(() => copy.write(499))).toMatchObject({ kind: "constraint" });
    db.close();
  });

  test("is prepared once, and the number kept is bounded", () => {
    const db = openSqlite({ path: ":memory:" });
    const first = db.sql("SELECT 0 AS n");
    expect(db.sql("SELECT 0 AS n")).toBe(first);
    for (let n = 1; n <= 600; n += 1) expect(db.sql(`SELECT ${n} AS n`).get()).toMatchObject({ n });
    expect(db.sql("SELECT 0 AS n")).not.toBe(first);
    expect(first.get()).toMatchObject({ n: 0 });
  });
});

describe("a transaction", () => {
  test("does not nest", () => {
    const db = openSqlite({ path: ":memory:" });
    expect(() => db.transaction(() => db.transaction(() => undefined))).toThrow("transactions do not nest");
    expect(db.isTransaction).toBe(false);
  });

  test("refuses a body that goes on after it returned", () => {
    const db = openSqlite({ path: ":memory:" });
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY)");
    const body = async () => db.sql("INSERT INTO t VALUES (1)").run();
    expect(() => db.transaction(body)).toThrow("synchronous");
    expect(db.sql("SELECT id FROM t").all()).toEqual([]);
  });

  test("refuses a body that ended it", () => {
    const db = openSqlite({ path: ":memory:" });
    expect(() => db.transaction(() => db.exec("COMMIT"))).toThrow("ended the transaction");
  });

  test("without room says disk_full, though SQLite has rolled back by itself, and the connection goes on", () => {
    const db = openSqlite({ path: join(makeTemporaryFolder(), "store.db") });
    db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, filler BLOB); PRAGMA max_page_count = 20");
    const insert = (size: number) => db.sql("INSERT INTO t (filler) VALUES (?)").run(new Uint8Array(size));
    const failure = failureOf(() =>
      db.transaction(() => {
        insert(10);
        insert(1_000_000);
      }),
    );
    expect(failure).toBeInstanceOf(StorageError);
    expect(failure).toMatchObject({ kind: "disk_full" });
    expect(db.isTransaction).toBe(false);
    expect(db.sql("SELECT id FROM t").all()).toEqual([]);
    db.transaction(() => insert(10));
    expect(db.sql("SELECT id FROM t").all()).toHaveLength(1);
    db.close();
  });
});

describe("migrations on SQLite", () => {
  test("may rebuild a table that others refer to without losing their rows", async () => {
    const db = openSqlite({ path: ":memory:" });
    const create = `CREATE TABLE owner (id INTEGER PRIMARY KEY) STRICT;
      CREATE TABLE pet (id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owner (id) ON DELETE CASCADE) STRICT;
      INSERT INTO owner VALUES (1); INSERT INTO pet VALUES (7, 1);`;
    const rebuild = `CREATE TABLE owner_new (id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT '') STRICT;
      INSERT INTO owner_new (id) SELECT id FROM owner;
      DROP TABLE owner;
      ALTER TABLE owner_new RENAME TO owner;`;
    await migrateSqlite(db, [
      { package: "pets", number: 1, name: "create", sql: create },
      { package: "pets", number: 2, name: "rebuild", sql: rebuild },
    ]);
    expect(db.sql("SELECT id FROM pet").all()).toHaveLength(1);
    expect(failureOf(() => db.exec("INSERT INTO pet VALUES (8, 99)"))).toMatchObject({ constraint: "foreign_key" });
  });

  test("are refused when they leave a reference to nothing", async () => {
    const db = openSqlite({ path: ":memory:" });
    const sql = `CREATE TABLE owner (id INTEGER PRIMARY KEY) STRICT;
      CREATE TABLE pet (id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES owner (id)) STRICT;
      INSERT INTO pet VALUES (7, 1);`;
    const migration = { package: "pets", number: 1, name: "create", sql };
    await expect(migrateSqlite(db, [migration])).rejects.toMatchObject({ constraint: "foreign_key" });
    expect(db.sql("SELECT name FROM sqlite_schema WHERE name = 'pet'").all()).toEqual([]);
  });

  test("run once when several processes start together", async () => {
    const path = join(makeTemporaryFolder(), "store.db");
    const processes = [1, 2, 3].map(() => startStorageProcess("migrate", path));
    expect(await Promise.all(processes.map(({ ended }) => ended))).toEqual([0, 0, 0]);
    const numbers = processes.flatMap(({ lines }) => lines.map(Number)).sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  });
});

test("a connection that only reads waits for others for 5 s, and changes nothing", async () => {
  const folder = await mkdtemp(join(tmpdir(), "cm-read-"));
  try {
    const path = join(folder, "x.db");
    openSqlite({ path }).close();
    const before = readFileSync(path);
    const db = openSqliteReadOnly(path);
    expect(db.sql("PRAGMA busy_timeout").get()).toEqual({ timeout: 5_000 });
    expect(() => db.exec("CREATE TABLE t (a)")).toThrow(StorageError);
    db.connection.close();
    expect(readFileSync(path)).toEqual(before);
  } finally {
    await rm(folder, { recursive: true });
  }
});
