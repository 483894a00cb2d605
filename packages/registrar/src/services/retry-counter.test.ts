// Retries are added up and written together; asking writes what is there.
import { expect, test } from "vitest";
import type { Retry } from "../core/records.ts";
import { RetryCounter } from "./retry-counter.ts";

const retry = (attemptId: string, atMs = 1) => ({
  meshId: "m",
  logicalRequestKey: "k",
  attemptId,
  memberPubkey: "p",
  atMs,
});

test("tries of one attempt are one count; a flush writes all of them, and nothing twice", async () => {
  const written: Retry[][] = [];
  const counter = new RetryCounter({
    store: { count: async (retries) => void written.push([...retries]) },
    onFailure: () => expect.fail("nothing failed"),
  });
  void counter.add(retry("a"));
  void counter.add(retry("b"));
  void counter.add(retry("a", 2));
  await counter.flush();
  expect(written).toEqual([
    [
      { ...retry("a", 2), tries: 2 },
      { ...retry("b"), tries: 1 },
    ],
  ]);
  await counter.flush();
  expect(written).toHaveLength(1);
});

test("many different attempts do not wait for the moment, and a failure is reported and passes", async () => {
  let writes = 0;
  const failures: unknown[] = [];
  const counter = new RetryCounter({
    store: {
      count: async () => {
        writes += 1;
        throw new Error("the disk is full");
      },
    },
    onFailure: (error) => failures.push(error),
  });
  for (let n = 0; n < 5_000; n++) void counter.add(retry(`attempt ${n}`));
  await counter.flush();
  expect([writes, failures.length]).toEqual([1, 1]);
});

test("a crowd of different attempts is written in pieces, one at a time, and waits once too many wait", async () => {
  let writing = 0;
  let most = 0;
  let counted = 0;
  const held = Promise.withResolvers<void>();
  const counter = new RetryCounter({
    store: {
      count: async (retries) => {
        most = Math.max(most, ++writing);
        expect(retries.length).toBeLessThanOrEqual(500);
        await held.promise;
        counted += retries.length;
        writing -= 1;
      },
    },
    onFailure: () => expect.fail("nothing failed"),
  });
  const waits = Array.from({ length: 12_000 }, (_, n) => counter.add(retry(`attempt ${n}`)));
  await Promise.resolve();
  expect(waits.slice(0, 9_999).every((wait) => wait === undefined)).toBe(true);
  expect(waits[9_999]).toBeInstanceOf(Promise);
  held.resolve();
  await Promise.all([...waits, counter.flush()]);
  expect([most, counted]).toEqual([1, 12_000]);
});
