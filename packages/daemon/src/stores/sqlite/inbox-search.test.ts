import { expect, test, vi } from "vitest";
import { toSearchExpression } from "./inbox-search.ts";

test.each([
  ["build*", '"build"*'],
  ["a**", '"a"*'],
  ['say "no"', '"say" """no"""'],
  ["* **", undefined],
  ["*a*b", '"*a*b"'],
])("%j looks for %j", (text, expression) => {
  expect(toSearchExpression(text)).toBe(expression);
});

test("stars before a word are passed over without an expression that starts again at each", () => {
  const replace = vi.spyOn(String.prototype, "replace");
  const expression = toSearchExpression(`${"*".repeat(10_000)}x`);
  const patterns = replace.mock.calls.map(([pattern]) => pattern);
  replace.mockRestore();
  expect(expression).toBe(`"${"*".repeat(10_000)}x"`);
  expect(patterns).toEqual([]);
});
