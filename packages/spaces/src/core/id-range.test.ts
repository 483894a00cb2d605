// The range of a prefix, at the edges of what characters there are.
import { expect, test } from "vitest";
import { endOfPrefix } from "./id-range.ts";

test("a prefix ends before the next text that does not begin with it", () => {
  expect(endOfPrefix("task:")).toBe("task;");
  expect(endOfPrefix("a\u{10ffff}")).toBe("b");
  expect(endOfPrefix("a\ud7ff")).toBe("a\u{e000}");
  expect(endOfPrefix("\u{10ffff}")).toBeUndefined();
  expect(endOfPrefix("")).toBeUndefined();
});
