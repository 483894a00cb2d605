// The words of a search text.
import { expect, test } from "vitest";
import { readSearchTerms } from "./search-terms.ts";

test("are separated by white space and control characters", () => {
  expect(readSearchTerms(" build\tis \n green\0now\u00a0then ")).toEqual(["build", "is", "green", "now", "then"]);
});

test("keep their marks, which mean nothing in a query", () => {
  expect(readSearchTerms('"build* OR (NEAR -x: col:y ^z')).toEqual(['"build*', "OR", "(NEAR", "-x:", "col:y", "^z"]);
});

test("have a letter or a digit of any script", () => {
  expect(readSearchTerms("grüße 你好 ١٢ -- !!! 🚀")).toEqual(["grüße", "你好", "١٢"]);
  expect(readSearchTerms("")).toEqual([]);
});
