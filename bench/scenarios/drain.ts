// Does a daemon keep up with its broker? Sends come at seven tenths of the rate at which the broker accepts them over its
// own socket; two seconds after the last one the outbox must be empty.
import { setTimeout as sleep } from "node:timers/promises";
import { judgeBar } from "../method/bars.ts";
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, runRounds } from "../method/rounds.ts";
import { summarise } from "../method/statistics.ts";
import { readCpuTimes } from "../method/steal.ts";
import { describeRound, formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import { startLoad } from "./accept-world.ts";
import { countOpenRows, message, openMesh, sendOrder, startSocket, topic } from "./mesh-world.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const share = 0.7;
const rateBar = { name: `sends/s taken ÷ (${share} × broker's own rate)`, kind: "at_least", limit: 0.97 } as const;
const emptyBar = { name: "outbox rows 2 s after the last send", kind: "at_most", limit: 0 } as const;
const callers = 64;
const inFlight = 256;

type Figures = { readonly broker: number; readonly taken: number; readonly left: number; readonly p99Ms: number };

export const drainScenario: Scenario = {
  name: "drain",
  byName: true,
  summary: "sends at 0.7 × the broker's own accept rate; the outbox is empty two seconds after the last one",
  run: runDrain,
};

async function runDrain(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const { closing, segmentMs } = settings;
  const [load, socket] = await Promise.all([startLoad(closing), startSocket(closing)]);
  const { world, peers } = await openMesh(settings, ["sender", "direct"]);
  const [sender, direct] = peers;
  if (sender === undefined || direct === undefined) throw new Error("the mesh has no peers");
  const loadMs = segmentMs < 2_000 ? 10_000 : 60_000;
  const overSocket = (durationMs: number) =>
    socket.ask({ home: direct.home, mesh: world.mesh, topic, body: message, inFlight, durationMs });
  const measure = async (): Promise<Figures> => {
    const { perSecond: broker } = await overSocket(segmentMs);
    const { perSecond: taken, p99Ms } = await load.ask(sendOrder(sender, callers, loadMs, broker * share));
    await sleep(2_000);
    return { broker, taken, p99Ms, left: countOpenRows(sender) };
  };
  await overSocket(settings.warmUpMs);
  await load.ask(sendOrder(sender, callers, settings.warmUpMs));
  const outcomes = await runRounds<undefined, Figures>({
    rounds: settings.rounds,
    open: async () => undefined,
    segments: [{ name: "drain", measure }],
    close: async () => undefined,
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  const rounds = cleanRounds(outcomes)?.flatMap(({ figures }) => [...figures.values()]);
  return {
    scenario: drainScenario.name,
    title: "Keeping up with the broker",
    conditions: [
      `Each round: the broker's rate over one WebSocket with ${inFlight} sends in flight for ${segmentMs / 1_000} s, then ${share} of it to the daemon for ${loadMs / 1_000} s from ${callers} callers; messages of ${message.length} bytes to a topic without subscribers.`,
      "Broker, daemon and load share the machine's cores; the broker's own rate is measured without a daemon at work.",
    ],
    durability: ["Both flush before they answer: the daemon its outbox row, the broker its accept transaction."],
    machine,
    segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : [tableOf(rounds)],
    bars: [
      judgeBar(
        rateBar,
        rounds?.map(({ broker, taken }) => taken / (broker * share)),
      ),
      judgeBar(
        emptyBar,
        rounds?.map(({ left }) => left),
      ),
    ],
  };
}

function tableOf(rounds: readonly Figures[]) {
  const over = (pick: (figures: Figures) => number) => summarise(rounds.map(pick));
  return {
    caption: "Sends through a daemon, per second",
    columns: ["broker alone", "taken by the daemon", "taken ÷ broker alone", "p99 ms", "rows left after 2 s"],
    rows: [
      [
        formatSummary(
          over(({ broker }) => broker),
          formatRate,
        ),
        formatSummary(
          over(({ taken }) => taken),
          formatRate,
        ),
        formatSummary(
          over(({ broker, taken }) => taken / broker),
          formatRatio,
        ),
        formatSummary(
          over(({ p99Ms }) => p99Ms),
          formatMs,
        ),
        formatSummary(
          over(({ left }) => left),
          formatRate,
        ),
      ],
    ],
  };
}
