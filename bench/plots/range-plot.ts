// Draws a RangePlot.
import type { RangePlot, RangeRow } from "./plot.ts";
import { bar, drawing, line, text } from "./svg.ts";

const width = 860;
const labelEnd = 430;
const chart = { from: 442, to: 690 };
const top = 44;
const rowHeight = 26;
const barHeight = 12;

export function drawRange(plot: RangePlot): string {
  const xOf = scaleOf(plot);
  const shapes = plot.rows.flatMap((row, at) => drawRow(row, top + at * rowHeight, plot, xOf));
  return drawing(width, top + plot.rows.length * rowHeight + 12, plot.title, shapes);
}

function drawRow(row: RangeRow, y: number, plot: RangePlot, xOf: (value: number) => number): string[] {
  const { label, value, limit } = row;
  const middle = y + rowHeight / 2;
  const kept = isKept(row);
  return [
    text(labelEnd, middle + 4, label, "end"),
    bar(
      chart.from,
      middle - barHeight / 2,
      Math.max(1, xOf(value.median) - chart.from),
      barHeight,
      kept ? "first" : "miss",
    ),
    line([xOf(value.lowerQuartile), middle], [xOf(value.upperQuartile), middle], "mark"),
    ...(limit === undefined ? [] : [line([xOf(limit.at), y + 3], [xOf(limit.at), y + rowHeight - 3], "mark")]),
    text(chart.to + 12, middle + 4, describe(row, plot.digits)),
  ];
}

/** Written as well as drawn: not every reader sees the colour. */
function describe(row: RangeRow, digits: number): string {
  const format = (value: number) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const { value, limit } = row;
  if (limit === undefined) return format(value.median);
  const wanted = `${limit.kind === "at_least" ? "≥" : "≤"} ${limit.at}`;
  return `${format(value.median)} (${isKept(row) ? "" : "missed: "}${wanted})`;
}

function isKept({ value, limit }: RangeRow): boolean {
  if (limit === undefined) return true;
  return limit.kind === "at_least" ? value.median >= limit.at : value.median <= limit.at;
}

/** From nothing to the largest number shown; on a log scale, from the power of ten below the smallest. */
function scaleOf({ rows, scale }: RangePlot): (value: number) => number {
  const shown = rows.flatMap(({ value, limit }) => [
    value.median,
    value.upperQuartile,
    ...(limit === undefined ? [] : [limit.at]),
  ]);
  const most = Math.max(...shown, Number.MIN_VALUE);
  const span = chart.to - chart.from;
  if (scale === "linear") return (value) => chart.from + (span * Math.max(0, value)) / most;
  const least = 10 ** Math.floor(Math.log10(Math.min(...rows.map(({ value }) => value.lowerQuartile))));
  const decades = Math.log10(most / least);
  return (value) => chart.from + (span * Math.max(0, Math.log10(value / least))) / decades;
}
