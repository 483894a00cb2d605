// What both databases owe their callers, as one suite. Each back end's test file supplies the harness and adds what is
// particular to it. A transaction body is a generator of statements, so that the same body runs with and without await.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LedgerRow, Migration } from "./migrations/migrations.ts";
import { StorageError } from "./storage-error.ts";

export type Row = Record<string, unknown>;
type Body<R> = () => Generator<string, R, Row[]>;

export interface SuiteStore {
  /** Each yielded text is one statement; its rows come back from the yield. */
  transaction<R>(body: Body<R>): Promise<R>;
  migrate(migrations: Migration[]): Promise<Migration[]>;
  close(): Promise<void>;
}

export interface SuiteHarness {
  /** An empty database. */
  reset(): Promise<void>;
  /** A connection, or pool, of its own to that database. */
  open(): Promise<SuiteStore>;
  /** The full name of a table, and of the ledger. */
  table(name: string): string;
  ledger: string;
}

interface Connections {
  readonly first: SuiteStore;
  readonly second: SuiteStore;
}

export function describeStorageSuite(harness: SuiteHarness): void {
  let stores: SuiteStore[] = [];
  const connections: Connections = {
    get first() {
      return storeAt(stores, 0);
    },
    get second() {
      return storeAt(stores, 1);
    },
  };

  beforeEach(async () => {
    await harness.reset();
    stores = [await harness.open(), await harness.open()];
  });

  afterEach(async () => {
    for (const store of stores) await store.close();
  });

  describe("transactions", () => describeTransactions(harness, connections));
  describe("error kinds", () => describeErrorKinds(harness, connections));
  describe("migrations", () => describeMigrations(harness, connections));
}

function storeAt(stores: SuiteStore[], index: number): SuiteStore {
  const store = stores[index];
  if (store === undefined) throw new Error("no store is open");
  return store;
}

async function run(store: SuiteStore, ...statements: string[]): Promise<Row[]> {
  return store.transaction(function* () {
    let rows: Row[] = [];
    for (const statement of statements) rows = yield statement;
    return rows;
  });
}

/** The rows as plain objects, whatever the driver's prototypes. */
async function select(store: SuiteStore, statement: string): Promise<Row[]> {
  return (await run(store, statement)).map((row) => ({ ...row }));
}

