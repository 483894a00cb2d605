// What a caller may rely on: answered after the flush and not before, and untouched by what its neighbours do.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { StorageError } from "../storage-error.ts";
import { makeTemporaryFolder, startStorageProcess } from "../testing/storage-processes.ts";
import { type CommitJobs, GroupCommit, type GroupCommitOptions } from "./group-commit.ts";
import { findIntegrityProblems } from "./integrity.ts";
import { openSqlite, type Sqlite } from "./sqlite.ts";

interface Setup {
  db: Sqlite;
  commits: GroupCommit;
  /** Through a connection of its own: only what is committed. */
  committedIds(): number[];
}

function setUp(options: GroupCommitOptions = {}): Setup {
  const path = join(makeTemporaryFolder(), "store.db");
  const db = openSqlite({ path, busyTimeoutMs: 1 });
  db.exec(`CREATE TABLE event (id INTEGER PRIMARY KEY) STRICT;
    CREATE TABLE reply (
      id INTEGER PRIMARY KEY,
      event_id INTEGER NOT NULL REFERENCES event (id) DEFERRABLE INITIALLY DEFERRED
    ) STRICT;`);
  const reader = new DatabaseSync(path);
  onTestFinished(() => {
    reader.close();
    db.close();
  });
  const select = reader.prepare("SELECT id FROM event ORDER BY id");
  return { db, commits: new GroupCommit(db, options), committedIds: () => select.all().map((row) => Number(row.id)) };
}

function insert(id: number): (db: Sqlite) => number {
  return (db) => {
    db.sql("INSERT INTO event (id) VALUES (?)").run(id);
    return id;
  };
}

function refuse(error: Error): (db: Sqlite) => never {
  return (db) => {
    db.sql("INSERT INTO event (id) VALUES (?)").run(1_000_000);
    throw error;
  };
}

