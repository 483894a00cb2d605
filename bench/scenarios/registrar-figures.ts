// Names of the segments of the registrar's scenarios, and their rows: registrations beside their statements alone, a retry
// beside a route that does nothing, and a large store beside a small one. Ratios are formed within a round. No measuring
// here.
import { summarise } from "../method/statistics.ts";
import { formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import type { RoundFigures } from "./accept-figures.ts";
import { figuresOf, type Store } from "./broker-accept-figures.ts";
import type { MarkdownTable } from "./scenario.ts";

export const works = ["register", "retry over HTTP", "retry in process"] as const;
export type Work = (typeof works)[number];
export const sizes = ["small", "large"] as const;
export type Size = (typeof sizes)[number];

export const statementsSegment = (store: Store) => `statements alone, ${store}`;
export const registerSegment = (store: Store) => `register, ${store}`;
/** Approvals that another broker has taken. */
export const elsewhereSegment = (store: Store) => `register what was approved elsewhere, ${store}`;
export const noopSegment = (store: Store) => `no-op over HTTP, ${store}`;
export const retrySegment = (store: Store) => `retry over HTTP, ${store}`;
export const sizeSegment = (store: Store, work: Work, size: Size) => `${work}, ${store}, ${size}`;

function retryRatios(rounds: readonly RoundFigures[], store: Store): number[] {
  return ratios(rounds, retrySegment(store), noopSegment(store));
}

/** How many times as long one takes with the large store. */
export function growth(rounds: readonly RoundFigures[], store: Store, work: Work): number[] {
  return ratios(rounds, sizeSegment(store, work, "small"), sizeSegment(store, work, "large"));
}

function ratios(rounds: readonly RoundFigures[], over: string, under: string): number[] {
  return rounds.map((round) => figuresOf(round, over).perSecond / figuresOf(round, under).perSecond);
}

const storeNames = { sqlite: "SQLite", postgres: "PostgreSQL" } as const;

function cellsOf(rounds: readonly RoundFigures[]) {
  return {
    rate: (segment: string) =>
      formatSummary(summarise(rounds.map((round) => figuresOf(round, segment).perSecond)), formatRate),
    p50: (segment: string) =>
      formatSummary(summarise(rounds.map((round) => figuresOf(round, segment).p50Ms)), formatMs),
    ratio: (values: readonly number[]) => formatSummary(summarise(values), formatRatio),
  };
}

export function registrarTables(rounds: readonly RoundFigures[], kinds: readonly Store[]): MarkdownTable[] {
  const { rate, p50, ratio } = cellsOf(rounds);
  return [
    {
      caption: "Registrations in process at 64 callers, per second",
      columns: ["store", "approved", "registrations", "statements alone", "ours ÷ alone", "p50 ms"],
      rows: kinds.flatMap((kind) =>
        (
          [
            ["here", registerSegment(kind)],
            ["elsewhere", elsewhereSegment(kind)],
          ] as const
        ).map(([where, segment]) => [
          storeNames[kind],
          where,
          rate(segment),
          rate(statementsSegment(kind)),
          ratio(ratios(rounds, segment, statementsSegment(kind))),
          p50(segment),
        ]),
      ),
    },
    {
      caption: "Exact retries over HTTP at 64 callers, per second",
      columns: ["store", "retry", "authenticated no-op", "retry ÷ no-op", "retry p50 ms", "no-op p50 ms"],
      rows: kinds.map((kind) => [
        storeNames[kind],
        rate(retrySegment(kind)),
        rate(noopSegment(kind)),
        ratio(retryRatios(rounds, kind)),
        p50(retrySegment(kind)),
        p50(noopSegment(kind)),
      ]),
    },
  ];
}

export function growthTable(
  rounds: readonly RoundFigures[],
  kinds: readonly Store[],
  rows: Readonly<Record<Size, string>>,
): MarkdownTable {
  const { rate, ratio } = cellsOf(rounds);
  return {
    caption: "At 64 callers, per second",
    columns: ["store", "what", ...sizes.map((size) => `${rows[size]} registrations`), "small ÷ large"],
    rows: kinds.flatMap((kind) =>
      works.map((work) => [
        storeNames[kind],
        work,
        ...sizes.map((size) => rate(sizeSegment(kind, work, size))),
        ratio(growth(rounds, kind, work)),
      ]),
    ),
  };
}
