// Which ids a watch stands for.
import { expect, test } from "vitest";
import { Watched } from "./watched.ts";

test("a watch stands for its ids and for whatever begins with one of its prefixes", () => {
  const watched = new Watched(["task:1", "note:1"], ["note:", "note:1", "file:a"]);
  expect(["task:1", "task:11", "note:7", "file:ab", "file:b"].map((id) => watched.has(id))).toEqual([
    true,
    false,
    true,
    true,
    false,
  ]);
  expect(watched.prefixes).toEqual(["file:a", "note:"]);
  expect(watched.idsAlone()).toEqual(["task:1"]);
  expect(new Watched([], ["", "a:"]).prefixes).toEqual([""]);
});
