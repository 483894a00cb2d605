// What the rounds of the drain scenario come to, as ratios and as a table of each way to drain.
import { combineRates, summarise } from "../method/statistics.ts";
import { formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import { type BacklogFigures, type LiveFigures, manyAtOnce } from "./drain-world.ts";

export type DrainRound = {
  /** Sends that come one by one. */
  readonly live: LiveFigures;
  /** Many in each request. */
  readonly many: LiveFigures;
  readonly backlog: BacklogFigures;
};

/** Each had the machine to itself, senders included; where both share it, their times add up. */
const boundOf = ({ live, backlog }: DrainRound) => combineRates([backlog.acceptAlone, live.broker]);

const none = "–";

const feeds = [
  { feed: "live", name: "one by one" },
  { feed: "many", name: `${manyAtOnce.sendsPerRequest} in a request` },
] as const;

export function drainTables(rounds: readonly DrainRound[]) {
  return [liveTable(rounds), backlogTable(rounds)];
}

function liveTable(rounds: readonly DrainRound[]) {
  const cell = cellsOver(rounds);
  return {
    caption: "Sends while rows leave, per second",
    columns: [
      "sends come",
      "broker alone",
      "taken by the daemon",
      "taken ÷ broker alone",
      "daemon's accept alone",
      "bound of the two",
      "taken ÷ bound",
      "p99 ms",
      "rows left after 2 s",
      "CPU µs per message: broker",
      "daemon",
      "load",
    ],
    rows: feeds.map(({ feed, name }) => [
      name,
      cell(({ [feed]: figures }) => figures.broker, formatRate),
      cell(({ [feed]: figures }) => figures.taken, formatRate),
      cell(({ [feed]: figures }) => figures.taken / figures.broker, formatRatio),
      // The bound is of accepts one by one.
      ...(feed === "many"
        ? [none, none, none]
        : [
            cell(({ backlog }) => backlog.acceptAlone, formatRate),
            cell(boundOf, formatRate),
            cell((round) => round.live.taken / boundOf(round), formatRatio),
          ]),
      cell(({ [feed]: figures }) => figures.p99Ms, formatMs),
      cell(({ [feed]: figures }) => figures.left, formatRate),
      ...(["broker", "daemon", "load"] as const).map((process) =>
        cell(({ [feed]: figures }) => microseconds(figures.cpu[process], figures.sends), formatRate),
      ),
    ]),
  };
}

function backlogTable(rounds: readonly DrainRound[]) {
  const cell = cellsOver(rounds);
  return {
    caption: "A backlog until it is empty, rows per second",
    columns: ["rows", "broker alone", "drained", "drained ÷ broker alone", "CPU µs per message: broker", "daemon"],
    rows: [
      [
        cell(({ backlog }) => backlog.rows, formatRate),
        cell(({ backlog }) => backlog.broker, formatRate),
        cell(({ backlog }) => backlog.drained, formatRate),
        cell(({ backlog }) => backlog.drained / backlog.broker, formatRatio),
        ...(["broker", "daemon"] as const).map((name) =>
          cell(({ backlog }) => microseconds(backlog.cpu[name], backlog.rows), formatRate),
        ),
      ],
    ],
  };
}

function microseconds(cpuSeconds: number | undefined, messages: number): number | undefined {
  return cpuSeconds === undefined ? undefined : (cpuSeconds / messages) * 1_000_000;
}

function cellsOver(rounds: readonly DrainRound[]) {
  return (pick: (round: DrainRound) => number | undefined, format: (value: number) => string): string => {
    const values = rounds.map(pick).filter((value) => value !== undefined);
    return formatSummary(values.length === 0 ? undefined : summarise(values), format);
  };
}
