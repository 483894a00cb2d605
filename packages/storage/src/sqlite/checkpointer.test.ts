// The thread that moves the log, on real files: what it has moved is what a copy of the main file alone holds.
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { makeTemporaryFolder } from "../../../../tests/support/broker-harness.ts";
import { until } from "../../../../tests/support/world.ts";
import { Checkpointer, checkpointPagesBesideThread } from "./checkpointer.ts";
import { GroupCommit } from "./group-commit.ts";
import { openSqlite, type Sqlite } from "./sqlite.ts";

let db: Sqlite;
let failures: unknown[];
const onFailure = (error: unknown) => void failures.push(error);

beforeEach(() => {
  failures = [];
  db = openSqlite({ path: join(makeTemporaryFolder(), "store.db"), checkpointPages: checkpointPagesBesideThread });
  db.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)");
});
afterEach(() => {
  db.close();
});

/** Commits so many rows, in several transactions, as a store does. */
async function write(checkpointer: Checkpointer, rows: number): Promise<void> {
  const commit = new GroupCommit(db, { onCommitted: (jobs) => checkpointer.committed(jobs) });
  const insert = (tx: Sqlite) => tx.sql("INSERT INTO t (text) VALUES ('x')").write();
  await Promise.all(Array.from({ length: rows }, () => commit.submit(insert)));
}

/** Rows in the main file, without its log; undefined where the copy was made in the middle of a pass and cannot be read. */
function rowsMoved(): number | undefined {
  const copy = join(makeTemporaryFolder(), "copy.db");
  copyFileSync(db.path, copy);
  const alone = new DatabaseSync(copy);
  try {
    const [table] = alone.prepare("SELECT 1 FROM sqlite_schema WHERE name = 't'").all();
    return table === undefined ? 0 : Number(alone.prepare("SELECT count(*) AS n FROM t").get()?.n);
  } catch {
    return undefined;
  } finally {
    alone.close();
  }
}

const checkpointPages = () => db.sql<{ wal_autocheckpoint: number }>("PRAGMA wal_autocheckpoint").get();

describe("the log", () => {
  test.each([3_000, 3])("comes into the main file while nothing is closed, after %d jobs", async (rows) => {
    const checkpointer = new Checkpointer(db, { onFailure });
    await write(checkpointer, rows);
    await until("the log has been moved", () => rowsMoved() === rows);
    await write(checkpointer, rows);
    await until("the log has been moved again", () => rowsMoved() === 2 * rows);
    await checkpointer.close();
    expect(failures).toEqual([]);
  });

  test("stays where it is until then: no commit moves it", async () => {
    const checkpointer = new Checkpointer(db, { onFailure });
    await checkpointer.close();
    await write(checkpointer, 5_000);
    expect(rowsMoved()).toBe(0);
    expect(checkpointPages()).toEqual({ wal_autocheckpoint: checkpointPagesBesideThread });
  });

  test("is let go of when the thread is closed, so that closing the file leaves nothing in it", async () => {
    const checkpointer = new Checkpointer(db, { onFailure });
    await write(checkpointer, 3_000);
    await checkpointer.close();
    await checkpointer.close();
    expect(db.close()).toEqual({ checkpointed: true });
    expect(rowsMoved()).toBe(3_000);
  });

  test("is moved by commits again where the thread has ended, and that is reported", async () => {
    const elsewhere = { path: join(makeTemporaryFolder(), "none", "store.db"), connection: db.connection };
    const unreachable = { ...elsewhere, exec: (script: string) => db.exec(script) } as unknown as Sqlite;
    const checkpointer = new Checkpointer(unreachable, { onFailure });
    await until("the thread has ended", () => failures.length > 0);
    expect(checkpointPages()).toEqual({ wal_autocheckpoint: 1_000 });
    await write(checkpointer, 1);
    await checkpointer.close();
    expect(failures).toHaveLength(1);
  });
});
