// How far and how fast a message goes: to a thousand connected subscribers, and from one daemon to another; and what
// connections cost that do nothing. Figures without a bar.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import type { StoreKind } from "../broker/store-location.ts";
import { findStores } from "../broker/store-pair.ts";
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, runRounds, type Segment } from "../method/rounds.ts";
import { summarise } from "../method/statistics.ts";
import { readCpuTimes } from "../method/steal.ts";
import { describeRound, formatMs, formatRate, formatSummary } from "../report.ts";
import { type ReachFigures as Figures, idleFirst, ReachWorld, subscribers } from "./broker-reach-world.ts";
import type { MarkdownTable, RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

/** As many sockets as one broker takes. */
const idleWanted = 10_000;
/** Files that a process needs beside its sockets. */
const otherFiles = 200;
const rates = [1, 1_000] as const;
/** At one message per second, so many are needed for a median. */
const slowSegments = 5;

const fanOutSegment = (kind: StoreKind) => `one message to ${subscribers} subscribers, ${kind}`;
const idleSegment = "idle connections";
const pairSegment = (perSecond: number) => `daemon to daemon, ${perSecond}/s`;

export const brokerReachScenario: Scenario = {
  name: "broker-reach",
  summary: "one message to 1,000 subscribers, 10,000 idle connections, daemon to daemon at 1 and 1,000 per second",
  byName: true,
  run: runBrokerReach,
};

async function runBrokerReach(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  const idle = Math.min(idleWanted, openFilesLimit() - otherFiles);
  const outcomes = await runRounds<ReachWorld, Figures>({
    rounds: settings.rounds,
    open: (round) => ReachWorld.open(settings, stores, join(settings.folder, `r${round}`)),
    segments: segmentsFor(stores.kinds, idle, settings.segmentMs),
    close: (world) => world.close(),
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  const rounds = cleanRounds(outcomes)?.map(({ figures }) => figures);
  return {
    scenario: brokerReachScenario.name,
    title: "Reach of the broker",
    conditions: [
      `A message of 1,024 bytes to a topic; ${formatRate(subscribers)} members are subscribed and connected, each acknowledges what it gets. Timed from the send to the answer of the last acknowledgement; all sockets are in one process beside the broker.`,
      `${formatRate(idle)} sockets of these members that are connected as daemons and say nothing${idle < idleWanted ? ` (this system's limit of open files forbids ${formatRate(idleWanted)})` : ""}: growth of the broker's resident memory from the first ${idleFirst} on, divided by the others.`,
      "Daemon to daemon: a sealed direct message of 1,024 bytes through one daemon's socket, the broker on SQLite, and the other daemon's event stream, all on this machine. The median comes from few messages where there is one per second.",
    ],
    durability: [
      "Every step flushes before it answers: the sender's outbox, the broker's accept, the receiver's inbox and the settled delivery.",
    ],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : [tableOf(rounds, stores.kinds, idle)],
    bars: [],
  };
}

/** Of this process, and so of those it starts: the kernel's own number. */
function openFilesLimit(): number {
  if (process.platform !== "linux") return 1_024;
  const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
  return soft === undefined ? idleWanted + otherFiles : Number(soft);
}

function segmentsFor(kinds: readonly StoreKind[], idle: number, segmentMs: number): Segment<ReachWorld, Figures>[] {
  return [
    ...kinds.map((kind) => ({ name: fanOutSegment(kind), measure: (world: ReachWorld) => world.fanOut(kind) })),
    ...rates.map((perSecond) => ({
      name: pairSegment(perSecond),
      measure: (world: ReachWorld) => world.pair(perSecond, perSecond === 1 ? slowSegments * segmentMs : segmentMs),
    })),
    { name: idleSegment, measure: (world) => world.idle(idle) },
  ];
}

function tableOf(rounds: readonly ReadonlyMap<string, Figures>[], kinds: readonly StoreKind[], idle: number) {
  const over = (segment: string, figure: string, format: (value: number) => string) =>
    formatSummary(summarise(rounds.map((round) => round.get(segment)?.[figure] ?? Number.NaN)), format);
  const fanOut = kinds.map((kind) => [
    `one message to ${formatRate(subscribers)} subscribers (${kind === "sqlite" ? "SQLite" : "PostgreSQL"})`,
    `accepted after ${over(fanOutSegment(kind), "acceptedMs", formatMs)} ms`,
    `last acknowledgement after ${over(fanOutSegment(kind), "lastAckMs", formatMs)} ms`,
  ]);
  const pair = rates.map((perSecond) => [
    `daemon to daemon at ${formatRate(perSecond)} per second`,
    `p50 ${over(pairSegment(perSecond), "p50Ms", formatMs)} ms`,
    `p99 ${over(pairSegment(perSecond), "p99Ms", formatMs)} ms; ${over(pairSegment(perSecond), "perSecond", formatRate)} per second reached`,
  ]);
  const kib = over(idleSegment, "bytesEach", (value) => (value / 1_024).toFixed(1));
  const table: MarkdownTable = {
    caption: "Reach, reported without a bar",
    columns: ["what", "", ""],
    rows: [
      ...fanOut,
      ...pair,
      [
        `${formatRate(idle)} idle connections`,
        `${kib} KiB each`,
        `${over(idleSegment, "connectMs", formatRate)} ms to connect all`,
      ],
    ],
  };
  return table;
}
