// The bound on what one page of a list counts.
import { expect, test } from "vitest";
import { CountRoom, countedMax } from "./count-room.ts";

test("a page ends where its rows are used up, and goes on over things that hold nothing", () => {
  const full = new CountRoom();
  let counted = 1;
  while (full.take(countedMax)) counted++;
  expect(counted).toBe(5);
  const empty = new CountRoom();
  for (let queues = 0; queues < 1_000; queues++) expect(empty.take(0, 0, 0)).toBe(true);
});