describe("a submitter", () => {
  test("waits for the turn of whichever loop drives the commits", async () => {
    const turns: (() => void)[] = [];
    const { commits, committedIds } = setUp({ nextTurn: (run) => turns.push(run) });
    const answers = [commits.submit(insert(1)), commits.submit(insert(2))];
    await new Promise((resolve) => setImmediate(resolve));
    expect([turns.length, committedIds()]).toEqual([1, []]);
    turns[0]?.();
    expect(await Promise.all(answers)).toEqual([1, 2]);
    expect(committedIds()).toEqual([1, 2]);
  });

  test("who asks while turns bring more is waited for, until one brings nothing or the batch is full", async () => {
    const turns: (() => void)[] = [];
    const turn = () => turns.shift()?.();
    const { commits, committedIds } = setUp({ nextTurn: (run) => turns.push(run), gathersTurns: true, maxBatch: 4 });
    const answers = [commits.submit(insert(1))];
    turn();
    answers.push(commits.submit(insert(2)));
    turn();
    expect(committedIds()).toEqual([]);
    turn();
    expect(committedIds()).toEqual([1, 2]);
    for (const id of [3, 4, 5]) answers.push(commits.submit(insert(id)));
    turn();
    answers.push(commits.submit(insert(6)));
    turn();
    expect(committedIds()).toEqual([1, 2, 3, 4, 5, 6]);
    expect(turns).toEqual([]);
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("is answered after the commit, and no caller before", async () => {
    const seen: string[] = [];
    const { commits, committedIds } = setUp({
      hooks: {
        before: (...labels) => seen.push(`before ${labels}: ${committedIds()}`),
        after: (...labels) => seen.push(`after ${labels}: ${committedIds()}`),
      },
    });
    const answers = [1, 2].map(async (id) => {
      const result = await commits.submit(insert(id), "accept");
      seen.push(`answered ${result}: ${committedIds()}`);
    });
    await Promise.all(answers);
    expect(seen).toEqual(["before accept: ", "after accept: 1,2", "answered 1: 1,2", "answered 2: 1,2"]);
  });

  test("shares one commit with everyone of its turn", async () => {
    let commitCount = 0;
    const { commits, committedIds } = setUp({ onCommitted: () => (commitCount += 1) });
    const ids = Array.from({ length: 64 }, (_, index) => index);
    expect(await Promise.all(ids.map((id) => commits.submit(insert(id))))).toEqual(ids);
    expect(commitCount).toBe(1);
    expect(committedIds()).toEqual(ids);
  });

  test("waits for the next commit when the batch is full", async () => {
    const sizes: number[] = [];
    const { commits, committedIds } = setUp({ maxBatch: 10, onCommitted: () => sizes.push(committedIds().length) });
    await Promise.all(Array.from({ length: 25 }, (_, id) => commits.submit(insert(id))));
    expect(sizes).toEqual([10, 20, 25]);
    expect(commits.queued).toBe(0);
  });

  test("is refused as busy when too many wait already", async () => {
    const { commits, committedIds } = setUp({ maxQueued: 2 });
    const accepted = [commits.submit(insert(1)), commits.submit(insert(2))];
    await expect(commits.submit(insert(3))).rejects.toMatchObject({ kind: "busy" });
    await Promise.all(accepted);
    expect(committedIds()).toEqual([1, 2]);
  });

  test("may submit again from its answer", async () => {
    const { commits, committedIds } = setUp();
    await commits.submit(insert(1)).then((id) => commits.submit(insert(id + 1)));
    expect(committedIds()).toEqual([1, 2]);
  });
});

test("hooks hear each label of a transaction once, and nothing of a transaction without labels", async () => {
  const heard: string[] = [];
  const { commits } = setUp({
    maxBatch: 4,
    hooks: {
      before: (...labels) => heard.push(`before ${labels.join("+")}`),
      after: (...labels) => heard.push(`after ${labels.join("+")}`),
    },
  });
  const labels = [undefined, "accept", "fence", "accept", undefined, undefined, undefined, undefined, "once"] as const;
  await Promise.all(labels.map((label, id) => commits.submit(insert(id), label)));
  expect(heard).toEqual(["before accept+fence", "after accept+fence", "before once", "after once"]);
});

test("hooks hear of the labels of jobs that one at fault left alone", async () => {
  const heard: string[] = [];
  const hooks = { before: (...labels: readonly string[]) => heard.push(labels.join("+")), after: () => undefined };
  const { commits, committedIds } = setUp({ hooks });
  const failing = commits.submit(refuse(new Error("made to fail")), "fence");
  await Promise.allSettled([commits.submit(insert(1), "accept"), failing]);
  expect(heard).toEqual(["accept"]);
  expect(committedIds()).toEqual([1]);
});

describe("items of the same jobs", () => {
  function recordCalls(): { calls: number[][]; insertAll: CommitJobs<number, number> } {
    const calls: number[][] = [];
    const insertAll = (db: Sqlite, ids: readonly number[]) => {
      calls.push([...ids]);
      return ids.map((id) => insert(id)(db) * 10);
    };
    return { calls, insertAll };
  }

  test("are done in one call, in their order, and whatever stands between them divides them", async () => {
    const { commits, committedIds } = setUp();
    const { calls, insertAll } = recordCalls();
    const others = recordCalls();
    const answers = await Promise.all([
      commits.submitItem(insertAll, 1),
      commits.submitItem(insertAll, 2),
      commits.submit(insert(3)),
      commits.submitItem(insertAll, 4),
      commits.submitItem(others.insertAll, 5),
    ]);
    expect(answers).toEqual([10, 20, 3, 40, 50]);
    expect([calls, others.calls]).toEqual([[[1, 2], [4]], [[5]]]);
    expect(committedIds()).toEqual([1, 2, 3, 4, 5]);
  });

  test("are done one by one when one of them fails, which alone is rejected", async () => {
    const { commits, committedIds } = setUp();
    const { calls, insertAll } = recordCalls();
    const outcomes = await Promise.allSettled([1, 1, 2].map((id) => commits.submitItem(insertAll, id)));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(calls).toEqual([[1, 1, 2], [1], [1], [2]]);
    expect(committedIds()).toEqual([1, 2]);
  });

  test("may be too much for one transaction: the rest comes first in the next, before the jobs behind it", async () => {
    const commits: number[][] = [];
    const setup = setUp({ onCommitted: () => commits.push(setup.committedIds()) });
    const insertTwo = (db: Sqlite, ids: readonly number[]) => ({
      firstOnes: ids.slice(0, 2).map((id) => insert(id)(db) * 10),
    });
    const answers = [1, 2, 3].map((id) => setup.commits.submitItem(insertTwo, id));
    answers.push(setup.commits.submit(insert(4)));
    expect(await Promise.all(answers)).toEqual([10, 20, 30, 4]);
    expect(commits).toEqual([
      [1, 2],
      [1, 2, 3, 4],
    ]);
    expect(setup.commits.queued).toBe(0);
  });

  test("change nothing when nothing is said of any of them", async () => {
    const { commits, committedIds } = setUp();
    const silent = (db: Sqlite, ids: readonly number[]) => ({ firstOnes: ids.map((id) => insert(id)(db)).slice(1) });
    await expect(commits.submitItem(silent, 1)).rejects.toThrow("some of the items");
    expect(committedIds()).toEqual([]);
  });

  test("change nothing when there is not one result for each", async () => {
    const { commits, committedIds } = setUp();
    const forgetful = (db: Sqlite, ids: readonly number[]) => ids.map((id) => insert(id)(db)).slice(1);
    await expect(commits.submitItem(forgetful, 1)).rejects.toThrow("one result per item");
    expect(committedIds()).toEqual([]);
  });
});

describe("a read", () => {
  const ids = (db: Sqlite) =>
    db
      .sql("SELECT id FROM event ORDER BY id")
      .all()
      .map((row) => row.id);

  test("sees what was committed before its turn, and nothing of the transaction of its turn", async () => {
    const { commits } = setUp();
    await commits.submit(insert(1));
    const [written, ...seen] = await Promise.all([commits.submit(insert(2)), commits.read(ids), commits.read(ids)]);
    expect([written, ...seen]).toEqual([2, [1], [1]]);
    expect(await commits.read(ids)).toEqual([1, 2]);
  });

  test("shares one snapshot with everyone of its turn, and alone begins no transaction", async () => {
    const { db, commits } = setUp();
    const snapshot = vi.spyOn(db, "snapshot");
    await commits.read(ids);
    expect(snapshot).not.toHaveBeenCalled();
    await Promise.all(Array.from({ length: 5 }, () => commits.read(ids)));
    expect(snapshot).toHaveBeenCalledTimes(1);
  });

  test("and the write that its reader asks for next belong to one turn", async () => {
    const turns: (() => void)[] = [];
    const { commits, committedIds } = setUp({ nextTurn: (run) => turns.push(run) });
    const answers = [1, 2].map(async (id) => {
      await commits.read(ids);
      return commits.submit(insert(id));
    });
    turns[0]?.();
    expect(await Promise.all(answers)).toEqual([1, 2]);
    expect([turns.length, committedIds()]).toEqual([1, [1, 2]]);
  });

  test("that fails touches no neighbour", async () => {
    const { commits } = setUp();
    await commits.submit(insert(1));
    const outcomes = await Promise.allSettled([
      commits.read(ids),
      commits.read((db) => db.sql("SELECT nothing FROM nowhere").all()),
      commits.read(ids),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  test("that waits when the commits are closed is still answered", async () => {
    const { commits } = setUp();
    const read = commits.read(ids);
    commits.close();
    expect(await read).toEqual([]);
  });
});

describe("a job that fails", () => {
  test("gets its own error, and its neighbours are committed", async () => {
    const { commits, committedIds } = setUp();
    const error = new Error("refused");
    const outcomes = await Promise.allSettled([
      commits.submit(insert(1)),
      commits.submit(refuse(error)),
      commits.submit(insert(2)),
    ]);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(outcomes[1]).toMatchObject({ reason: error });
    expect(committedIds()).toEqual([1, 2]);
  });

  test("alone is not run twice", async () => {
    const { commits } = setUp();
    let runs = 0;
    const job = () => {
      runs += 1;
      throw new Error("refused");
    };
    await expect(commits.submit(job)).rejects.toThrow("refused");
    expect(runs).toBe(1);
  });

  test("only when COMMIT checks it fails alone too", async () => {
    const { commits, committedIds } = setUp();
    const orphan = (db: Sqlite) => db.sql("INSERT INTO reply (id, event_id) VALUES (1, 99)").run();
    const outcomes = await Promise.allSettled([commits.submit(insert(1)), commits.submit(orphan)]);
    expect(outcomes[0]).toMatchObject({ status: "fulfilled" });
    expect(outcomes[1]).toMatchObject({ reason: { kind: "constraint", constraint: "foreign_key" } });
    expect(committedIds()).toEqual([1]);
  });

  test("only at COMMIT, for want of room, leaves those alone that write nothing or little", async () => {
    const { db, commits, committedIds } = setUp();
    await commits.submit(insert(1));
    const fillsTheDisk = 100;
    const isFull = () => db.sql<{ n: number }>("SELECT count(*) AS n FROM event WHERE id >= ?").get(fillsTheDisk)?.n;
    const refuseFull = () => {
      if (isFull() !== 0) throw new StorageError("disk_full", "no room");
    };
    const full = new GroupCommit(db, { hooks: { before: refuseFull, after: () => undefined } });
    const retry = (tx: Sqlite) => tx.sql("SELECT id FROM event WHERE id = 1").get();
    const outcomes = await Promise.allSettled([
      full.submit(retry, "outbox"),
      full.submit(insert(fillsTheDisk), "outbox"),
      full.submit(insert(2), "outbox"),
    ]);
    expect(outcomes[0]).toMatchObject({ status: "fulfilled", value: { id: 1 } });
    expect(outcomes[1]).toMatchObject({ reason: { kind: "disk_full" } });
    expect(outcomes[2]).toMatchObject({ status: "fulfilled" });
    expect(committedIds()).toEqual([1, 2]);
  });

  test("by being asynchronous changes nothing", async () => {
    const { commits, committedIds } = setUp();
    await expect(commits.submit(async (db) => insert(1)(db))).rejects.toThrow("synchronous");
    expect(committedIds()).toEqual([]);
  });
});

describe("a commit that fails", () => {
  test("rejects every job of it", async () => {
    const failure = new Error("injected");
    const { commits, committedIds } = setUp({
      hooks: {
        before: () => {
          throw failure;
        },
        after: () => undefined,
      },
    });
    const outcomes = await Promise.allSettled([commits.submit(insert(1), "fence"), commits.submit(insert(2))]);
    expect(outcomes).toEqual([1, 2].map(() => ({ status: "rejected", reason: failure })));
    expect(committedIds()).toEqual([]);
  });

  test("because it could not begin runs no job at all, and waits once", async () => {
    const { db, commits, committedIds } = setUp();
    const holder = new DatabaseSync(db.path);
    holder.exec("BEGIN IMMEDIATE");
    let runs = 0;
    const job = () => (runs += 1);
    const transaction = vi.spyOn(db, "transaction");
    const outcomes = await Promise.allSettled([commits.submit(job), commits.submit(job)]);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { kind: "busy" } });
    expect(runs).toBe(0);
    expect(transaction).toHaveBeenCalledTimes(1);
    holder.close();
    await commits.submit(insert(1));
    expect(committedIds()).toEqual([1]);
  });

  test("after the flush leaves the rows, and no caller learns that they are there", async () => {
    const failure = new Error("injected");
    const { commits, committedIds } = setUp({
      hooks: {
        before: () => undefined,
        after: () => {
          throw failure;
        },
      },
    });
    await expect(commits.submit(insert(1), "accept")).rejects.toBe(failure);
    await expect(commits.submit(insert(2))).resolves.toBe(2);
    expect(committedIds()).toEqual([1, 2]);
  });

  test("because the disk refuses is an io error for all, and loses nothing that was acknowledged", async () => {
    const path = join(makeTemporaryFolder(), "store.db");
    const limited = ["/bin/sh", "-c", 'ulimit -f 2048; exec "$@"', "sh"];
    const { ended, lines } = startStorageProcess("commitUntilRefused", path, limited);
    expect(await ended).toBe(0);
    const report = JSON.parse(lines[0] ?? "") as { acknowledged: number; kinds: string[] };
    expect(report.kinds).toEqual(["io", "io"]);
    expect(report.acknowledged).toBeGreaterThan(10);
    const db = openSqlite({ path });
    expect(db.sql("SELECT count(*) AS n FROM event").get()).toMatchObject({ n: report.acknowledged });
    expect(findIntegrityProblems(db, "full")).toEqual([]);
    db.close();
  });
});

describe("closing", () => {
  test("commits what waits and refuses what comes later", async () => {
    const { commits, committedIds } = setUp({ maxBatch: 2 });
    const waiting = [1, 2, 3].map((id) => commits.submit(insert(id)));
    commits.close();
    expect(committedIds()).toEqual([1, 2, 3]);
    expect(await Promise.all(waiting)).toEqual([1, 2, 3]);
    await expect(commits.submit(insert(4))).rejects.toMatchObject({ kind: "closed" });
  });
});

test("for any mix of jobs and turns, the table holds exactly what was acknowledged", async () => {
  let acknowledged = 0;
  let refused = 0;
  const turn = fc.array(fc.boolean(), { minLength: 1, maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { maxLength: 6 }), fc.integer({ min: 1, max: 6 }), async (turns, maxBatch) => {
      const db = openSqlite({ path: ":memory:" });
      db.exec("CREATE TABLE event (id INTEGER PRIMARY KEY) STRICT");
      const commits = new GroupCommit(db, { maxBatch });
      const answers: number[] = [];
      let nextId = 0;
      for (const jobs of turns) {
        const submitted = jobs.map((good) => {
          if (!good) return commits.submit(refuse(new Error("refused")));
          nextId += 1;
          return commits.submit(insert(nextId));
        });
        const outcomes = await Promise.allSettled(submitted);
        for (const outcome of outcomes) {
          if (outcome.status === "fulfilled") answers.push(outcome.value);
          else refused += 1;
        }
      }
      acknowledged += answers.length;
      expect(answers).toHaveLength(nextId);
      const rows = db.sql<{ id: number }>("SELECT id FROM event ORDER BY id").all();
      expect(rows.map((row) => row.id)).toEqual(answers.sort((a, b) => a - b));
      db.close();
    }),
    { numRuns: 60 },
  );
  expect(acknowledged).toBeGreaterThan(200);
  expect(refused).toBeGreaterThan(200);
});
