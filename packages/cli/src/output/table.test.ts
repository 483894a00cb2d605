import { describe, expect, it } from "vitest";
import { columnsOf } from "./printable.ts";
import { formatField, formatTable, formatTime } from "./table.ts";

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

  it("has one line per row, whatever the cells hold", () => {
    const shown = formatTable(["A", "B"], [["x\ny\u001b[31m", "z"]], undefined);
    expect(shown.split("\n")).toHaveLength(2);
    expect(shown).not.toContain("\u001b");
  });

  it("leaves no space at the end of a line", () => {
    expect(formatTable(["A", "B"], [["x", ""]], undefined)).toBe("A  B\nx");
  });
});

it("times are shown in UTC to the second", () => {
  expect(formatTime(Date.UTC(2030, 0, 31, 12, 0, 5, 999))).toBe("2030-01-31 12:00:05");
});

it.each([
  ["enqueued_at", 1763600000000, "2025-11-20 00:53:20 UTC"],
  ["drain.until", 1763600000000, "2025-11-20 00:53:20 UTC"],
  ["pid", 4242, "4242"],
  ["meta", { run: 42 }, '{"run":42}'],
  ["last_error", "at noon", "at noon"],
])("shows %s as people read it", (name, value, text) => {
  expect(formatField(name, value)).toBe(text);
});
