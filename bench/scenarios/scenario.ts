// What every scenario is to the command line and to the report.
import type { JudgedBar } from "../method/bars.ts";
import type { MachineFacts } from "../method/machine.ts";
import type { RoundOutcome } from "../method/rounds.ts";
import type { Plot } from "../plots/plot.ts";
import type { Closing } from "../processes/closing.ts";

export type RunSettings = {
  readonly rounds: number;
  readonly segmentMs: number;
  readonly warmUpMs: number;
  /** The most rows that a scenario about growth writes. */
  readonly rowsMax: number;
  /** For files that are flushed; on the file system that the report names. */
  readonly folder: string;
  readonly closing: Closing;
  readonly progress: (line: string) => void;
};

export type MarkdownTable = {
  readonly caption: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
};

export type ScenarioReport = {
  readonly scenario: string;
  readonly title: string;
  /** What was sent, to whom, and under which conditions. */
  readonly conditions: readonly string[];
  /** What each party does before it answers, with flushes per operation. */
  readonly durability: readonly string[];
  readonly machine: MachineFacts;
  readonly segmentMs: number;
  readonly outcomes: readonly RoundOutcome<object>[];
  /** Empty when too few rounds were clean. */
  readonly tables: readonly MarkdownTable[];
  /** What is better seen than read; its promises are drawn without being asked for. */
  readonly plots?: readonly Plot[];
  readonly bars: readonly JudgedBar[];
};

export type Scenario = {
  readonly name: string;
  readonly summary: string;
  /** Runs when it is named, or with --all: what takes long, or needs servers beside the product. */
  readonly byName?: boolean;
  readonly run: (settings: RunSettings) => Promise<ScenarioReport>;
};
