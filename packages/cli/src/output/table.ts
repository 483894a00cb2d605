// Columns for people: as wide as their content, lines cut at the edge of the terminal. Without a terminal nothing is
// cut, so that pipes see everything.
import { columnsOf, cutToColumns, neutraliseLine, padColumns } from "./printable.ts";

/** Where not all columns fit, the others make room for the one that is kept, as far as they can be read then. */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number | undefined,
  keep?: string,
): string {
  const cells = [header, ...rows].map((row) => row.map(neutraliseLine));
  const natural = header.map((_, column) => Math.max(...cells.map((row) => columnsOf(row[column] ?? ""))));
  const kept = keep === undefined ? -1 : header.indexOf(keep);
  const widths = kept < 0 || columns === undefined ? natural : makeRoom(natural, kept, columns);
  return cells
    .map((row) => {
      const line = row.map((cell, column) => {
        const width = widths[column] ?? 0;
        const shown = width < (natural[column] ?? 0) && column !== kept ? cutToColumns(cell, width) : cell;
        return column === row.length - 1 ? shown : padColumns(shown, width);
      });
      return fitLine(line.join(gap).trimEnd(), columns);
    })
    .join("\n");
}

const gap = "  ";
const narrowest = 8;

/** Takes from the widest of the others, one column at a time, until the kept one fits or nothing can be taken. */
function makeRoom(natural: readonly number[], kept: number, columns: number): number[] {
  const widths = [...natural];
  const others = widths.map((_, column) => column).filter((column) => column !== kept);
  let missing = widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1)) - columns;
  while (missing > 0) {
    const widest = others.reduce((a, b) => ((widths[b] ?? 0) > (widths[a] ?? 0) ? b : a), others[0] ?? kept);
    const width = widths[widest] ?? 0;
    if (widest === kept || width <= narrowest) break;
    widths[widest] = width - 1;
    missing--;
  }
  return widths;
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
