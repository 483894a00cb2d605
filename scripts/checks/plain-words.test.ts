import { expect, it } from "vitest";
import { findUnplainWords } from "./plain-words.ts";

const wordsIn = (path: string, ...lines: string[]) =>
  findUnplainWords(path, lines.join("\n")).map((problem) => /:(\d+ "[^"]+")/.exec(problem)?.[1]);
const inSource = (...lines: string[]) => wordsIn("scripts/example.ts", ...lines);
const inPage = (...lines: string[]) => wordsIn("docs/example.md", ...lines);

it("names the line and the word, in comments of both kinds", () => {
  expect(inSource("const a = 1; // for anybody", "/**", " * Whoever asks,", " * and his answer.", " */")).toEqual([
    '1 "anybody"',
    '3 "Whoever"',
    '4 "his"',
  ]);
});

it("refuses a banned word that is one of an identifier's words", () => {
  const names = ["place", "toldUpTo", "#lanes", "readPlaces", "HANDS", "free_hand", "LanesOfSpace", "toNobody"];
  for (const name of names) expect(inSource(`f(${name})`)).toEqual([`1 "${name}"`]);
});

it("leaves alone what only contains such a word, and hands that are a verb", () => {
  const names = ["handler", "handshake", "handle", "placeholder", "replaceAll", "plane", "handOver", "handsOut"];
  for (const name of names) expect(inSource(`f(${name})`)).toEqual([]);
});

it("takes quoted text, templates and regular expressions for data, but not what is inserted into a template", () => {
  expect(inSource(`const a = "nobody // he"; const b = 'place \\' his';`)).toEqual([]);
  expect(inSource("const a = `nobody $".concat("{f({ a: `he $", "{1}` })} // his`; // him"))).toEqual(['1 "him"']);
  expect(inSource("const a = `$".concat("{place} his`;"))).toEqual(['1 "place"']);
  expect(inSource("const a = /place[/]\\/\\* his/; const b = 4 / 2; // he")).toEqual(['1 "he"']);
  expect(inSource('const url = "https://example.com"; const told = 1;')).toEqual(['1 "told"']);
});

it("reads the titles of tests, also behind a table or a condition", () => {
  expect(inSource('it("asks nobody", () => f("nobody"));')).toEqual(['1 "nobody"']);
  expect(inSource("test.each([1])(", '  "asks %s and nobody", () => 1);')).toEqual(['2 "nobody"']);
});

it("takes code in Markdown for data", () => {
  expect(inPage("Run `@nobody`.", "```", "nobody", "```", "For nobody.")).toEqual(['5 "nobody"']);
});
