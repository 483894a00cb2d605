// From the figures of the clean rounds to the table of peers. Ratios are formed within a round. No measuring here.
import { type Summary, summarise } from "../method/statistics.ts";
import type { RangePlot } from "../plots/plot.ts";
import { formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import type { Figures } from "./accept-figures.ts";
import { figuresOf } from "./broker-accept-figures.ts";
import type { MarkdownTable } from "./scenario.ts";

export type PeerFigures = Figures & { readonly answered: number };

export type PeerRow = {
  readonly name: string;
  readonly version: string;
  readonly durability: string;
  /** Per operation, counted beside the timed segments, or a word where there is no count. */
  readonly flushes: string;
};

type Round = ReadonlyMap<string, PeerFigures>;

export const peerSegment = (name: string, callers: number) => `${name}, ${callers} callers`;

export function ratiosTo(rounds: readonly Round[], name: string, base: string, callers: number): number[] {
  const perSecond = (round: Round, of: string) => figuresOf(round, peerSegment(of, callers)).perSecond;
  return rounds.map((round) => perSecond(round, name) / perSecond(round, base));
}

/** A row without figures is a peer that was not there, and says so. */
export function peerTable(
  rounds: readonly Round[],
  rows: readonly PeerRow[],
  base: string,
  callers: number,
): MarkdownTable {
  return {
    caption: `Messages per second at ${callers} callers`,
    columns: ["what", "version", "messages/s", `÷ ${base}`, "flushes per operation", "p50 ms", "p99 ms"],
    rows: rows.map((row) => cellsOf(rounds, row, base, callers)),
  };
}

/** On a scale of powers of ten: these differ by that much. */
export function peerPlot(rounds: readonly Round[], rows: readonly PeerRow[], callers: number): RangePlot {
  return {
    kind: "range",
    name: "peers",
    title: `Messages per second at ${callers} callers, on a logarithmic scale`,
    scale: "log",
    digits: 0,
    rows: rows.map(({ name, flushes }) => ({
      label: `${name} (flushes per operation: ${flushes})`,
      value: summarise(rounds.map((round) => figuresOf(round, peerSegment(name, callers)).perSecond)),
    })),
  };
}

function cellsOf(
  rounds: readonly Round[],
  { name, version, flushes }: PeerRow,
  base: string,
  callers: number,
): string[] {
  const segment = peerSegment(name, callers);
  if (!rounds.every((round) => round.has(segment))) return [name, version, "–", "–", "–", "–", "–"];
  const figures = rounds.map((round) => figuresOf(round, segment) as PeerFigures);
  const over = (pick: (each: PeerFigures) => number | undefined): Summary | undefined => {
    const values = figures.map(pick).filter((value) => value !== undefined && Number.isFinite(value));
    return values.length === figures.length ? summarise(values as number[]) : undefined;
  };
  const withBase = rounds.every((round) => round.has(peerSegment(base, callers)));
  return [
    name,
    version,
    formatSummary(
      over(({ perSecond }) => perSecond),
      formatRate,
    ),
    withBase ? formatSummary(summarise(ratiosTo(rounds, name, base, callers)), formatRatio) : "–",
    flushes,
    formatSummary(
      over(({ p50Ms }) => p50Ms),
      formatMs,
    ),
    formatSummary(
      over(({ p99Ms }) => p99Ms),
      formatMs,
    ),
  ];
}
