// One line for each key, and each item answers for itself.
import { expect, test } from "vitest";
import { KeyedBatches } from "./keyed-batches.ts";
import { StorageError } from "./storage-error.ts";

/** Notes its batches; refuses those with an item that says so. */
function createBatches(refusal: (items: readonly string[]) => Error | undefined = () => undefined) {
  const ran: string[][] = [];
  const batches = new KeyedBatches<string, string>({
    maxBatch: 8,
    maxConcurrent: 1,
    run: async (items) => {
      ran.push([...items]);
      const error = refusal(items);
      if (error !== undefined) throw error;
      return items.map((item) => item.toUpperCase());
    },
  });
  return { batches, ran };
}

test("those who come together share a batch with their own key and with no other", async () => {
  const { batches, ran } = createBatches();
  const told = [batches.submit("a", "x"), batches.submit("b", "y"), batches.submit("a", "z")];
  expect(await Promise.all(told)).toEqual(["X", "Y", "Z"]);
  expect(ran).toEqual([["x", "z"], ["y"]]);
});

test("one that the store refuses leaves its neighbours in peace", async () => {
  const refused = new StorageError("constraint", "no");
  const { batches, ran } = createBatches((items) => (items.includes("bad") ? refused : undefined));
  const told = await Promise.allSettled(["x", "bad", "y"].map((item) => batches.submit("a", item)));
  expect(told).toEqual([
    { status: "fulfilled", value: "X" },
    { status: "rejected", reason: refused },
    { status: "fulfilled", value: "Y" },
  ]);
  expect(ran).toEqual([["x", "bad", "y"], ["x"], ["bad"], ["y"]]);
});

test("one for which the disk has no room leaves those in peace that write nothing", async () => {
  const full = new StorageError("disk_full", "no room");
  const { batches } = createBatches((items) => (items.includes("large") ? full : undefined));
  const told = await Promise.allSettled(["retry", "large"].map((item) => batches.submit("a", item)));
  expect(told).toEqual([
    { status: "fulfilled", value: "RETRY" },
    { status: "rejected", reason: full },
  ]);
});

test("what would hit everybody is tried once and told to everybody", async () => {
  const away = new StorageError("unavailable", "away");
  const { batches, ran } = createBatches(() => away);
  const told = await Promise.allSettled(["x", "y"].map((item) => batches.submit("a", item)));
  expect(told.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(ran).toEqual([["x", "y"]]);
});
