// The rows of the accept scenario as tables that people read.

import { summarise } from "../method/statistics.ts";
import { formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import { latencyRow, type RoundFigures, throughputRow } from "./accept-figures.ts";
import type { SendVariant } from "./accept-world.ts";
import type { MarkdownTable } from "./scenario.ts";

export function acceptTables(
  rounds: readonly RoundFigures[],
  variants: readonly SendVariant[],
): readonly MarkdownTable[] {
  const throughput = variants.map((variant) => throughputRow(rounds, variant));
  const latency = variants.map((variant) => latencyRow(rounds, variant));
  return [
    {
      caption: "64 callers, operations per second",
      columns: [
        "sends",
        "claudemesh",
        "HTTP route alone",
        "SQLite alone",
        "sealing alone",
        "D",
        "claudemesh ÷ D",
        "p50 ms",
        "p99 ms",
      ],
      rows: throughput.map((row) => [
        row.variant,
        formatSummary(row.perSecond, formatRate),
        formatSummary(row.layers.http, formatRate),
        formatSummary(row.layers.sqlite, formatRate),
        formatSummary(row.layers.sealing, formatRate),
        formatSummary(row.bound, formatRate),
        formatSummary(summarise(row.ratios), formatRatio),
        formatSummary(row.p50Ms, formatMs),
        formatSummary(row.p99Ms, formatMs),
      ]),
    },
    {
      caption: "1 caller, p50 in milliseconds",
      columns: [
        "sends",
        "claudemesh",
        "HTTP round trip alone",
        "one-row commit alone",
        "sealing alone",
        "sum",
        "claudemesh ÷ sum",
        "p99 ms",
        "accepts/s",
      ],
      rows: latency.map((row) => [
        row.variant,
        formatSummary(row.p50Ms, formatMs),
        formatSummary(row.layers.http, formatMs),
        formatSummary(row.layers.sqlite, formatMs),
        formatSummary(row.layers.sealing, formatMs),
        formatSummary(row.bound, formatMs),
        formatSummary(summarise(row.ratios), formatRatio),
        formatSummary(row.p99Ms, formatMs),
        formatSummary(row.perSecond, formatRate),
      ]),
    },
  ];
}
