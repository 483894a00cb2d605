// JSON pointers, by the examples of RFC 6901, section 5, and its rules.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatPointer, isIndex, parsePointer, readPointer, startsWithPath } from "./pointer.ts";

describe("a JSON pointer", () => {
  it.each([
    ["", []],
    ["/foo", ["foo"]],
    ["/foo/0", ["foo", "0"]],
    ["/", [""]],
    ["/a~1b", ["a/b"]],
    ["/c%d", ["c%d"]],
    ["/i\\j", ["i\\j"]],
    ["/ ", [" "]],
    ["/m~0n", ["m~n"]],
    ["/~01", ["~1"]],
    ["/__proto__/constructor", ["__proto__", "constructor"]],
  ])("%j names the keys %j", (pointer, path) => {
    expect(parsePointer(pointer)).toEqual(path);
    expect(formatPointer(path)).toBe(pointer);
  });

  it.each(["foo", "~0", "/~", "/a~2", "/a~/b"])("is not %j", (text) => {
    expect(parsePointer(text)).toBeUndefined();
  });

  it("comes back from any keys", () => {
    fc.assert(
      fc.property(fc.array(fc.string()), (path) => {
        expect(parsePointer(formatPointer(path))).toEqual(path);
      }),
    );
  });

  it.each([
    ["no pointer", "a"],
    ["a lone surrogate", "/\ud800"],
    ["more keys than a document is deep", "/a".repeat(129)],
    ["more characters than are allowed", `/${"a".repeat(8_192)}`],
  ])("with %s is refused as input", (_what, pointer) => {
    expect(() => readPointer(pointer, "path")).toThrow(expect.objectContaining({ code: "invalid_request" }));
  });
});

describe("an index", () => {
  it.each([
    ["0", true],
    ["10", true],
    ["01", false],
    ["-", false],
    ["-1", false],
    ["1e0", false],
    ["", false],
    ["1.0", false],
    ["99999999999999999999", false],
  ])("%j: %s", (segment, isOne) => {
    expect(isIndex(segment)).toBe(isOne);
  });
});

describe("a path", () => {
  it("starts with itself and with every path above it", () => {
    expect(startsWithPath(["a", "b"], [])).toBe(true);
    expect(startsWithPath(["a", "b"], ["a"])).toBe(true);
    expect(startsWithPath(["a", "b"], ["a", "b"])).toBe(true);
    expect(startsWithPath(["a", "b"], ["a", "b", "c"])).toBe(false);
    expect(startsWithPath(["a", "b"], ["b"])).toBe(false);
  });
});
