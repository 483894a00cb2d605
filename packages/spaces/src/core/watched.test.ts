// Which ids a watch stands for.
import { expect, test } from "vitest";
import { createRandom, seedOfTheDay } from "../../../../tests/support/seed.ts";
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

test("an id is found under its prefix among very many, as comparing it with each would find it", () => {
  const random = createRandom(seedOfTheDay());
  const letters = ["a", "b", ":", "-", "é", "\u{1f600}"];
  const word = (length: number) => Array.from({ length }, () => letters[random.below(letters.length)]).join("");
  let hits = 0;
  for (let round = 0; round < 200; round += 1) {
    const prefixes = Array.from({ length: 30 }, () => word(1 + random.below(4)));
    const watched = new Watched([], prefixes);
    for (let n = 0; n < 20; n += 1) {
      const id = word(5);
      const isWatched = prefixes.some((prefix) => id.startsWith(prefix));
      expect(watched.has(id), JSON.stringify({ id, prefixes })).toBe(isWatched);
      if (isWatched) hits += 1;
    }
  }
  expect(hits).toBeGreaterThan(100);
});
