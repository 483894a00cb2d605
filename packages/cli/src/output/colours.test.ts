import { afterEach, beforeEach, describe, expect, it, test } from "vitest";
import { paint, toned, toneOf } from "./colours.ts";
import { setDisplay, wantsColours } from "./display.ts";
import { neutralise } from "./printable.ts";
import { formatTable, stateCell } from "./table.ts";

const red = "\u001b[31m";
const end = "\u001b[39m";

describe("where colours are wanted", () => {
  beforeEach(() => setDisplay({ colours: true }));
  afterEach(() => setDisplay({}));

  it("a state has the colour of what it means, and a table its headings in bold", () => {
    const table = formatTable(
      ["ID", "STATUS"],
      [
        ["x", stateCell("dead")],
        ["y", stateCell("done")],
      ],
      80,
    );
    expect(paint(neutralise(table)).split("\n")).toEqual([
      "\u001b[1mID\u001b[22m  \u001b[1mSTATUS\u001b[22m",
      `x   ${red}dead${end}`,
      "y   \u001b[32mdone\u001b[39m",
    ]);
  });

  it("what other people wrote gets none, whatever it holds", () => {
    const shown = paint(neutralise(toned("dead", "bad")));
    const foreign = [
      "\u001b[31mred",
      "\u009b31mred",
      "\u{f0000}bad\u{f0000}red\u{f0000}\u{f0000}",
      "\u001b]0;title\u0007",
    ];
    const table = paint(
      neutralise(
        formatTable(
          ["TEXT"],
          foreign.map((text) => [text]),
          80,
        ),
      ),
    );
    expect(shown).toBe(`${red}dead${end}`);
    const [, ...rows] = table.split("\n");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
    expect(rows.filter((row) => /[\u001b\u009b\u0007]/.test(row))).toEqual([]);
  });

  it("a line that is cut is cut by what is seen, and its colour ends", () => {
    for (const columns of [1, 3, 5, 6, 7, 8, 20]) {
      const table = paint(formatTable(["STATUS", "WHY"], [[stateCell("dead"), "a long reason for it"]], columns));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: what a terminal takes as colour
      const plain = table.replace(/\u001b\[[0-9]+m/g, "").split("\n");
      expect(plain.filter((line) => line.length > columns)).toEqual([]);
      expect(table.split("\u001b[").length % 2).toBe(1);
    }
  });
});

test("where they are not, nothing is marked", () => {
  expect(toned("dead", "bad")).toBe("dead");
  expect(formatTable(["A"], [[stateCell("dead")]], 80)).toBe("A\ndead");
});

test("a word that says neither good nor bad has no colour", () => {
  expect([toneOf("dead"), toneOf("PENDING"), toneOf("delivered"), toneOf("main")]).toEqual([
    "bad",
    "waiting",
    "good",
    undefined,
  ]);
});

test.each([
  [{}, true, true],
  [{}, false, false],
  [{ NO_COLOR: "1" }, true, false],
  [{ NO_COLOR: "" }, true, true],
  [{ TERM: "dumb" }, true, false],
  [{ FORCE_COLOR: "1" }, false, true],
  [{ FORCE_COLOR: "0" }, true, false],
  [{ FORCE_COLOR: "1", NO_COLOR: "1" }, true, false],
  [{ FORCE_COLOR: "1", TERM: "dumb" }, true, false],
])("with %o and a terminal: %s, colours are wanted: %s", (env, isTerminal, wanted) => {
  expect(wantsColours(env, isTerminal)).toBe(wanted);
});
