// Names of the segments of broker-retry, and its rows: a retry beside a route that does nothing, and a large store beside
// a small one. Ratios are formed within a round. No measuring here.
import { summarise } from "../method/statistics.ts";
import { formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import type { RoundFigures } from "./accept-figures.ts";
import { figuresOf, type Store } from "./broker-accept-figures.ts";
import type { MarkdownTable } from "./scenario.ts";

export const works = ["accept", "retry over HTTP", "retry"] as const;
export type Work = (typeof works)[number];
export const idOrders = ["time_ordered", "random"] as const;
export type Ids = (typeof idOrders)[number];
export type Size = "small" | "large";

export const noopSegment = (store: Store) => `no-op over HTTP, ${store}`;
/** Beside the no-op; on the small store. */
export const retrySegment = (store: Store) => `retry beside the no-op, ${store}`;
export const sizeSegment = (store: Store, work: Work, ids: Ids, size: Size) => `${work}, ${ids}, ${store}, ${size}`;

export function retryRatios(rounds: readonly RoundFigures[], store: Store): number[] {
  return ratios(rounds, retrySegment(store), noopSegment(store));
}

/** How many times as long one takes with the large store. */
export function growth(rounds: readonly RoundFigures[], store: Store, work: Work, ids: Ids): number[] {
  return ratios(rounds, sizeSegment(store, work, ids, "small"), sizeSegment(store, work, ids, "large"));
}

function ratios(rounds: readonly RoundFigures[], over: string, under: string): number[] {
  return rounds.map((round) => figuresOf(round, over).perSecond / figuresOf(round, under).perSecond);
}

const storeNames = { sqlite: "SQLite", postgres: "PostgreSQL" } as const;
const idNames = { time_ordered: "time-ordered", random: "random" } as const;

export function retryTables(
  rounds: readonly RoundFigures[],
  kinds: readonly Store[],
  rows: { readonly small: string; readonly large: string },
): MarkdownTable[] {
  const rate = (segment: string) =>
    formatSummary(summarise(rounds.map((round) => figuresOf(round, segment).perSecond)), formatRate);
  const p50 = (segment: string) =>
    formatSummary(summarise(rounds.map((round) => figuresOf(round, segment).p50Ms)), formatMs);
  return [
    {
      caption: "Retries of committed ids over HTTP at 64 callers, per second",
      columns: ["store", "retry", "authenticated no-op", "retry ÷ no-op", "retry p50 ms", "no-op p50 ms"],
      rows: kinds.map((kind) => [
        storeNames[kind],
        rate(retrySegment(kind)),
        rate(noopSegment(kind)),
        formatSummary(summarise(retryRatios(rounds, kind)), formatRatio),
        p50(retrySegment(kind)),
        p50(noopSegment(kind)),
      ]),
    },
    {
      caption: "With 64 callers, in process unless over HTTP, per second",
      columns: ["store", "what", "ids", `${rows.small} rows`, `${rows.large} rows`, "small ÷ large"],
      rows: kinds.flatMap((kind) =>
        idOrders.flatMap((ids) =>
          works.map((work) => [
            storeNames[kind],
            work,
            idNames[ids],
            rate(sizeSegment(kind, work, ids, "small")),
            rate(sizeSegment(kind, work, ids, "large")),
            formatSummary(summarise(growth(rounds, kind, work, ids)), formatRatio),
          ]),
        ),
      ),
    },
  ];
}
