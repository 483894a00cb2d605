// Names of the segments of the spaces' scenario, and its rows: commits beside the same rows in a bare loop or by pgbench, and
// reads of a long history beside a short one. Ratios are formed within a round. No measuring here.
import { summarise } from "../method/statistics.ts";
import { formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import type { RoundFigures } from "./accept-figures.ts";
import { figuresOf, type Store } from "./broker-accept-figures.ts";
import type { MarkdownTable } from "./scenario.ts";

export const manySessions = 64;
const oneSession = 1;
export const sessionCounts = [manySessions, oneSession] as const;
export type Sessions = (typeof sessionCounts)[number];
export type HistoryLength = "short" | "long";

export const rowsSegment = (store: Store, sessions: Sessions) => `rows, ${store}, ${sessions}`;
export const commitsSegment = (store: Store, sessions: Sessions) => `commits, ${store}, ${sessions}`;
export const contendedSegment = (store: Store) => `commits to one entity, ${store}`;
export const historySegment = (store: Store, length: HistoryLength) => `read of a ${length} history, ${store}`;

/** Commits to the same rows without a service. */
export function commitRatios(rounds: readonly RoundFigures[], store: Store, sessions: Sessions): number[] {
  return ratios(rounds, commitsSegment(store, sessions), rowsSegment(store, sessions));
}

/** How many times as long a read of the long history takes. */
export function historyRatios(rounds: readonly RoundFigures[], store: Store): number[] {
  return ratios(rounds, historySegment(store, "short"), historySegment(store, "long"));
}

function ratios(rounds: readonly RoundFigures[], over: string, under: string): number[] {
  return rounds.map((round) => figuresOf(round, over).perSecond / figuresOf(round, under).perSecond);
}

const storeNames = { sqlite: "SQLite", postgres: "PostgreSQL" } as const;
const rowsNames = { sqlite: "batched inserts in a bare loop", postgres: "pgbench" } as const;

export function spacesTables(
  rounds: readonly RoundFigures[],
  kinds: readonly Store[],
  revisions: { readonly short: string; readonly long: string },
): MarkdownTable[] {
  const rate = (segment: string) =>
    formatSummary(summarise(rounds.map((round) => figuresOf(round, segment).perSecond)), formatRate);
  const p50 = (segment: string) =>
    formatSummary(summarise(rounds.map((round) => figuresOf(round, segment).p50Ms)), formatMs);
  const ratio = (values: readonly number[]) => formatSummary(summarise(values), formatRatio);
  return [
    {
      caption: "Commits to one space, in process, each session on an entity of its own, per second",
      columns: ["store", "sessions", "commits", "p50 ms", "same rows", "same rows by", "commits ÷ rows"],
      rows: kinds.flatMap((kind) =>
        sessionCounts.map((sessions) => [
          storeNames[kind],
          String(sessions),
          rate(commitsSegment(kind, sessions)),
          p50(commitsSegment(kind, sessions)),
          rate(rowsSegment(kind, sessions)),
          rowsNames[kind],
          ratio(commitRatios(rounds, kind, sessions)),
        ]),
      ),
    },
    {
      caption: `${manySessions} sessions that all write one field of one entity, and try again after each conflict`,
      columns: ["store", "accepted per second", "p50 ms until accepted"],
      rows: kinds.map((kind) => [storeNames[kind], rate(contendedSegment(kind)), p50(contendedSegment(kind))]),
    },
    {
      caption: "Reads of an entity as of a seq drawn from its history, one after the other, per second",
      columns: ["store", `${revisions.short} revisions`, `${revisions.long} revisions`, "short ÷ long"],
      rows: kinds.map((kind) => [
        storeNames[kind],
        rate(historySegment(kind, "short")),
        rate(historySegment(kind, "long")),
        ratio(historyRatios(rounds, kind)),
      ]),
    },
  ];
}
