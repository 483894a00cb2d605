// From the figures of the clean rounds to the rows of the report: what the layers alone allow, and how near we come.
// Every ratio is formed within its round, where both sides met the same machine. No measuring here.
import { combineRates, type Summary, summarise } from "../method/statistics.ts";

export const manyCallers = 64;
export const oneCaller = 1;
export type Callers = typeof manyCallers | typeof oneCaller;

/** Of one segment: operations per second, and the time of one of them. */
export type Figures = { readonly perSecond: number; readonly p50Ms: number; readonly p99Ms: number };

export type SegmentName = string;
export type RoundFigures = ReadonlyMap<SegmentName, Figures>;

export const httpSegment = (callers: Callers): SegmentName => `http route, ${callers}`;
export const sqliteSegment = (variant: string, rows: Callers): SegmentName => `sqlite ${variant}, ${rows}`;
export const oursSegment = (variant: string, callers: Callers): SegmentName => `ours ${variant}, ${callers}`;
export const sealingSegment: SegmentName = "sealing";

export type AcceptRow = {
  readonly variant: string;
  readonly perSecond: Summary;
  readonly p50Ms: Summary;
  readonly p99Ms: Summary;
  /** The layers alone, in rates at many callers and in p50 at one. */
  readonly layers: Readonly<Record<"http" | "sqlite" | "sealing", Summary | undefined>>;
  readonly bound: Summary;
  /** Ours to the bound, round by round. */
  readonly ratios: readonly number[];
};

export type VariantLayers = { readonly name: string; readonly sealed: boolean };

/** Accepts per second, against the rate at which the layers alone could follow each other on one thread. */
export function throughputRow(rounds: readonly RoundFigures[], variant: VariantLayers): AcceptRow {
  return compareWithLayers(rounds, variant, manyCallers, (figures) => figures.perSecond, combineRates);
}

/** The median answer, against the layers' median times added up. */
export function latencyRow(rounds: readonly RoundFigures[], variant: VariantLayers): AcceptRow {
  const add = (times: readonly number[]) => times.reduce((sum, time) => sum + time, 0);
  return compareWithLayers(rounds, variant, oneCaller, (figures) => figures.p50Ms, add);
}

function compareWithLayers(
  rounds: readonly RoundFigures[],
  { name, sealed }: VariantLayers,
  callers: Callers,
  pick: (figures: Figures) => number,
  combine: (layers: readonly number[]) => number,
): AcceptRow {
  const ours = rounds.map((round) => figuresOf(round, oursSegment(name, callers)));
  const layer = (segment: SegmentName) => rounds.map((round) => pick(figuresOf(round, segment)));
  const http = layer(httpSegment(callers));
  const sqlite = layer(sqliteSegment(name, callers));
  const sealing = sealed ? layer(sealingSegment) : undefined;
  const bounds = rounds.map((_, at) =>
    combine([http, sqlite, ...(sealing ? [sealing] : [])].map((all) => all[at] ?? 0)),
  );
  return {
    variant: name,
    perSecond: summarise(ours.map((figures) => figures.perSecond)),
    p50Ms: summarise(ours.map((figures) => figures.p50Ms)),
    p99Ms: summarise(ours.map((figures) => figures.p99Ms)),
    layers: {
      http: summarise(http),
      sqlite: summarise(sqlite),
      sealing: sealing === undefined ? undefined : summarise(sealing),
    },
    bound: summarise(bounds),
    ratios: ours.map((figures, at) => pick(figures) / (bounds[at] ?? Number.NaN)),
  };
}

function figuresOf(round: RoundFigures, segment: SegmentName): Figures {
  const figures = round.get(segment);
  if (figures === undefined) throw new Error(`the round has no segment called "${segment}"`);
  return figures;
}
