// Names of the segments of growth, its tables and its curves. Every ratio is to the smallest store of the same round. No
// measuring here.
import { summarise } from "../method/statistics.ts";
import type { CurvePlot } from "../plots/plot.ts";
import { formatRate, formatRatio, formatSummary } from "../report.ts";
import type { RoundFigures } from "./accept-figures.ts";
import { figuresOf, type Store } from "./broker-accept-figures.ts";
import type { MarkdownTable } from "./scenario.ts";

export const growthWorks = ["accept", "retry", "commit", "read"] as const;
export type GrowthWork = (typeof growthWorks)[number];

const smallest = 1_000;

/** Each ten times the one before, up to the most that was asked for. */
export function growthSizes(rowsMax: number): number[] {
  const sizes = [smallest];
  for (let size = smallest * 10; size <= rowsMax; size *= 10) sizes.push(size);
  return sizes;
}

export const growthSegment = (store: Store, work: GrowthWork, rows: number) => `${work}, ${store}, ${rows}`;

/** How many times as long one takes as with the smallest store. */
export function growthRatios(rounds: readonly RoundFigures[], store: Store, work: GrowthWork, rows: number): number[] {
  const rate = (round: RoundFigures, size: number) => figuresOf(round, growthSegment(store, work, size)).perSecond;
  return rounds.map((round) => rate(round, smallest) / rate(round, rows));
}

const storeNames = { sqlite: "SQLite", postgres: "PostgreSQL" } as const;
const workNames: Readonly<Record<GrowthWork, string>> = {
  accept: "accept",
  retry: "retry of a stored id",
  commit: "commit to a space",
  read: "read of a space at a past moment",
};

export function growthTables(
  rounds: readonly RoundFigures[],
  kinds: readonly Store[],
  sizes: readonly number[],
): MarkdownTable[] {
  const rowsOf = (cell: (kind: Store, work: GrowthWork, size: number) => string) =>
    kinds.flatMap((kind) =>
      growthWorks.map((work) => [storeNames[kind], workNames[work], ...sizes.map((size) => cell(kind, work, size))]),
    );
  const columns = ["store", "what", ...sizes.map((size) => `${formatRate(size)} rows`)];
  const rate = (kind: Store, work: GrowthWork, size: number) =>
    formatSummary(
      summarise(rounds.map((round) => figuresOf(round, growthSegment(kind, work, size)).perSecond)),
      formatRate,
    );
  const ratio = (kind: Store, work: GrowthWork, size: number) =>
    formatSummary(summarise(growthRatios(rounds, kind, work, size)), formatRatio);
  return [
    { caption: "Per second, by the rows that were there", columns, rows: rowsOf(rate) },
    {
      caption: `How many times as long one takes as with ${formatRate(smallest)} rows`,
      columns,
      rows: rowsOf(ratio),
    },
  ];
}

export function growthCurves(
  rounds: readonly RoundFigures[],
  kinds: readonly Store[],
  sizes: readonly number[],
): CurvePlot {
  return {
    kind: "curve",
    name: "curves",
    title: "How many times as long, as rows grow",
    xLabel: "rows that were there",
    panels: growthWorks.map((work) => ({
      title: workNames[work],
      lines: kinds.map((kind) => ({
        label: storeNames[kind],
        points: sizes.map((x) => ({ x, y: summarise(growthRatios(rounds, kind, work, x)) })),
      })),
    })),
  };
}
