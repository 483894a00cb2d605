import { describe, expect, it } from "vitest";
import { columnsOf } from "./printable.ts";
import { formatField, formatTable } from "./table.ts";

const header = ["WHEN", "FROM", "MESSAGE"];
const rows = [
  ["2030-01-01", "alice", "short"],
  ["2030-01-02", "名前", `${"a long message ".repeat(20)}end`],
];

describe("a table", () => {
  it("lines its columns up, also with characters that take two columns", () => {
    const lines = formatTable(header, rows, undefined).split("\n");
    expect(lines).toHaveLength(3);
    const starts = lines.map((line) => columnsOf(line.slice(0, line.search(/MESSAGE|short|a long/))));
    expect(new Set(starts).size).toBe(1);
  });

  it("is cut to the terminal, however narrow, and says so", () => {
    for (const columns of [1, 10, 20, 40, 80]) {
      const lines = formatTable(header, rows, columns).split("\n");
      expect(lines.filter((line) => columnsOf(line) > columns)).toEqual([]);
      expect(lines.at(-1)?.endsWith("…")).toBe(true);
    }
  });

  it("is whole where there is no terminal", () => {
    expect(formatTable(header, rows, undefined)).toContain("end");
  });

  it("keeps the column that matters: the others are cut first, down to eight characters each", () => {
    const wide = ["01K9ZB3V5N6Q8R0S2T4V6X8Z0A", "dead", "refused", "1", "2030-01-31 12:00:05", "#a-long-topic-name"];
    const error = "destination_not_found: No such topic, member or queue.";
    const names = ["CLIENT ID", "STATUS", "FATE", "TRIES", "QUEUED (UTC)", "TO", "LAST ERROR"];
    const [, line = ""] = formatTable(names, [[...wide, error]], 80, "LAST ERROR").split("\n");
    expect(columnsOf(line)).toBeLessThanOrEqual(80);
    expect(line).toContain("destination_not_found");
    const [, whole = ""] = formatTable(names, [[...wide, error]], 200, "LAST ERROR").split("\n");
    expect(whole).toContain(wide[0]);
    expect(whole).toContain(error);
  });

  it("shows what else a cell has to say where the whole table has room for it, and in no row otherwise", () => {
    const cells = [
      [{ text: "12:00", more: " (2 min ago)" }, "x"],
      [{ text: "11:00", more: " (1 h ago)" }, "y"],
    ];
    expect(formatTable(["WHEN", "WHAT"], cells, 80).split("\n")).toEqual([
      "WHEN               WHAT",
      "12:00 (2 min ago)  x",
      "11:00 (1 h ago)    y",
    ]);
    expect(formatTable(["WHEN", "WHAT"], cells, 15).split("\n")).toEqual(["WHEN   WHAT", "12:00  x", "11:00  y"]);
  });

  it("has one line per row, whatever the cells hold", () => {
    const shown = formatTable(["A", "B"], [["x\ny\u001b[31m", "z"]], undefined);
    expect(shown.split("\n")).toHaveLength(2);
    expect(shown).not.toContain("\u001b");
  });

  it("leaves no space at the end of a line", () => {
    expect(formatTable(["A", "B"], [["x", ""]], undefined)).toBe("A  B\nx");
  });
});

it.each([
  ["enqueued_at", 1763600000000, "2025-11-20 00:53:20"],
  ["drain.until", 1763600000000, "2025-11-20 00:53:20"],
  ["membership.since", 1763600000000, "2025-11-20 00:53:20"],
  ["drain.rate_limited_since", 1763600000000, "2025-11-20 00:53:20"],
  ["pid", 4242, "4242"],
  ["member.pubkey", "ab".repeat(32), "abababababab…"],
  ["meta", { run: 42 }, '{"run":42}'],
  ["last_error", "at noon", "at noon"],
])("shows %s as people read it", (name, value, text) => {
  expect(formatField(name, value)).toBe(text);
});
