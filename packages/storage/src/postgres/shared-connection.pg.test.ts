// Transactions of a line on one connection of PostgreSQL: their order, what the failure of one is to the next, and who else
// gets a connection.
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { startFaultyProxy } from "../../../../tests/support/faulty-proxy.ts";
import { createTestDatabase } from "../../../../tests/support/services.ts";
import { until } from "../../../../tests/support/world.ts";
import { type OpenPostgresOptions, openPostgres, type Postgres, type PostgresTransaction } from "./postgres.ts";

const database = await createTestDatabase("transaction_line");
afterAll(() => database?.drop());
const url = database?.url ?? "";

/** Looks and interferes behind the back of the code under test. */
let admin: pg.Client;
let observer: pg.Client;

function open(options: Partial<OpenPostgresOptions> = {}): Postgres {
  const postgres = openPostgres({ url, onIdleError: () => undefined, ...options });
  onTestFinished(() => postgres.close());
  return postgres;
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

/** In the order in which they were committed. */
async function selectIds(): Promise<number[]> {
  const { rows } = await observer.query<{ id: number }>("SELECT id FROM line.event ORDER BY at");
  return rows.map(({ id }) => id);
}

/** Waits for nothing, so that COMMIT follows. Fails where COMMIT does. */
function insert(tx: PostgresTransaction, id: unknown): void {
  tx.execute("INSERT INTO line.event (id) VALUES ($1)", [id], "insert_event").catch(() => undefined);
}

const untilLockIsWaitedFor = () =>
  until("a transaction waits for a lock", async () => {
    const { rowCount } = await observer.query(
      "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    return rowCount === 1;
  });

const holdTable = () => admin.query("BEGIN; LOCK TABLE line.event IN SHARE ROW EXCLUSIVE MODE");

describe.skipIf(database === undefined)("transactions of a line", () => {
  beforeAll(async () => {
    [admin, observer] = await Promise.all([connect(), connect()]);
  });
  afterAll(() => Promise.all([admin.end(), observer.end()]));
  beforeEach(() =>
    observer.query(`DROP SCHEMA IF EXISTS line CASCADE; CREATE SCHEMA line;
      CREATE TABLE line.event (id integer PRIMARY KEY, at bigint GENERATED ALWAYS AS IDENTITY)`),
  );

  test("are on their way together, on one connection and in the order in which they were asked for", async () => {
    const line = open().line();
    await holdTable();
    let begun = 0;
    const pids = new Set<unknown>();
    const works = [1, 2, 3].map((id) =>
      line.transaction(async (tx) => {
        begun += 1;
        tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid").then(
          ([row]) => pids.add(row?.pid),
          () => undefined,
        );
        insert(tx, id);
      }),
    );
    await untilLockIsWaitedFor();
    expect(begun).toBe(3);
    await admin.query("COMMIT");
    await Promise.all(works);
    expect(await selectIds()).toEqual([1, 2, 3]);
    expect(pids.size).toBe(1);
  });

  test("do not mix: one that waits for an answer has sent its COMMIT before the next one's BEGIN", async () => {
    const line = open().line();
    const answered = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const undone = line.transaction(async (tx) => {
      await tx.query("SELECT 1");
      answered.resolve();
      await goOn.promise;
      insert(tx, 1);
      throw new Error("told to fail");
    });
    let begun = false;
    const done = line.transaction(async (tx) => {
      begun = true;
      insert(tx, 2);
    });
    await answered.promise;
    expect(begun).toBe(false);
    goOn.resolve();
    await expect(undone).rejects.toThrow("told to fail");
    await done;
    expect(await selectIds()).toEqual([2]);
  });

  test("do not fall with one that breaks a rule", async () => {
    const line = open().line();
    await line.transaction(async (tx) => insert(tx, 1));
    const works = [1, 2].map((id) => line.transaction(async (tx) => insert(tx, id)));
    const [broken, sound] = await Promise.allSettled(works);
    expect(broken).toMatchObject({ status: "rejected", reason: { kind: "constraint" } });
    expect(sound?.status).toBe("fulfilled");
    expect(await selectIds()).toEqual([1, 2]);
  });

  test("do not fall with one of which a statement never left, and go on elsewhere", async () => {
    const line = open().line();
    const value = {
      toPostgres() {
        throw new RangeError("unwritable");
      },
    };
    const works = [1, value, 3].map((id) => line.transaction(async (tx) => insert(tx, id)));
    const settled = await Promise.allSettled(works);
    expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await selectIds()).toEqual([1, 3]);
  });

  test("run again where the one ahead failed before it had named a statement of theirs", async () => {
    const line = open().line();
    const failing = line.transaction(async (tx) => {
      tx.script("SELECT 1/0").catch(() => undefined);
      insert(tx, 1);
    });
    let runs = 0;
    const following = line.transaction(async (tx) => {
      runs += 1;
      insert(tx, 2);
    });
    await expect(failing).rejects.toMatchObject({ kind: "statement" });
    await following;
    expect(runs).toBe(2);
    expect(await selectIds()).toEqual([2]);
  });

  test("run again where one ahead has named a statement of theirs by the time they do", async () => {
    const line = open({ random: () => 0 }).line();
    await admin.query("SELECT pg_advisory_lock(1), pg_advisory_lock(2)");
    const waitFor = (tx: PostgresTransaction, lock: number) =>
      void tx.query("SELECT pg_advisory_xact_lock($1)", [lock]).catch(() => undefined);
    const failing = line.transaction(async (tx) => {
      tx.script("SELECT 1/0").catch(() => undefined);
      insert(tx, 1);
    });
    let runs = 0;
    const following = line.transaction(async (tx) => {
      runs += 1;
      waitFor(tx, 1);
      insert(tx, 2);
    });
    await expect(failing).rejects.toMatchObject({ kind: "statement" });
    // It names the statement, but waits before the server gets to that.
    const naming = line.transaction(async (tx) => {
      waitFor(tx, 2);
      insert(tx, 3);
    });
    await admin.query("SELECT pg_advisory_unlock(1)");
    await until("the second one is on its way again", () => runs === 2);
    await admin.query("SELECT pg_advisory_unlock(2)");
    await Promise.all([naming, following]);
    expect(runs).toBe(3);
    expect(await selectIds()).toEqual([3, 2]);
  });

  test("whose connection is lost are unknown where COMMIT was sent, and run again where it was not", async () => {
    const proxy = await startFaultyProxy(url);
    onTestFinished(() => proxy.stop());
    const line = open({ url: proxy.url }).line();
    const runs = [0, 0, 0, 0];
    const work = (id: number, wait?: string) =>
      line.transaction(async (tx) => {
        runs[id] = (runs[id] ?? 0) + 1;
        insert(tx, id);
        if (wait !== undefined && runs[id] === 1) await tx.query(`SELECT '${wait}'`);
      });
    proxy.breakAt("cut here", "before");
    // Nobody is answered before the cut.
    await holdTable();
    const works = Promise.allSettled([work(1), work(2, "cut here"), work(3)]);
    await until("the connection is cut", () => proxy.seen.strikes === 1);
    await admin.query("COMMIT");
    expect(await works).toMatchObject([
      { status: "rejected", reason: { kind: "commit_unknown" } },
      { status: "fulfilled" },
      { status: "fulfilled" },
    ]);
    expect(runs).toEqual([0, 1, 2, 1]);
    // Of the first nobody knows, and those that ran again each had a pause of their own.
    expect((await selectIds()).filter((id) => id !== 1).sort()).toEqual([2, 3]);
  });

  test("share another connection where theirs falls silent while it is prepared", async () => {
    const proxy = await startFaultyProxy(url);
    onTestFinished(() => proxy.stop());
    proxy.swallowAt("set_config");
    const line = open({ url: proxy.url, poolSize: 1, connectTimeoutMs: 500 }).line();
    await Promise.all([1, 2].map((id) => line.transaction(async (tx) => insert(tx, id))));
    expect(proxy.seen.strikes).toBe(1);
    expect((await selectIds()).sort()).toEqual([1, 2]);
  });

  test("let go of their connection for others who wait for one, and go on behind them", async () => {
    const postgres = open({ poolSize: 1 });
    const line = postgres.line();
    await holdTable();
    const first = line.transaction(async (tx) => insert(tx, 1));
    await untilLockIsWaitedFor();
    const other = postgres.transaction(async (tx) => insert(tx, 2));
    const second = line.transaction(async (tx) => insert(tx, 3));
    await admin.query("COMMIT");
    await Promise.all([first, other, second]);
    expect(await selectIds()).toEqual([1, 2, 3]);
  });

  test("leave nothing checked out, also where no connection was to be had", async () => {
    const nobody = new URL(url);
    nobody.port = "1";
    const unreachable = open({ url: nobody.href, retry: { attempts: 1 } }).line();
    for (const _ of [1, 2]) {
      const works = [1, 2].map((id) => unreachable.transaction(async (tx) => insert(tx, id)));
      for (const outcome of await Promise.allSettled(works)) {
        expect(outcome).toMatchObject({ status: "rejected", reason: { kind: "unavailable" } });
      }
    }
    const postgres = open({ poolSize: 1 });
    const line = postgres.line();
    await Promise.all([1, 2].map((id) => line.transaction(async (tx) => insert(tx, id))));
    expect(await postgres.read("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });
});
