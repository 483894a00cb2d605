// Which words PostgreSQL's index of a text holds, and that making them costs no more than the text is long.
import { expect, test, vi } from "vitest";
import { toVector } from "./search-words.ts";

const wordsOf = (text: string) => toVector("01890000-0000-7000-8000-000000000001", text);

test("words are the same with and without accents, however these are written", () => {
  const words = wordsOf("Creme brulee ae 한국어 2nd");
  expect(words.normalize("NFD")).toContain(":creme':1");
  expect(wordsOf("Crème brûlée ae 한국어 2nd")).toBe(words);
  expect(wordsOf("Cre\u0300me bru\u0302le\u0301e ae 한국어 2nd")).toBe(words);
});

test("every character is folded as it is when accents go last", () => {
  const folded = (text: string) =>
    text
      .normalize("NFD")
      .replaceAll(/\p{Mn}/gu, "")
      .toLowerCase();
  const expected = (text: string) => folded(text).match(/[\p{L}\p{N}]{1,500}/gu) ?? [];
  for (let code = 1; code < 0x110000; code++) {
    const character = String.fromCodePoint(code);
    // Unassigned, of private use, or half of a pair.
    if (/\p{Cn}|\p{Co}|\p{Cs}/u.test(character)) continue;
    const text = `a${character}b`;
    const lexemes = [...wordsOf(text).matchAll(/'[^:']*:([^']*)'/g)].map(([, word]) => word);
    if (lexemes.join() !== expected(text).join())
      expect.fail(`U+${code.toString(16)}: ${lexemes} for ${expected(text)}`);
  }
});

test("no long run of marks is put in order", () => {
  const normalize = vi.spyOn(String.prototype, "normalize");
  wordsOf(`a${"\u0301\u0316".repeat(5_000)} b${"\u{1d165}\u{1d16d}".repeat(5_000)} c`);
  const longest = normalize.mock.contexts.flatMap((text) => String(text).match(/\p{M}+/gu) ?? []);
  normalize.mockRestore();
  expect(longest).toEqual([]);
});
