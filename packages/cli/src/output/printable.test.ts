import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { columnsOf, cutToColumns, jsonText, neutralise, neutraliseLine, padColumns } from "./printable.ts";

describe("text from other people", () => {
  it.each([
    ["a terminal's escape sequence", "\u001b[2J\u001b]0;title\u0007"],
    ["the one-character form of one", "\u009b31m"],
    ["a carriage return that overwrites the line", "harmless\rrm -rf"],
    ["a backspace", "ab\b\bcd"],
    ["NUL and DEL", "a\u0000b\u007fc"],
    ["marks that reorder text", "\u202eevil\u202c \u2066x\u2069 \u200f \u061c"],
    ["separators that a terminal takes for line ends", "a\u2028b\u2029c\u0085d"],
  ])("loses %s", (_, text) => {
    const shown = neutralise(text);
    expect(shown).toContain("�");
    expect(shown).not.toMatch(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u);
    expect(shown).toHaveLength(text.length);
  });

  it("keeps letters of every script, emoji and line ends; a tab becomes a space", () => {
    const text = "Grüße 你好 שלום 👩‍👩‍👧\nsecond";
    expect(neutralise(text)).toBe(text);
    expect(neutralise("a\tb")).toBe("a b");
  });

  it("shows a line end as a sign where it must stay on one line", () => {
    expect(neutraliseLine("one\ntwo\r\n")).toBe("one⏎two�⏎");
  });
});

describe("JSON for programs", () => {
  it("is the same value, and holds nothing that a terminal would act upon", () => {
    const codes = [
      ...Array(0xa0).keys(),
      0x061c,
      0x200e,
      0x200f,
      0x2028,
      0x2029,
      0x202a,
      0x202e,
      0x2066,
      0x2069,
      0xfeff,
    ];
    const value = { text: String.fromCharCode(...codes), "\u202ename": ["Grüße 你好 🙂"] };
    for (const indent of [undefined, 2]) {
      const text = jsonText(value, indent);
      expect(JSON.parse(text)).toEqual(value);
      expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/u);
      expect(text).toContain("Grüße 你好 🙂");
    }
  });

  it("is printed so by every command", () => {
    const sources = join(import.meta.dirname, "..");
    const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((file) =>
      /(?<!test)\.ts$/.test(file),
    );
    expect(files.length).toBeGreaterThan(100);
    const raw = files.filter((file) => /\.out\([^;]*JSON\.stringify/.test(readFileSync(join(sources, file), "utf8")));
    expect(raw).toEqual([]);
  });
});

describe("columns", () => {
  it.each([
    ["plain", 5],
    ["grün", 4],
    ["e\u0301", 1],
    ["你好", 4],
    ["한글", 4],
    ["🙂", 2],
    ["👩‍👩‍👧", 2],
    ["⏎", 1],
    ["", 0],
  ])("of %j are %i", (text, columns) => {
    expect(columnsOf(text)).toBe(columns);
  });

  it("are filled up, and never cut by filling", () => {
    expect(padColumns("你", 4)).toBe("你  ");
    expect(padColumns("longer", 4)).toBe("longer");
  });

  it.each(["你好你好你好", "👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧", "plain text", "mixed 你 🙂 e\u0301e\u0301e\u0301"])(
    "of %j never exceed what it is cut to, and no character is cut in two",
    (text) => {
      for (let columns = 1; columns <= 20; columns++) {
        const cut = cutToColumns(text, columns);
        expect(columnsOf(cut)).toBeLessThanOrEqual(columns);
        expect(cut.isWellFormed()).toBe(true);
        if (columnsOf(text) <= columns) expect(cut).toBe(text);
        else expect(cut.endsWith("…") && text.startsWith(cut.slice(0, -1))).toBe(true);
      }
    },
  );
});
