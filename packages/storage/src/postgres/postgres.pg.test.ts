// PostgreSQL through the conformance suite, and what is particular to it: which failures run again and which must not,
// what every connection promises, and how long it waits.
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { type FaultyProxy, startFaultyProxy } from "../../../../tests/support/faulty-proxy.ts";
import { createTestDatabase } from "../../../../tests/support/services.ts";
import { describeStorageSuite, type Row, type SuiteStore } from "../database.suite.ts";
import { type OpenPostgresOptions, openPostgres, type Postgres, type PostgresTransaction } from "./postgres.ts";
import { migratePostgres } from "./postgres-migrations.ts";

const database = await createTestDatabase("storage");
afterAll(() => database?.drop());

const suite = describe.skipIf(database === undefined);
const url = database?.url ?? "";

/** What a test wants to see or do behind the back of the code under test. */
let admin: pg.Client;

function open(options: Partial<OpenPostgresOptions> = {}): Postgres {
  const postgres = openPostgres({ url, onIdleError: () => undefined, ...options });
  onTestFinished(() => postgres.close());
  return postgres;
}

async function startProxy(): Promise<FaultyProxy> {
  const proxy = await startFaultyProxy(url);
  onTestFinished(() => proxy.stop());
  return proxy;
}

function toSuiteStore(): SuiteStore {
  const postgres = openPostgres({ url, poolSize: 4, retry: { attempts: 1000 }, onIdleError: () => undefined });
  return {
    transaction(body) {
      return postgres.transaction(
        async (tx) => {
          const steps = body();
          let step = steps.next();
          while (step.done !== true) step = steps.next(await tx.query<Row>(step.value));
          return step.value;
        },
        { isolation: "serializable" },
      );
    },
    migrate: (migrations) => migratePostgres(postgres, migrations),
    close: () => postgres.close(),
  };
}

async function selectIds(): Promise<number[]> {
  const { rows } = await admin.query<{ id: number }>("SELECT id FROM conformance.event ORDER BY id");
  return rows.map((row) => row.id);
}

async function reset(): Promise<void> {
  await admin.query(`DROP SCHEMA IF EXISTS claudemesh CASCADE;
    DROP SCHEMA IF EXISTS conformance CASCADE;
    CREATE SCHEMA conformance;
    CREATE TABLE conformance.event (
      id integer PRIMARY KEY,
      parent_id integer REFERENCES conformance.event (id) DEFERRABLE INITIALLY DEFERRED
    )`);
}

function insert(tx: PostgresTransaction, id: number): Promise<number> {
  return tx.execute("INSERT INTO conformance.event (id) VALUES ($1)", [id]);
}

/** The driver cannot put it into the server's format. */
const unwritable = {
  toPostgres() {
    throw new RangeError("unwritable");
  },
};

const raiseConflict = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$";

