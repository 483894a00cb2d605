// How callers come to share a round trip.
import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { NaturalBatches } from "./natural-batches.ts";

/** Batches that end when the test says so. */
function createBatches(
  options: {
    maxBatch?: number;
    maxConcurrent?: number;
    maxQueued?: number;
    gathersTurns?: boolean;
    enough?: number;
  } = {},
) {
  const started: { items: readonly number[]; end: (results: readonly string[]) => void; fail: (why: Error) => void }[] =
    [];
  const batches = new NaturalBatches<number, string>({
    maxBatch: options.maxBatch ?? 100,
    maxConcurrent: options.maxConcurrent ?? 1,
    ...(options.maxQueued === undefined ? {} : { maxQueued: options.maxQueued }),
    gathersTurns: options.gathersTurns ?? false,
    ...(options.enough === undefined ? {} : { gatherEnough: options.enough }),
    run: (items) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly string[]>();
      started.push({ items, end: resolve, fail: reject });
      return promise;
    },
  });
  const endAll = async () => {
    for (let ended = 0; ; ended += 1) {
      // One turn ends the batch before, the next one begins this.
      await turn();
      await turn();
      const batch = started[ended];
      if (batch === undefined) return;
      batch.end(batch.items.map((item) => `result ${item}`));
    }
  };
  return { batches, started, endAll };
}

describe("natural batches", () => {
  test("take whoever arrives in the same turn, and while one is on its way collect the next", async () => {
    const { batches, started, endAll } = createBatches();
    const first = [1, 2, 3].map((item) => batches.submit(item));
    await turn();
    const second = [4, 5].map((item) => batches.submit(item));
    await turn();
    expect(started.map(({ items }) => items)).toEqual([[1, 2, 3]]);
    await endAll();
    expect(started.map(({ items }) => items)).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
    expect(await Promise.all([...first, ...second])).toEqual([1, 2, 3, 4, 5].map((item) => `result ${item}`));
    expect(batches.idle).toBe(true);
  });

  test("wait for whoever comes while turns bring more, until one brings nothing or the batch is full", async () => {
    const { batches, started, endAll } = createBatches({ gathersTurns: true, maxBatch: 4, maxConcurrent: 2 });
    const results: Promise<string>[] = [];
    for (const item of [1, 2, 3]) {
      results.push(batches.submit(item));
      await turn();
      expect(started).toEqual([]);
    }
    await turn();
    expect(started.map(({ items }) => items)).toEqual([[1, 2, 3]]);
    for (const item of [4, 5, 6, 7]) results.push(batches.submit(item));
    await turn();
    expect(started.map(({ items }) => items)).toEqual([
      [1, 2, 3],
      [4, 5, 6, 7],
    ]);
    await endAll();
    expect(await Promise.all(results)).toHaveLength(7);
  });

  test("do not wait for more where there are enough, and take all who came in that turn", async () => {
    const { batches, started, endAll } = createBatches({ gathersTurns: true, maxBatch: 10, enough: 3 });
    const results = [1, 2].map((item) => batches.submit(item));
    await turn();
    expect(started).toEqual([]);
    results.push(...[3, 4, 5].map((item) => batches.submit(item)));
    await turn();
    expect(started.map(({ items }) => items)).toEqual([[1, 2, 3, 4, 5]]);
    await endAll();
    expect(await Promise.all(results)).toHaveLength(5);
  });

  test("run no more at once than allowed, and none larger than allowed", async () => {
    const { batches, started, endAll } = createBatches({ maxBatch: 2, maxConcurrent: 2 });
    const results = [1, 2, 3, 4, 5].map((item) => batches.submit(item));
    await turn();
    await turn();
    expect(started.map(({ items }) => items)).toEqual([
      [1, 2],
      [3, 4],
    ]);
    await endAll();
    expect(started).toHaveLength(3);
    expect(await Promise.all(results)).toHaveLength(5);
  });

  test("that may begin at once share what one of them cannot hold, and leave less than that to one", async () => {
    const sizes: number[] = [];
    const batches = new NaturalBatches<number, number>({
      maxBatch: 8,
      maxConcurrent: 2,
      run: async (items) => {
        sizes.push(items.length);
        await turn();
        await turn();
        return items;
      },
    });
    await Promise.all(Array.from({ length: 9 }, (_, item) => batches.submit(item)));
    await Promise.all(Array.from({ length: 7 }, (_, item) => batches.submit(item)));
    expect(sizes).toEqual([5, 4, 7]);
  });

  test("that overlap share all that is here, waiting or under way, where that is worth it", async () => {
    const sizes: number[] = [];
    const ends: (() => void)[] = [];
    const batches = new NaturalBatches<number, number>({
      maxBatch: 20,
      maxConcurrent: 2,
      overlapFrom: () => 4,
      run: async (items) => {
        sizes.push(items.length);
        const { promise, resolve } = Promise.withResolvers<void>();
        ends.push(resolve);
        await promise;
        return items;
      },
    });
    const submit = (count: number) => Array.from({ length: count }, (_, item) => batches.submit(item));
    const results = submit(10);
    await turn();
    await turn();
    expect(sizes).toEqual([5, 5]);
    // Those who were answered come back while the others are under way: they are one half already.
    ends[0]?.();
    results.push(...submit(5));
    await turn();
    await turn();
    expect(sizes).toEqual([5, 5, 5]);
    for (const end of ends) end();
    await Promise.all(results);
    results.push(...submit(7));
    await turn();
    await turn();
    expect(sizes.slice(3)).toEqual([7]);
    for (const end of ends) end();
    await Promise.all(results);
  });

  test("end where the next item would weigh too much, and take one that does so alone", async () => {
    const sizes: (readonly number[])[] = [];
    const batches = new NaturalBatches<number, number>({
      maxBatch: 100,
      maxConcurrent: 1,
      weigh: (item) => item,
      maxWeight: 10,
      run: async (items) => {
        sizes.push(items);
        return items;
      },
    });
    await Promise.all([4, 6, 1, 50, 2, 3].map((item) => batches.submit(item)));
    expect(sizes).toEqual([[4, 6], [1], [50], [2, 3]]);
  });

  test("fail together and go on with the next", async () => {
    const { batches, started, endAll } = createBatches();
    const failed = Promise.allSettled([batches.submit(1), batches.submit(2)]);
    await turn();
    const next = batches.submit(3);
    started[0]?.fail(new Error("told to fail"));
    expect((await failed).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await endAll();
    expect(await next).toBe("result 3");
  });

  test("refuse as busy what would wait behind too many", async () => {
    const { batches, endAll } = createBatches({ maxQueued: 2 });
    const accepted = [batches.submit(1), batches.submit(2)];
    await expect(batches.submit(3)).rejects.toMatchObject({ kind: "busy" });
    await endAll();
    expect(await Promise.all(accepted)).toHaveLength(2);
  });
});
