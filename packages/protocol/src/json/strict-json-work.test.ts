// However a text is made, reading it costs work in proportion to its length: twice the text, about twice the steps.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { StepCounter, textFamilies } from "../../../../tests/support/counted-steps.ts";
import type * as GrammarReader from "./grammar-reader.ts";
import type * as StrictJson from "./strict-json.ts";

type Readers = typeof StrictJson & typeof GrammarReader;

let counter: StepCounter;
let json: Readers;

beforeAll(async () => {
  counter = await StepCounter.start();
  // Imported only now, so that it is counted.
  json = { ...(await import("./strict-json.ts")), ...(await import("./grammar-reader.ts")) };
});
afterAll(() => counter.stop());

const readers: readonly [name: string, read: (text: string) => unknown][] = [
  ["the strict reader of text", (text) => json.parseStrictJsonText(text, { maxDepth: 64 })],
  ["the strict reader of bytes", (text) => json.parseStrictJson(Buffer.from(text), { maxDepth: 64 })],
  ["the reader of our own text", (text) => json.parseOwnJsonText(text)],
  ["the reader by the grammar", (text) => json.readByGrammar(text, 64)],
  ["the writer", (text) => json.writeStrictJson([text, 9_007_199_254_740_994, text])],
];

describe.each(readers)("%s", (_, read) => {
  const workOn = (text: string) =>
    counter.count(() => {
      try {
        read(text);
      } catch (error) {
        if (!(error instanceof json.StrictJsonError)) throw error;
      }
    });

  test.each(textFamilies)("does twice the work for twice the text: $name", async ({ ofLength }) => {
    const [text, twice] = [ofLength(4_000), ofLength(8_000)];
    await workOn(text);
    const once = await workOn(text);
    expect(await workOn(twice)).toBeLessThanOrEqual(2.5 * once + 100);
    // Not merely in proportion: a few steps for each character.
    expect(once).toBeLessThan(30 * text.length);
  });
});
