// Columns for people: as wide as their content, lines cut at the edge of the terminal. Without a terminal nothing is
// cut, so that pipes see everything.
import { columnsOf, cutToColumns, neutraliseLine, padColumns } from "./printable.ts";

export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number | undefined,
): string {
  const cells = [header, ...rows].map((row) => row.map(neutraliseLine));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => columnsOf(row[column] ?? ""))));
  return cells
    .map((row) => {
      const line = row.map((cell, column) =>
        column === row.length - 1 ? cell : padColumns(cell, widths[column] ?? 0),
      );
      return fitLine(line.join("  ").trimEnd(), columns);
    })
    .join("\n");
}

function fitLine(line: string, columns: number | undefined): string {
  return columns === undefined ? line : cutToColumns(line, Math.max(columns, 1));
}

/** A field as people read it: one that says when, as a time. */
export function formatField(name: string, value: unknown): string {
  if (/(?:^|[._])(?:at|until)$/.test(name) && typeof value === "number") return `${formatTime(value)} UTC`;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace("T", " ").slice(0, 19);
}
