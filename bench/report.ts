// How results look: numbers, tables, verdicts. Text in, text out; where it goes is decided in main.ts.
import type { JudgedBar } from "./method/bars.ts";
import type { MachineFacts } from "./method/machine.ts";
import { cleanRoundsMin, type RoundOutcome, stealShareMax } from "./method/rounds.ts";
import type { Summary } from "./method/statistics.ts";
import type { MarkdownTable, ScenarioReport } from "./scenarios/scenario.ts";

export const formatRate = (value: number): string => Math.round(value).toLocaleString("en-US");
export const formatMs = (value: number): string => value.toFixed(value < 1 ? 3 : 2);
export const formatRatio = (value: number): string => value.toFixed(2);

/** Median, and the quartiles in brackets. */
export function formatSummary(summary: Summary | undefined, format: (value: number) => string): string {
  if (summary === undefined) return "–";
  return `${format(summary.median)} (${format(summary.lowerQuartile)}–${format(summary.upperQuartile)})`;
}

function renderTable({ caption, columns, rows }: MarkdownTable): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = line(columns.map((_, at) => (at === 0 ? "---" : "--:")));
  return [`**${caption}**`, "", line(columns), rule, ...rows.map(line)].join("\n");
}

export function describeRound({ round, stealShare, clean }: RoundOutcome<unknown>, rounds: number): string {
  const steal = stealShare === undefined ? "steal unknown" : `steal ${(stealShare * 100).toFixed(1)} %`;
  return `round ${round} of ${rounds}: ${steal}${clean ? "" : ", dropped"}`;
}

function describeRounds(outcomes: readonly RoundOutcome<unknown>[]): string {
  const clean = outcomes.filter((outcome) => outcome.clean).length;
  const dropped = outcomes.length - clean;
  const unknown = outcomes.some(({ stealShare }) => stealShare === undefined)
    ? "; this system does not tell steal"
    : "";
  const counted = `${clean} of ${outcomes.length} rounds count; ${dropped} dropped for CPU steal above ${stealShareMax * 100} %${unknown}.`;
  return clean < cleanRoundsMin
    ? `inconclusive: ${counted} At least ${cleanRoundsMin} clean rounds are needed.`
    : counted;
}

function describeBar(bar: JudgedBar): string {
  const limit = `${bar.kind === "at_least" ? "≥" : "≤"} ${bar.limit}`;
  return `${bar.verdict}: ${bar.name} ${limit}; measured ${formatSummary(bar.ratio, formatRatio)}`;
}

function describeMachine(machine: MachineFacts): readonly string[] {
  const { cpu, cores, memoryGiB, kernel, node, sqlite, fastify, fileSystem, loadAverageBefore } = machine;
  return [
    `${cpu}, ${cores} cores, ${memoryGiB} GiB; ${kernel}; files on ${fileSystem}`,
    `Node ${node}, SQLite ${sqlite} (node:sqlite), Fastify ${fastify}`,
    `load average before the run: ${loadAverageBefore.toFixed(2)}; what else runs on these cores is in the figures`,
  ];
}

const list = (items: readonly string[]): string => items.map((item) => `- ${item}`).join("\n");

/** Everything about one scenario, as a section of Markdown; `images` stand behind the tables. */
export function renderReport(report: ScenarioReport, images: readonly string[] = []): string {
  const rounds = describeRounds(report.outcomes);
  const lengthSeconds = report.segmentMs / 1_000;
  return [
    `## ${report.title}`,
    list(report.conditions),
    ...report.tables.map(renderTable),
    ...images,
    `Medians over rounds, quartiles in brackets; every ratio is formed within its round. Each figure of a round is ${lengthSeconds} s of measuring. ${rounds}`,
    ...(report.bars.length === 0 ? [] : [list(report.bars.map((bar) => `**${describeBar(bar)}**`))]),
    "Durability:",
    list(report.durability),
    "Machine:",
    list(describeMachine(report.machine)),
  ].join("\n\n");
}

/** What the file in bench/out holds: every figure of every round, so that nothing has to be believed. */
export function reportAsJson(report: ScenarioReport): string {
  const outcomes = report.outcomes.map(({ figures, ...outcome }) => ({
    ...outcome,
    figures: Object.fromEntries(figures),
  }));
  return `${JSON.stringify({ ...report, outcomes }, undefined, 2)}\n`;
}
