// The list of known faults must not rot: an edit that no longer fits the source would plant nothing. Whether each fault
// is caught is the business of `npm run known-bad`, and of the deep run for one fault a day.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { editText } from "./known-bad/bad-copy.ts";
import { knownBad } from "./known-bad/faults.ts";

const root = join(import.meta.dirname, "..");

it.each(knownBad)("$name can be planted in the source as it stands", ({ edits }) => {
  const texts = new Map(edits.map(({ file }) => [file, readFileSync(join(root, file), "utf8")]));
  for (const edit of edits) {
    const before = texts.get(edit.file) ?? "";
    const after = editText(before, edit);
    expect(after).not.toBe(before);
    texts.set(edit.file, after);
  }
});

it("refuses an edit that fits nowhere, or in two places", () => {
  const edit = { file: "a.ts", find: "x", replace: "y" };
  expect(() => editText("abc", edit)).toThrow("occurs 0 times");
  expect(() => editText("x and x", edit)).toThrow("occurs 2 times");
});

it("gives each fault a name of its own", () => {
  expect(new Set(knownBad.map(({ name }) => name)).size).toBe(knownBad.length);
});
