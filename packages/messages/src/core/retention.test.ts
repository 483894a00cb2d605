// Retention over rows of history whose times may come from clocks that were wrong.
import { expect, test } from "vitest";
import { countRemovable } from "./retention.ts";

const rows = (...times: readonly number[]) => times.map((acceptedAtMs, at) => ({ historyId: at + 1, acceptedAtMs }));

test("all rows that are older than the bound may go, and those at it may not", () => {
  expect(countRemovable(rows(10, 20, 30), 30, 100)).toBe(2);
  expect(countRemovable(rows(10, 20, 29), 30, 100)).toBe(3);
  expect(countRemovable([], 30, 100)).toBe(0);
});

test("a young row holds back what was accepted after it, whatever its time says", () => {
  expect(countRemovable(rows(10, 50, 20), 30, 100)).toBe(1);
});

test("a row from a clock that was ahead goes with the next old one, and not before", () => {
  expect(countRemovable(rows(10, 500, 20, 50), 30, 100)).toBe(3);
  expect(countRemovable(rows(10, 500, 50), 30, 100)).toBe(1);
});
