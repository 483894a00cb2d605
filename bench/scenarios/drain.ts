// Does a daemon keep up with its broker? Sends come at seven tenths of the rate at which the broker accepts them over its
// own socket, one by one or many in a request; two seconds after the last one the outbox must be empty. And a backlog, from
// a time without a broker, has to leave at that rate too.
// Why: docs/tuning-log.md#what-the-drain-bar-judges.
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, type RoundOutcome, runRounds } from "../method/rounds.ts";
import { readCpuTimes } from "../method/steal.ts";
import { describeRound } from "../report.ts";
import { startLoad } from "./accept-world.ts";
import { type DrainRound, drainTables } from "./drain-tables.ts";
import {
  type BacklogFigures,
  type DrainLengths,
  DrainWorld,
  inFlight,
  type LiveFigures,
  manyAtOnce,
  oneByOne,
  share,
} from "./drain-world.ts";
import { message, startSocket } from "./mesh-world.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const fullFeedMs = 60_000;
const quickFeedMs = 5_000;

type Figures = { readonly live: LiveFigures } | { readonly many: LiveFigures } | { readonly backlog: BacklogFigures };

export const drainScenario: Scenario = {
  name: "drain",
  byName: true,
  summary:
    "sends at 0.7 × the broker's own accept rate, and the outbox empty two seconds after; a backlog at that rate",
  run: runDrain,
};

async function runDrain(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const { closing, segmentMs, warmUpMs } = settings;
  const [load, socket] = await Promise.all([startLoad(closing), startSocket(closing)]);
  const quick = segmentMs < 2_000;
  const lengths = { feedMs: quick ? quickFeedMs : fullFeedMs, segmentMs, warmUpMs };
  const open = () => DrainWorld.open(settings, lengths, { load, socket });
  // A quick round is too short for new processes to get warm in; a long one leaves gigabytes behind.
  const shared = quick ? await open() : undefined;
  const outcomes = await runRounds<DrainWorld, Figures>({
    rounds: settings.rounds,
    open: async () => shared ?? open(),
    segments: [
      { name: "live", measure: async (world) => ({ live: await world.live(oneByOne) }) },
      { name: "many", measure: async (world) => ({ many: await world.live(manyAtOnce) }) },
      { name: "backlog", measure: async (world) => ({ backlog: await world.backlog() }) },
    ],
    close: async (world) => {
      if (world !== shared) await world.close();
    },
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  const rounds = cleanRounds(outcomes)?.map(joinSegments);
  return {
    scenario: drainScenario.name,
    title: "Keeping up with the broker",
    conditions: [
      `${quick ? "One broker and daemon for all rounds" : "Each round has a fresh broker and daemon"}, messages of ${message.length} bytes to a topic without subscribers.`,
      ...describeConditions(lengths),
    ],
    durability: ["Both flush before they answer: the daemon its outbox row, the broker its accept transaction."],
    machine,
    segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : drainTables(rounds),
    bars: [],
  };
}

function joinSegments({ figures }: RoundOutcome<Figures>): DrainRound {
  return Object.assign({}, ...figures.values()) as DrainRound;
}

function describeConditions({ segmentMs, feedMs }: DrainLengths): string[] {
  const seconds = (ms: number) => `${ms / 1_000} s`;
  return [
    `The broker's own rate is taken over one WebSocket with ${inFlight} sends in flight for ${seconds(segmentMs)}, without a daemon at work, before each of the three parts.`,
    `Sends while rows leave: ${share} of that rate to the daemon for ${seconds(feedMs)}, from ${oneByOne.callers} callers one by one (POST /v1/send), and from ${manyAtOnce.callers} callers with ${manyAtOnce.sendsPerRequest} sends in each request (POST /v1/send/many). A backlog: the broker is stopped, ${oneByOne.callers} callers send for ${seconds(feedMs / 2)} as fast as the daemon accepts, and a broker comes back on the same store; the rate is counted from the first row that the daemon records as done to the last.`,
    `"Drain at ${share} × the broker's rate, outbox empty 2 s after the end" is looked at in three ways: with rows coming in all the while, one by one or many in a request, which are the harder readings because callers and the daemon's own accepts share the cores with the broker, and with rows that only have to leave.`,
    "Broker, daemon and load share the machine's cores. The bound is 1 / (1 / daemon's accept alone + 1 / broker alone), each measured in the same round with the machine to itself and its senders: what passes through both where they share it, and somewhat more where one of them alone left a core idle at times. CPU is user and kernel time of each process with all its threads, divided by messages.",
  ];
}
