// The rows of the broker's accepts as tables that people read.
import { summarise } from "../method/statistics.ts";
import { formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import type { RoundFigures } from "./accept-figures.ts";
import {
  apiRow,
  inProcessRow,
  type LayerRow,
  type Shape,
  type Store,
  shapes,
  transports,
} from "./broker-accept-figures.ts";
import type { MarkdownTable } from "./scenario.ts";

const storeNames = { sqlite: "SQLite", postgres: "PostgreSQL" } as const;
const transportNames = { websocket: "WebSocket", http: "HTTP" } as const;

const describe = ({ outstanding, meshes }: Shape) => `${outstanding}, ${meshes === 1 ? "1 mesh" : `${meshes} meshes`}`;

function cells({ perSecond, bound, ratios, p50Ms, p99Ms }: LayerRow, layers: readonly string[]): string[] {
  return [
    formatSummary(perSecond, formatRate),
    ...layers,
    formatSummary(bound, formatRate),
    formatSummary(summarise(ratios), formatRatio),
    formatSummary(p50Ms, formatMs),
    formatSummary(p99Ms, formatMs),
  ];
}

export function brokerAcceptTables(rounds: readonly RoundFigures[], kinds: readonly Store[]): MarkdownTable[] {
  const inProcess = kinds.flatMap((kind) =>
    shapes.map((shape) => {
      const row = inProcessRow(rounds, kind, shape);
      return [storeNames[kind], describe(shape), ...cells(row, [formatSummary(row.layers[1], formatRate)])];
    }),
  );
  const api = kinds.flatMap((kind) =>
    transports.flatMap((transport) =>
      shapes.map((shape) => {
        const row = apiRow(rounds, kind, transport, shape);
        const [alone, raw, limiter] = [0, 1, 2].map((at) => formatSummary(row.layers[at], formatRate));
        const name = `${storeNames[kind]}, ${transportNames[transport]}`;
        return [name, describe(shape), ...cells(row, [alone ?? "", raw ?? "", limiter ?? ""])];
      }),
    ),
  );
  return [
    {
      caption: "In process, accepts per second",
      columns: ["store", "outstanding", "claudemesh", "limiter alone", "raw", "claudemesh ÷ raw", "p50 ms", "p99 ms"],
      rows: inProcess,
    },
    {
      caption: "Over the API, accepts per second",
      columns: [
        "store and transport",
        "outstanding",
        "claudemesh",
        "transport alone",
        "raw",
        "limiter alone",
        "D",
        "claudemesh ÷ D",
        "p50 ms",
        "p99 ms",
      ],
      rows: api,
    },
  ];
}
