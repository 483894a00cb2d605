// What a plot shows, as data: it is kept in the report, so that a drawing can be made again from the stored figures.
import type { Summary } from "../method/statistics.ts";

/** One horizontal bar per row: the median as its length and as a number, the quartiles as a line across its end. */
export type RangePlot = {
  readonly kind: "range";
  /** Part of a file name. */
  readonly name: string;
  readonly title: string;
  readonly scale: "linear" | "log";
  /** Digits behind the point of every number. */
  readonly digits: number;
  readonly rows: readonly RangeRow[];
};

export type RangeRow = {
  readonly label: string;
  readonly value: Summary;
  /** A promise about this row, drawn as a mark and said in words. */
  readonly limit?: { readonly at: number; readonly kind: "at_least" | "at_most" };
};

/** Panels side by side, each with lines over one axis that grows tenfold per step; every point has its number. */
export type CurvePlot = {
  readonly kind: "curve";
  readonly name: string;
  readonly title: string;
  readonly xLabel: string;
  readonly panels: readonly { readonly title: string; readonly lines: readonly CurveLine[] }[];
};

export type CurveLine = {
  readonly label: string;
  readonly points: readonly { readonly x: number; readonly y: Summary }[];
};

export type Plot = RangePlot | CurvePlot;
