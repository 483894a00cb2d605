// Columns for people: as wide as their content, lines cut at the edge of the terminal. Without a terminal nothing is
// cut, so that pipes see everything.
import type { Cell } from "./cell.ts";
import { type Tone, toned, toneOf } from "./colours.ts";
import { shortenKeys } from "./members.ts";
import { columnsOf, cutToColumns, neutraliseLine, padColumns } from "./printable.ts";
import { formatTime } from "./times.ts";

type Part = { readonly text: string; readonly tone: Tone | undefined };

/** Where not all columns fit, the others make room for the one that is kept, as far as they can be read then. */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly Cell[])[],
  columns: number | undefined,
  keep?: string,
): string {
  const heads = header.map((text): Part => ({ text: neutraliseLine(text), tone: "heading" }));
  const whole = [heads, ...rows.map((row) => row.map((cell) => partOf(cell, true)))];
  const fits = columns === undefined || widthsOf(whole).reduce(sumWithGap, -gap.length) <= columns;
  const cells = fits ? whole : [heads, ...rows.map((row) => row.map((cell) => partOf(cell, false)))];
  const natural = widthsOf(cells);
  const kept = keep === undefined ? -1 : header.indexOf(keep);
  const widths = kept < 0 || columns === undefined ? natural : makeRoom(natural, kept, columns);
  return cells
    .map((row) => {
      const parts = row.map(({ text, tone }, column): Part => {
        const width = widths[column] ?? 0;
        const shown = width < (natural[column] ?? 0) && column !== kept ? cutToColumns(text, width) : text;
        return { text: column === row.length - 1 ? shown : padColumns(shown, width), tone };
      });
      return drawLine(parts, columns);
    })
    .join("\n");
}

/** A state in the colour that says what to think of it. */
export function stateCell(state: string): Cell {
  return { text: state, tone: toneOf(state) };
}

const gap = "  ";
const narrowest = 8;

function partOf(cell: Cell, isWhole: boolean): Part {
  if (typeof cell === "string") return { text: neutraliseLine(cell), tone: undefined };
  const { text, more = "", tone } = cell;
  return { text: neutraliseLine(isWhole ? `${text}${more}` : text), tone };
}

function widthsOf(cells: readonly (readonly Part[])[]): number[] {
  const [header = []] = cells;
  return header.map((_, column) => Math.max(...cells.map((row) => columnsOf(row[column]?.text ?? ""))));
}

function sumWithGap(sum: number, width: number): number {
  return sum + gap.length + width;
}

/** Takes from the widest of the others, one column at a time, until the kept one fits or nothing can be taken. */
function makeRoom(natural: readonly number[], kept: number, columns: number): number[] {
  const widths = [...natural];
  const others = widths.map((_, column) => column).filter((column) => column !== kept);
  let missing = widths.reduce(sumWithGap, -gap.length) - columns;
  while (missing > 0) {
    const widest = others.reduce((a, b) => ((widths[b] ?? 0) > (widths[a] ?? 0) ? b : a), others[0] ?? kept);
    const width = widths[widest] ?? 0;
    if (widest === kept || width <= narrowest) break;
    widths[widest] = width - 1;
    missing--;
  }
  return widths;
}

/** Cut first and coloured afterwards: a colour takes no columns, and half of one is none. */
function drawLine(parts: readonly Part[], columns: number | undefined): string {
  const line = parts
    .map(({ text }) => text)
    .join(gap)
    .trimEnd();
  const fitted = columns === undefined ? line : cutToColumns(line, Math.max(columns, 1));
  let drawn = "";
  let at = 0;
  for (const [index, { text, tone }] of parts.entries()) {
    const shown = fitted.slice(at, at + text.length);
    const word = shown.trimEnd();
    drawn += `${toned(word, tone)}${shown.slice(word.length)}`;
    at += text.length;
    if (index < parts.length - 1) drawn += fitted.slice(at, at + gap.length);
    at += gap.length;
  }
  // An ellipsis may stand where nothing of the line was.
  return drawn + fitted.slice(at);
}

/** A field as people read it: one that says when, as a time, and a key as its beginning. */
export function formatField(name: string, value: unknown): string {
  if (/(?:^|[._])(?:at|until|since)$/.test(name) && typeof value === "number") return formatTime(value);
  return typeof value === "object" ? JSON.stringify(value) : shortenKeys(String(value));
}