async function failureOf(work: Promise<unknown>): Promise<StorageError> {
  const outcome: unknown = await work.then(
    () => new Error("it did not fail"),
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(StorageError);
  return outcome as StorageError;
}

function describeTransactions(harness: SuiteHarness, on: Connections): void {
  const counter = harness.table("counter");

  beforeEach(() => run(on.first, `CREATE TABLE ${counter} (id integer PRIMARY KEY, n integer NOT NULL)`));

  test("every statement is there after the commit, for every connection", async () => {
    await run(on.first, `INSERT INTO ${counter} VALUES (1, 10)`, `INSERT INTO ${counter} VALUES (2, 20)`);
    const expected = [
      { id: 1, n: 10 },
      { id: 2, n: 20 },
    ];
    expect(await select(on.second, `SELECT id, n FROM ${counter} ORDER BY id`)).toEqual(expected);
  });

  test("a body that throws leaves nothing behind and its own error comes out", async () => {
    const refusal = new Error("the caller changed its mind");
    const work = on.first.transaction(function* () {
      yield `INSERT INTO ${counter} VALUES (1, 10)`;
      throw refusal;
    });
    await expect(work).rejects.toBe(refusal);
    expect(await select(on.first, `SELECT id FROM ${counter}`)).toEqual([]);
  });

  test("a statement that fails takes the earlier ones with it", async () => {
    const insert = `INSERT INTO ${counter} VALUES (1, 10)`;
    await expect(run(on.first, insert, insert)).rejects.toMatchObject({ kind: "constraint" });
    expect(await select(on.second, `SELECT id FROM ${counter}`)).toEqual([]);
  });

  test("a connection goes on after a failure", async () => {
    await failureOf(run(on.first, `INSERT INTO ${counter} VALUES (1, NULL)`));
    await run(on.first, `INSERT INTO ${counter} VALUES (1, 10)`);
    expect(await select(on.second, `SELECT n FROM ${counter}`)).toEqual([{ n: 10 }]);
  });

  test("concurrent read-then-write transactions lose no update", async () => {
    await run(on.first, `INSERT INTO ${counter} VALUES (1, 0)`);
    const increment: Body<void> = function* () {
      const [row] = yield `SELECT n FROM ${counter} WHERE id = 1`;
      yield `UPDATE ${counter} SET n = ${Number(row?.n) + 1} WHERE id = 1`;
    };
    const callers = Array.from({ length: 24 }, (_, index) => (index % 2 === 0 ? on.first : on.second));
    await Promise.all(callers.map((store) => store.transaction(increment)));
    expect(await select(on.first, `SELECT n FROM ${counter}`)).toEqual([{ n: 24 }]);
  });
}

function describeErrorKinds(harness: SuiteHarness, on: Connections): void {
  const parent = harness.table("parent");
  const child = harness.table("child");

  beforeEach(() =>
    run(
      on.first,
      `CREATE TABLE ${parent} (id integer PRIMARY KEY, label text NOT NULL UNIQUE, n integer CHECK (n > 0))`,
      `CREATE TABLE ${child} (id integer PRIMARY KEY, parent_id integer REFERENCES ${parent} (id))`,
      `INSERT INTO ${parent} VALUES (1, 'one', 1)`,
    ),
  );

  test.each([
    ["a primary key twice", `INSERT INTO ${parent} VALUES (1, 'two', 1)`, "unique"],
    ["a unique value twice", `INSERT INTO ${parent} VALUES (2, 'one', 1)`, "unique"],
    ["a missing value", `INSERT INTO ${parent} VALUES (2, NULL, 1)`, "not_null"],
    ["a value that a check refuses", `INSERT INTO ${parent} VALUES (2, 'two', 0)`, "check"],
    ["a reference to nothing", `INSERT INTO ${child} VALUES (1, 99)`, "foreign_key"],
  ])("%s is a constraint, and says which sort", async (_what, statement, constraint) => {
    const failure = await failureOf(run(on.first, statement));
    expect(failure).toMatchObject({ kind: "constraint", constraint });
    expect(failure.cause).toBeInstanceOf(Error);
  });

  test("a statement that the database does not understand is the caller's bug", async () => {
    expect(await failureOf(run(on.first, "SELEC 1"))).toMatchObject({ kind: "statement" });
    expect(await failureOf(run(on.first, `SELECT * FROM ${harness.table("nowhere")}`))).toMatchObject({
      kind: "statement",
    });
  });

  test("an integer is exact or an error", async () => {
    expect(await select(on.first, "SELECT 9007199254740991 AS n")).toEqual([{ n: Number.MAX_SAFE_INTEGER }]);
    expect(await failureOf(run(on.first, "SELECT 9007199254740993 AS n"))).toMatchObject({ kind: "unsafe_integer" });
  });

  test("use after close is closed", async () => {
    await on.first.close();
    expect(await failureOf(run(on.first, "SELECT 1"))).toMatchObject({ kind: "closed" });
  });
}

function describeMigrations(harness: SuiteHarness, on: Connections): void {
  const note = harness.table("note");
  const create: Migration = {
    package: "notes",
    number: 1,
    name: "create",
    sql: `CREATE TABLE ${note} (id integer PRIMARY KEY);\nINSERT INTO ${note} VALUES (1);`,
  };
  const addBody: Migration = {
    package: "notes",
    number: 2,
    name: "add-body",
    sql: `ALTER TABLE ${note} ADD COLUMN body text NOT NULL DEFAULT 'empty';`,
  };
  const other: Migration = {
    package: "tags",
    number: 1,
    name: "create",
    sql: `CREATE TABLE ${harness.table("tag")} (id integer PRIMARY KEY, note_id integer REFERENCES ${note} (id));`,
  };

  async function ledger(): Promise<string[]> {
    const rows = await run(on.second, `SELECT package, number, name FROM ${harness.ledger} ORDER BY package, number`);
    return (rows as unknown as LedgerRow[]).map((row) => `${row.package}/${row.number}-${row.name}`);
  }

  test("all of them run, in the order of the list, and are remembered", async () => {
    expect(await on.first.migrate([create, addBody, other])).toEqual([create, addBody, other]);
    expect(await ledger()).toEqual(["notes/1-create", "notes/2-add-body", "tags/1-create"]);
    expect(await select(on.second, `SELECT id, body FROM ${note}`)).toEqual([{ id: 1, body: "empty" }]);
  });

  test("what ran does not run again", async () => {
    await on.first.migrate([create, addBody]);
    expect(await on.second.migrate([create, addBody])).toEqual([]);
    expect(await select(on.first, `SELECT id FROM ${note}`)).toEqual([{ id: 1 }]);
  });

  test("an upgrade from the previous schema keeps the rows", async () => {
    await on.first.migrate([create]);
    await run(on.first, `INSERT INTO ${note} VALUES (2)`, `INSERT INTO ${note} VALUES (3)`);
    expect(await on.second.migrate([create, addBody])).toEqual([addBody]);
    const rows = await select(on.first, `SELECT id, body FROM ${note} ORDER BY id`);
    expect(rows).toEqual([1, 2, 3].map((id) => ({ id, body: "empty" })));
  });

  test("a package may come later than another's numbers", async () => {
    await on.first.migrate([create, other]);
    expect(await on.first.migrate([create, addBody, other])).toEqual([addBody]);
  });

  test("a newer schema is refused by name, and nothing runs", async () => {
    await on.first.migrate([create, addBody]);
    const failure = await failureOf(on.first.migrate([create, other]));
    expect(failure).toMatchObject({ kind: "schema_newer" });
    expect(failure.message).toContain("notes/0002-add-body");
    expect(await ledger()).toEqual(["notes/1-create", "notes/2-add-body"]);
  });

  test("a package that this build does not know is a newer schema", async () => {
    await on.first.migrate([create, other]);
    const failure = await failureOf(on.first.migrate([create]));
    expect(failure).toMatchObject({ kind: "schema_newer" });
    expect(failure.message).toContain("tags/0001-create");
  });

  test("a migration that was changed after it ran is refused, and nothing runs", async () => {
    await on.first.migrate([create]);
    const changed = { ...create, sql: `${create.sql}\n-- more` };
    expect(await failureOf(on.first.migrate([changed, addBody]))).toMatchObject({ kind: "schema_changed" });
    expect(await ledger()).toEqual(["notes/1-create"]);
  });

  test("line ends are not a change", async () => {
    await on.first.migrate([create]);
    const windows = { ...create, sql: create.sql.replaceAll("\n", "\r\n") };
    expect(await on.first.migrate([windows])).toEqual([]);
  });

  test("a migration of which one statement fails leaves nothing of itself and all before it", async () => {
    const broken = { ...addBody, sql: `${addBody.sql}\nINSERT INTO ${note} (id) VALUES (1);` };
    const failure = await failureOf(on.first.migrate([create, broken, other]));
    expect(failure).toMatchObject({ kind: "constraint", constraint: "unique" });
    expect(failure.message).toContain("notes/0002-add-body");
    expect(await ledger()).toEqual(["notes/1-create"]);
    expect(await select(on.first, `SELECT * FROM ${note}`)).toEqual([{ id: 1 }]);
    expect(await on.first.migrate([create, addBody, other])).toEqual([addBody, other]);
  });

  test("a list with a hole is refused before anything runs", async () => {
    await expect(on.first.migrate([create, { ...addBody, number: 3 }])).rejects.toThrow("number 2 is expected");
    expect(await on.first.migrate([create])).toEqual([create]);
  });

  test("migrators that start at once run each migration once", async () => {
    const stores = [on.first, on.second, on.first, on.second];
    const applied = await Promise.all(stores.map((store) => store.migrate([create, addBody, other])));
    const labels = applied.flat().map((migration) => `${migration.package}/${migration.number}`);
    expect(labels.sort()).toEqual(["notes/1", "notes/2", "tags/1"]);
    expect(await select(on.first, `SELECT id FROM ${note}`)).toEqual([{ id: 1 }]);
  });
}
