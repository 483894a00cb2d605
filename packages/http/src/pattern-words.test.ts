// Every pattern that a request can fail on is told in words.
import { operations } from "@claudemesh/protocol/wire/operations";
import { expect, test } from "vitest";
import { describePattern } from "./pattern-words.ts";

function patternsIn(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) =>
    key === "pattern" && typeof value === "string" ? [value] : patternsIn(value),
  );
}

test("every pattern of every operation has words for it", () => {
  const patterns = [...new Set(patternsIn(Object.values(operations).map(({ input }) => input)))];
  expect(patterns.length).toBeGreaterThan(8);
  expect(patterns.filter((pattern) => describePattern(pattern) === undefined)).toEqual([]);
});

test("says what is asked for", () => {
  expect(describePattern("^[0-9a-f]{64}$")).toBe("must be 64 lower-case hex digits");
  expect(describePattern("^[!-~]{1,128}$")).toBe("must be 1–128 printable ASCII characters without spaces");
  expect(describePattern("^[^\\u0000]*$")).toBe("must not hold the character U+0000");
  expect(describePattern("^x+$")).toBeUndefined();
});
