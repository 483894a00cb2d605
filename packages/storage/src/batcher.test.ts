// What callers of a Batcher may rely on: who shares a batch, in which order batches run, and whom a failure hurts.
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Batcher, type BatcherOptions, type BatchRules, questions } from "./batcher.ts";
import { StorageError } from "./storage-error.ts";

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const resultOf = (item: number) => `result ${item}`;

/** Batches that end when the test says so. */
function createHeld(rules: Partial<BatchRules> = {}, options: Partial<BatcherOptions<number, string>> = {}) {
  const started: {
    items: readonly number[];
    end: (results: readonly string[]) => void;
    fail: (why: Error) => void;
  }[] = [];
  const batcher = new Batcher<number, string>(
    { ...questions, atOnce: 1, ...rules },
    {
      run: (items) => {
        const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
        started.push({ items, end: resolve, fail: reject });
        return promise;
      },
      ...options,
    },
  );
  const submit = (...items: number[]) => items.map((item) => batcher.submit(item));
  const endAll = async () => {
    for (let ended = 0; ; ended += 1) {
      // The first turn ends the batch before, the second begins this one.
      await turn();
      await turn();
      const batch = started[ended];
      if (batch === undefined) return;
      batch.end(batch.items.map(resultOf));
    }
  };
  const batches = () => started.map(({ items }) => items);
  return { submit, started, batches, endAll };
}

describe("items of one key", () => {
  test("share a batch when they are submitted in the same turn, and otherwise wait for the one under way", async () => {
    const { submit, batches, endAll } = createHeld();
    const results = submit(1, 2, 3);
    await turn();
    results.push(...submit(4, 5));
    await turn();
    expect(batches()).toEqual([[1, 2, 3]]);
    await endAll();
    expect(batches()).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
    expect(await Promise.all(results)).toEqual(numbers(1, 5).map(resultOf));
  });

  test("that gather begin when a turn brings nothing new", async () => {
    const { submit, batches, endAll } = createHeld({ gathersUpTo: 4 });
    const results: Promise<string>[] = [];
    for (const item of [1, 2, 3]) {
      results.push(...submit(item));
      await turn();
      expect(batches()).toEqual([]);
    }
    await turn();
    expect(batches()).toEqual([[1, 2, 3]]);
    await endAll();
    expect(await Promise.all(results)).toHaveLength(3);
  });

  test("that gather begin with all that came in the turn in which there were enough", async () => {
    const { submit, batches, endAll } = createHeld({ gathersUpTo: 3 });
    const results = submit(1, 2);
    await turn();
    expect(batches()).toEqual([]);
    results.push(...submit(3, 4, 5));
    await turn();
    expect(batches()).toEqual([[1, 2, 3, 4, 5]]);
    await endAll();
    expect(await Promise.all(results)).toHaveLength(5);
  });

  test("run in no more batches at once than allowed, and in none that is larger than allowed", async () => {
    const { submit, batches, endAll } = createHeld({ maxItems: 2, atOnce: 2 });
    const results = submit(...numbers(1, 5));
    await turn();
    await turn();
    expect(batches()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    await endAll();
    expect(batches()).toEqual([[1, 2], [3, 4], [5]]);
    expect(await Promise.all(results)).toHaveLength(5);
  });

  test("are shared evenly by batches that may begin at once where one cannot hold them all", async () => {
    const { submit, batches, endAll } = createHeld({ maxItems: 8, atOnce: 2 });
    const results = submit(...numbers(1, 9));
    await endAll();
    expect(batches().map(({ length }) => length)).toEqual([5, 4]);
    results.push(...submit(...numbers(1, 7)));
    await turn();
    expect(batches().at(-1)).toHaveLength(7);
    expect(await Promise.all(results.slice(0, 9))).toHaveLength(9);
  });

  test("end a batch where the next one would weigh too much, and one that does so by itself runs alone", async () => {
    const { submit, batches, endAll } = createHeld({}, { weight: { of: (item) => item, max: 10 } });
    const results = submit(4, 6, 1, 50, 2, 3);
    await endAll();
    expect(batches()).toEqual([[4, 6], [1], [50], [2, 3]]);
    expect(await Promise.all(results)).toHaveLength(6);
  });

  test("are refused as busy when too many wait, and taken again when those have run", async () => {
    const { submit, batches, endAll } = createHeld({ maxItems: 65_536 });
    const waiting = submit(...numbers(1, 65_536));
    const [refused] = submit(65_537);
    await expect(refused).rejects.toMatchObject({ kind: "busy" });
    await turn();
    waiting.push(...submit(65_538));
    await endAll();
    expect(batches()[1]).toEqual([65_538]);
    expect(await Promise.all(waiting)).toHaveLength(65_537);
  });
});

test("items of different keys never share a batch and never wait for each other", async () => {
  const { submit, batches, endAll } = createHeld({}, { keyOf: (item) => (item % 2 === 0 ? "even" : "odd") });
  const results = submit(1, 2, 3, 4);
  await turn();
  await turn();
  expect(batches()).toEqual([
    [1, 3],
    [2, 4],
  ]);
  await endAll();
  expect(await Promise.all(results)).toEqual(numbers(1, 4).map(resultOf));
});

describe("a batch that fails", () => {
  test("is the end of its items, and the next one runs all the same", async () => {
    const { submit, started, endAll } = createHeld();
    const away = new StorageError("unavailable", "away");
    const failed = Promise.allSettled(submit(1, 2));
    await turn();
    const [next] = submit(3);
    started[0]?.fail(away);
    expect(await failed).toEqual([1, 2].map(() => ({ status: "rejected", reason: away })));
    await endAll();
    expect(await next).toBe("result 3");
    expect(started).toHaveLength(2);
  });

  const createPicky = (refusal: Error, isOneItemsFault?: (error: unknown) => boolean) => {
    const ran: (readonly number[])[] = [];
    const run = async (items: readonly number[]) => {
      ran.push(items);
      if (items.includes(2)) throw refusal;
      return items.map(resultOf);
    };
    const batcher = new Batcher(questions, { run, ...(isOneItemsFault === undefined ? {} : { isOneItemsFault }) });
    return { ran, answers: Promise.allSettled([1, 2, 3].map((item) => batcher.submit(item))) };
  };

  test("because the store refused one item is tried again item by item, in order", async () => {
    const refusal = new StorageError("constraint", "no");
    const { ran, answers } = createPicky(refusal);
    expect(await answers).toEqual([
      { status: "fulfilled", value: "result 1" },
      { status: "rejected", reason: refusal },
      { status: "fulfilled", value: "result 3" },
    ]);
    expect(ran).toEqual([[1, 2, 3], [1], [2], [3]]);
  });

  test("for want of room on the disk is tried again item by item, since some may write nothing", async () => {
    const full = new StorageError("disk_full", "no room");
    const { ran, answers } = createPicky(full);
    expect((await answers).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(ran).toHaveLength(4);
  });

  test("with another error is tried item by item only where its owner takes that for one item's fault", async () => {
    const fault = new Error("a bug");
    expect((await createPicky(fault).answers).map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
      "rejected",
    ]);
    const outcomes = await createPicky(fault, (error) => error === fault).answers;
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  });

  test("without one result per item is an error for all of them", async () => {
    const batcher = new Batcher<number, string>(questions, { run: async () => ["only one"] });
    const outcomes = await Promise.allSettled([batcher.submit(1), batcher.submit(2)]);
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });
});