suite("PostgreSQL", () => {
  beforeAll(async () => {
    admin = new pg.Client({ connectionString: url });
    await admin.connect();
  });
  afterAll(() => admin.end());

  describe("conformance", () => {
    describeStorageSuite({
      reset,
      open: async () => toSuiteStore(),
      table: (name) => `conformance.${name}`,
      ledger: "claudemesh.schema_migration",
    });
  });

  describe("a connection", () => {
    beforeEach(reset);
    afterEach(() => admin.query(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" RESET ALL`));

    test("flushes every commit whatever the database's default, and relies on no search path", async () => {
      const name = new URL(url).pathname.slice(1);
      await admin.query(`ALTER DATABASE "${name}" SET synchronous_commit = off`);
      await admin.query(`ALTER DATABASE "${name}" SET search_path = conformance`);
      const postgres = open();
      expect(await postgres.read("SHOW synchronous_commit")).toEqual([{ synchronous_commit: "on" }]);
      expect(await postgres.read("SHOW search_path")).toEqual([{ search_path: "pg_catalog" }]);
      await expect(postgres.read("SELECT * FROM event")).rejects.toMatchObject({ kind: "statement" });
    });

    test("keeps a stricter setting than ours", async () => {
      await admin.query(`ALTER DATABASE "${new URL(url).pathname.slice(1)}" SET synchronous_commit = remote_apply`);
      expect(await open().read("SHOW synchronous_commit")).toEqual([{ synchronous_commit: "remote_apply" }]);
    });

    test("plans named statements once where the options say so", async () => {
      expect(await open({ genericPlans: true }).read("SHOW plan_cache_mode")).toEqual([
        { plan_cache_mode: "force_generic_plan" },
      ]);
      expect(await open().read("SHOW plan_cache_mode")).toEqual([{ plan_cache_mode: "auto" }]);
    });

    test("does not write outside a transaction", async () => {
      const postgres = open();
      const writing = postgres.read("INSERT INTO conformance.event (id) VALUES (1)");
      await expect(writing).rejects.toMatchObject({ kind: "unavailable" });
      expect(await selectIds()).toEqual([]);
    });

    test("that dies while idle is reported and replaced", async () => {
      const reported = Promise.withResolvers<Error>();
      const postgres = open({ applicationName: "idle-victim", onIdleError: reported.resolve });
      await postgres.read("SELECT 1");
      await admin.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'idle-victim'",
      );
      expect(await reported.promise).toBeInstanceOf(Error);
      expect(await postgres.read("SELECT 2 AS n")).toEqual([{ n: 2 }]);
    });

    test("that falls silent while it is prepared frees its slot in the pool for another", async () => {
      const proxy = await startProxy();
      proxy.swallowAt("set_config");
      const postgres = open({ url: proxy.url, poolSize: 1, connectTimeoutMs: 500 });
      expect(await postgres.read("SELECT 2 AS n")).toEqual([{ n: 2 }]);
      expect(proxy.seen.strikes).toBe(1);
    });

    test("gives int8 arrays as exact numbers", async () => {
      const postgres = open();
      const rows = await postgres.read("SELECT ARRAY[[1, NULL], [2, 3]]::int8[] AS n, count(*) AS c");
      expect(rows).toEqual([
        {
          n: [
            [1, null],
            [2, 3],
          ],
          c: 1,
        },
      ]);
      const unsafe = postgres.read("SELECT ARRAY[9007199254740993]::int8[] AS n");
      await expect(unsafe).rejects.toMatchObject({ kind: "unsafe_integer" });
      expect(await postgres.read("SELECT $1::int8 AS n", [7], "named")).toEqual([{ n: 7 }]);
    });
  });

  describe("a transaction", () => {
    beforeEach(reset);

    test("runs again when the server asks for it, until it succeeds", async () => {
      let runs = 0;
      await open().transaction(async (tx) => {
        runs += 1;
        await insert(tx, runs);
        if (runs < 3) await tx.script(raiseConflict);
      });
      expect(runs).toBe(3);
      expect(await selectIds()).toEqual([3]);
    });

    test("gives up after its attempts and says conflict", async () => {
      let runs = 0;
      const work = open({ retry: { attempts: 4 } }).transaction(async (tx) => {
        runs += 1;
        await tx.script(raiseConflict);
      });
      await expect(work).rejects.toMatchObject({ kind: "conflict" });
      expect(runs).toBe(4);
    });

    test("that deadlocks with another runs again, and both succeed", async () => {
      await admin.query("INSERT INTO conformance.event (id) VALUES (1), (2)");
      const postgres = open();
      const bothHoldOne = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
      let runs = 0;
      const lock = (tx: PostgresTransaction, id: number) =>
        tx.execute("SELECT FROM conformance.event WHERE id = $1 FOR UPDATE", [id]);
      const cross = (mine: 0 | 1, theirs: 0 | 1) =>
        postgres.transaction(async (tx) => {
          runs += 1;
          await lock(tx, mine + 1);
          bothHoldOne[mine].resolve();
          await bothHoldOne[theirs].promise;
          await lock(tx, theirs + 1);
        });
      await Promise.all([cross(0, 1), cross(1, 0)]);
      expect(runs).toBe(3);
    });

    test("runs again when its connection is lost before COMMIT", async () => {
      const proxy = await startProxy();
      proxy.breakAt("cut here", "before");
      let runs = 0;
      await open({ url: proxy.url }).transaction(async (tx) => {
        runs += 1;
        await insert(tx, runs);
        await tx.query("SELECT 'cut here'");
      });
      expect(proxy.seen.strikes).toBe(1);
      expect(runs).toBe(2);
      expect(await selectIds()).toEqual([2]);
    });

    test("runs again when its connection is lost before COMMIT and the body does not mind", async () => {
      const proxy = await startProxy();
      proxy.breakAt("cut here", "before");
      let runs = 0;
      await open({ url: proxy.url }).transaction(async (tx) => {
        runs += 1;
        await insert(tx, runs);
        await tx.query("SELECT 'cut here'").catch(() => undefined);
      });
      expect(runs).toBe(2);
      expect(await selectIds()).toEqual([2]);
    });

    test("runs again when the server ends its connection in the middle of a statement", async () => {
      let runs = 0;
      await open().transaction(async (tx) => {
        runs += 1;
        await insert(tx, runs);
        if (runs === 1) await tx.query("SELECT pg_terminate_backend(pg_backend_pid())");
      });
      expect(runs).toBe(2);
      expect(await selectIds()).toEqual([2]);
    });

    test("never runs again when the server ends its connection in the middle of COMMIT", async () => {
      await admin.query(`CREATE FUNCTION conformance.hang_up() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END';
        CREATE CONSTRAINT TRIGGER hang_up AFTER INSERT ON conformance.event DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION conformance.hang_up()`);
      let runs = 0;
      const work = open().transaction(async (tx) => {
        runs += 1;
        await insert(tx, runs);
      });
      await expect(work).rejects.toMatchObject({ kind: "commit_unknown" });
      expect(runs).toBe(1);
    });

    test("runs again when the server ends its connection between statements", async () => {
      let runs = 0;
      await open().transaction(async (tx) => {
        runs += 1;
        const [row] = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
        await insert(tx, runs);
        if (runs === 1) await admin.query("SELECT pg_terminate_backend($1, 5000)", [row?.pid]);
        await tx.query("SELECT 1");
      });
      expect(runs).toBe(2);
      expect(await selectIds()).toEqual([2]);
    });

    test("runs again when the server ended it before a COMMIT that was already on its way", async () => {
      let runs = 0;
      await open().transaction(async (tx) => {
        runs += 1;
        await insert(tx, runs);
        if (runs > 1) return;
        tx.script("SELECT pg_terminate_backend(pg_backend_pid(), 5000)").catch(() => undefined);
      });
      expect(runs).toBe(2);
      expect(await selectIds()).toEqual([2]);
    });

    test.each([
      ["before", []],
      ["after", [1]],
    ] as const)("never runs again when its connection is lost %s the server heard COMMIT", async (when, expected) => {
      const proxy = await startProxy();
      proxy.breakAt("COMMIT\0", when);
      let runs = 0;
      const work = open({ url: proxy.url }).transaction(async (tx) => {
        runs += 1;
        await insert(tx, runs);
      });
      await expect(work).rejects.toMatchObject({ kind: "commit_unknown" });
      expect(proxy.seen.strikes).toBe(1);
      expect(runs).toBe(1);
      expect(await selectIds()).toEqual(expected);
    });

    test("that waits for no answer travels whole, and never runs again when it is lost", async () => {
      const proxy = await startProxy();
      proxy.breakAt("BEGIN", "before");
      let runs = 0;
      const work = open({ url: proxy.url }).transaction(async (tx) => {
        runs += 1;
        insert(tx, runs).catch(() => undefined);
      });
      await expect(work).rejects.toMatchObject({ kind: "commit_unknown" });
      expect(proxy.seen.strikes).toBe(1);
      expect(runs).toBe(1);
      expect(await selectIds()).toEqual([]);
    });

    test("whose answer never comes is taken for lost", async () => {
      const proxy = await startProxy();
      proxy.swallowAt("swallow this");
      const postgres = open({ url: proxy.url, statementTimeoutMs: 200, answerGraceMs: 100 });
      let runs = 0;
      await postgres.transaction(async (tx) => {
        runs += 1;
        await tx.query("SELECT 'swallow this'");
      });
      expect(proxy.seen.strikes).toBe(1);
      expect(runs).toBe(2);
    });

    test("whose COMMIT is never answered is unknown", async () => {
      const proxy = await startProxy();
      proxy.swallowAt("COMMIT\0");
      const postgres = open({ url: proxy.url, statementTimeoutMs: 200, answerGraceMs: 100 });
      const work = postgres.transaction((tx) => insert(tx, 1));
      await expect(work).rejects.toMatchObject({ kind: "commit_unknown" });
    });

    test("that breaks a rule is not run again, also when COMMIT finds out", async () => {
      let runs = 0;
      const postgres = open();
      const orphan = postgres.transaction(async (tx) => {
        runs += 1;
        await tx.execute("INSERT INTO conformance.event (id, parent_id) VALUES (1, 99)");
      });
      await expect(orphan).rejects.toMatchObject({ kind: "constraint", constraint: "foreign_key" });
      expect(runs).toBe(1);
      expect(await selectIds()).toEqual([]);
    });

    test("of which a failed statement was ignored says that nothing was committed", async () => {
      const work = open().transaction(async (tx) => {
        await insert(tx, 1);
        await Promise.allSettled([tx.query("SELECT 1 / 0")]);
      });
      await expect(work).rejects.toMatchObject({ kind: "statement" });
      expect(await selectIds()).toEqual([]);
    });

    test("that has not waited for its last statement is committed with it, or fails as it does", async () => {
      const postgres = open({ retry: { attempts: 1 } });
      const unawaited = (text: string) =>
        postgres.transaction(async (tx) => {
          await insert(tx, 1);
          tx.script(text).catch(() => undefined);
        });
      await expect(unawaited("INSERT INTO conformance.event (id) VALUES (1)")).rejects.toMatchObject({
        kind: "constraint",
        constraint: "unique",
      });
      await expect(unawaited(raiseConflict)).rejects.toMatchObject({ kind: "conflict" });
      expect(await selectIds()).toEqual([]);
      await unawaited("INSERT INTO conformance.event (id) VALUES (2)");
      expect(await selectIds()).toEqual([1, 2]);
    });

    test.each([
      ["whose values cannot be written", [unwritable], "another", "unwritable"],
      ["under a name that is taken", [2], "insert", "must be unique"],
    ])(
      "of which a statement never left, %s, commits nothing and fails as it does",
      async (_, values, name, message) => {
        const postgres = open();
        for (const wait of [false, true]) {
          const work = postgres.transaction(async (tx) => {
            tx.execute("INSERT INTO conformance.event (id) VALUES ($1)", [1], "insert").catch(() => undefined);
            const refused = tx
              .execute("INSERT INTO conformance.event VALUES ($1)", values, name)
              .catch(() => undefined);
            if (wait) await refused;
          });
          await expect(work).rejects.toThrow(message);
          expect(await selectIds()).toEqual([]);
        }
      },
    );

    test("of which a statement never left does not keep others from using its name", async () => {
      const postgres = open({ poolSize: 1 });
      const echo = (value: unknown) => postgres.transaction((tx) => tx.query("SELECT $1::int AS n", [value], "echo"));
      expect(await echo(1)).toEqual([{ n: 1 }]);
      await expect(echo(unwritable)).rejects.toThrow("unwritable");
      expect(await echo(2)).toEqual([{ n: 2 }]);
    });

    test("runs statements in the order in which they were sent, without waiting between them", async () => {
      const results = await open().transaction((tx) =>
        Promise.all([
          insert(tx, 1),
          tx.query("SELECT count(*) AS n FROM conformance.event"),
          insert(tx, 2),
          tx.query("SELECT count(*) AS n FROM conformance.event"),
        ]),
      );
      expect(results).toEqual([1, [{ n: 1 }], 1, [{ n: 2 }]]);
    });

    test("takes no statement after its end", async () => {
      const postgres = open();
      const leaked = await postgres.transaction(async (tx) => tx);
      await expect(insert(leaked, 1)).rejects.toThrow("the transaction has ended");
      expect(await selectIds()).toEqual([]);
    });

    test("runs at the isolation that was asked for", async () => {
      const postgres = open();
      const show = (tx: PostgresTransaction) => tx.query("SHOW transaction_isolation");
      expect(await postgres.transaction(show)).toEqual([{ transaction_isolation: "read committed" }]);
      const stricter = await postgres.transaction(show, { isolation: "repeatable_read" });
      expect(stricter).toEqual([{ transaction_isolation: "repeatable read" }]);
    });

    test("is stopped at the statement's time limit, its own or the pool's", async () => {
      const postgres = open({ statementTimeoutMs: 50 });
      const wait = (tx: PostgresTransaction) => tx.query("SELECT pg_sleep(0.3)");
      await expect(postgres.transaction(wait)).rejects.toMatchObject({ kind: "timeout" });
      expect(await postgres.transaction(wait, { statementTimeoutMs: 0 })).toHaveLength(1);
      expect(await postgres.read("SHOW statement_timeout")).toEqual([{ statement_timeout: "50ms" }]);
    });

    test("that is under way is finished before the pool closes", async () => {
      const postgres = open();
      const began = Promise.withResolvers<void>();
      const work = postgres.transaction(async (tx) => {
        await insert(tx, 1);
        began.resolve();
        await tx.query("SELECT pg_sleep(0.05)");
      });
      await began.promise;
      await postgres.close();
      expect(await selectIds()).toEqual([1]);
      await work;
    });
  });

  describe("a server that cannot be used", () => {
    test("is unavailable after a few attempts when no server listens", async () => {
      const unused = new URL(url);
      unused.port = "1";
      const postgres = open({ url: unused.href, retry: { attempts: 2 } });
      await expect(postgres.read("SELECT 1")).rejects.toMatchObject({ kind: "unavailable" });
    });

    test("is unavailable at once when the database does not exist", async () => {
      const proxy = await startProxy();
      const missing = new URL(proxy.url);
      missing.pathname = "/claudemesh_test_no_such_database";
      await expect(open({ url: missing.href }).read("SELECT 1")).rejects.toMatchObject({ kind: "unavailable" });
      expect(proxy.seen.connections).toBe(1);
    });
  });

  test("a migrator waits for another for longer than a statement may take", async () => {
    await reset();
    const postgres = open({ statementTimeoutMs: 50, applicationName: "waiting-migrator" });
    await admin.query("SELECT pg_advisory_lock(1668050291)");
    const migrating = migratePostgres(postgres, [{ package: "demo", number: 1, name: "create", sql: "SELECT 1" }]);
    const waiting =
      "SELECT 1 FROM pg_stat_activity WHERE application_name = 'waiting-migrator' AND wait_event = 'advisory'";
    await expect.poll(async () => (await admin.query(waiting)).rowCount).toBe(1);
    await admin.query("SELECT pg_sleep(0.2), pg_advisory_unlock(1668050291)");
    expect(await migrating).toHaveLength(1);
  });
});
