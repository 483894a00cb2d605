// Questions whose answer is too large for one frame.
import { expect, test } from "vitest";
import { Reader } from "./reader.ts";

test("ids that are too much for one answer are asked for in halves, as of one seq", async () => {
  const asked: { readonly ids: readonly string[]; readonly atSeq?: number }[] = [];
  const reader = new Reader(async (_, input) => {
    const { ids, atSeq } = input as (typeof asked)[number];
    asked.push(atSeq === undefined ? { ids } : { ids, atSeq });
    if (ids.length > 2) {
      const body = { error: "payload_too_large", message: "too much", retryable: false };
      return { type: "answered", status: 413, body };
    }
    const items = ids.map((id) => ({ id, seq: 3, branch: "", document: { value: id } }));
    return { type: "answered", status: 200, body: { seq: atSeq ?? 7, items, nextCursor: null } };
  });
  const ids = ["a:1", "a:2", "a:3", "a:4", "a:5"];
  const page = await reader.query("", { ids });
  expect(page.items.map(({ id }) => id)).toEqual(ids);
  expect(page.seq).toBe(7);
  expect(asked).toEqual([
    { ids },
    { ids: ["a:1", "a:2", "a:3"] },
    { ids: ["a:1", "a:2"] },
    { ids: ["a:3"], atSeq: 7 },
    { ids: ["a:4", "a:5"], atSeq: 7 },
  ]);
});

test("one entity that is too large for an answer is an error", async () => {
  const body = { error: "payload_too_large", message: "too much", retryable: false };
  const reader = new Reader(async () => ({ type: "answered", status: 413, body }));
  await expect(reader.query("", { ids: ["a:1"] })).rejects.toMatchObject({ code: "payload_too_large" });
});
