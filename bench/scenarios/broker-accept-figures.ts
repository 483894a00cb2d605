// From the figures of the clean rounds to the rows of the broker's report: what its storage and its transports alone
// allow, and how near it comes. Every ratio is formed within its round. No measuring here.
import { combineRates, type Summary, summarise } from "../method/statistics.ts";
import type { Figures, RoundFigures } from "./accept-figures.ts";

export const outstandings = [64, 512] as const;
export const meshCounts = [1, 8] as const;
export const transports = ["websocket", "http"] as const;
export type Transport = (typeof transports)[number];
export type Store = "sqlite" | "postgres";

/** One way of sending: so many sends outstanding, over so many meshes. */
export type Shape = { readonly outstanding: number; readonly meshes: number };

export const shapes: readonly Shape[] = meshCounts.flatMap((meshes) =>
  outstandings.map((outstanding) => ({ outstanding, meshes })),
);

const named = ({ outstanding, meshes }: Shape) => `${outstanding} over ${meshes}`;
export const rawSegment = (store: Store, shape: Shape) => `raw ${store}, ${named(shape)}`;
export const limiterSegment = (shape: Shape) => `limiter, ${named(shape)}`;
export const oursSegment = (store: Store, shape: Shape) => `ours in process ${store}, ${named(shape)}`;
export const transportSegment = (transport: Transport, outstanding: number) => `${transport} alone, ${outstanding}`;
export const apiSegment = (store: Store, transport: Transport, shape: Shape) =>
  `ours ${transport} ${store}, ${named(shape)}`;

export type LayerRow = {
  readonly perSecond: Summary;
  readonly p50Ms: Summary;
  readonly p99Ms: Summary;
  readonly layers: readonly (Summary | undefined)[];
  readonly bound: Summary;
  readonly ratios: readonly number[];
};

/** Without a transport: storage and, where it is elsewhere, the limiter; `bound` is the storage alone. */
export function inProcessRow(rounds: readonly RoundFigures[], store: Store, shape: Shape): LayerRow {
  const limiter = store === "postgres" ? [limiterSegment(shape)] : [];
  return compare(rounds, oursSegment(store, shape), [rawSegment(store, shape), ...limiter], ([raw = 0]) => raw);
}

/** Through the API: transport, storage and limiter follow each other on the same cores, and `bound` is D. */
export function apiRow(rounds: readonly RoundFigures[], store: Store, transport: Transport, shape: Shape): LayerRow {
  const layers = [transportSegment(transport, shape.outstanding), rawSegment(store, shape)];
  if (store === "postgres") layers.push(limiterSegment(shape));
  return compare(rounds, apiSegment(store, transport, shape), layers, combineRates);
}

function compare(
  rounds: readonly RoundFigures[],
  ours: string,
  layers: readonly string[],
  combine: (rates: readonly number[]) => number,
): LayerRow {
  const own = rounds.map((round) => figuresOf(round, ours));
  const alone = layers.map((layer) => rounds.map((round) => figuresOf(round, layer).perSecond));
  const bounds = rounds.map((_, at) => combine(alone.map((rates) => rates[at] ?? 0)));
  return {
    perSecond: summarise(own.map(({ perSecond }) => perSecond)),
    p50Ms: summarise(own.map(({ p50Ms }) => p50Ms)),
    p99Ms: summarise(own.map(({ p99Ms }) => p99Ms)),
    layers: alone.map(summarise),
    bound: summarise(bounds),
    ratios: own.map(({ perSecond }, at) => perSecond / (bounds[at] ?? Number.NaN)),
  };
}

export function figuresOf(round: RoundFigures, segment: string): Figures {
  const figures = round.get(segment);
  if (figures === undefined) throw new Error(`the round has no segment called "${segment}"`);
  return figures;
}
