// What a pattern takes and where it says that a value differs.
import { describe, expect, test } from "vitest";
import { absent, aCount, aText, aTime, findDifference, oneOf } from "./pattern.ts";

describe("a pattern", () => {
  test("looks at the fields that it names, and lets others be", () => {
    expect(findDifference({ a: 1, b: { c: "x" } }, { a: 1, b: { c: "x", d: 2 }, e: 3 })).toBeUndefined();
    expect(findDifference({ a: 1, b: { c: "x" } }, { a: 1, b: { c: "y" } })).toEqual({
      path: "b.c",
      expected: '"x"',
      got: '"y"',
    });
    expect(findDifference({ a: 1 }, {})).toEqual({ path: "a", expected: "1", got: "nothing" });
  });

  test("takes a list item by item, and no longer or shorter one", () => {
    expect(findDifference([{ a: 1 }], [{ a: 1, b: 2 }])).toBeUndefined();
    expect(findDifference([{ a: 1 }], [{ a: 2 }])?.path).toBe("[0].a");
    for (const other of [[], [{ a: 1 }, { a: 1 }], { 0: { a: 1 } }, "x"])
      expect(findDifference([{ a: 1 }], other)).toBeDefined();
  });

  test("tells null, nothing and false apart", () => {
    expect(findDifference({ a: null }, { a: null })).toBeUndefined();
    expect(findDifference({ a: null }, {})).toBeDefined();
    expect(findDifference({ a: false }, { a: null })).toBeDefined();
    expect(findDifference({ a: absent }, {})).toBeUndefined();
    expect(findDifference({ a: absent }, { a: null })).toBeDefined();
  });

  test("does not take what a value inherits for a field", () => {
    expect(findDifference({ toString: absent }, {})).toBeUndefined();
  });

  test("has rules with words", () => {
    expect(findDifference(aText, "")).toEqual({ path: "", expected: "a text that is not empty", got: '""' });
    expect(findDifference(aCount, 1.5)).toBeDefined();
    expect(findDifference(aTime, 1_700_000_000)).toBeDefined();
    expect(findDifference(aTime, 1_700_000_000_000)).toBeUndefined();
    expect(findDifference(oneOf("a", null), null)).toBeUndefined();
    expect(findDifference(oneOf("a", null), "b")?.expected).toBe('one of "a", null');
  });
});
