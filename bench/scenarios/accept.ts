// The first scenario: how many sends the daemon accepts durably while its broker is away, and how long one takes,
// against the layers that such an accept cannot do without.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { judgeBar } from "../method/bars.ts";
import { countFlushes } from "../method/flushes.ts";
import { isBusy, readMachineFacts } from "../method/machine.ts";
import type { Segment } from "../method/rounds.ts";
import {
  type Callers,
  type Figures,
  httpSegment,
  manyCallers,
  oneCaller,
  oursSegment,
  type RoundFigures,
  sealingSegment,
  sqliteSegment,
  throughputRow,
} from "./accept-figures.ts";
import { acceptTables } from "./accept-tables.ts";
import {
  AcceptWorld,
  createVariants,
  DaemonUnderLoad,
  type LoadProcess,
  messageBytes,
  type SendVariant,
  startLoad,
  topicInOrder,
} from "./accept-world.ts";
import { measureRounds } from "./measured-rounds.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const throughputBar = { name: "accepts/s at 64 callers ÷ D", kind: "at_least", limit: 0.75 } as const;

export const acceptScenario: Scenario = {
  name: "accept",
  summary: "durable accepts of the daemon's POST /v1/send at 1 and 64 callers, broker away",
  run: runAccept,
};

async function runAccept(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  if (isBusy(machine))
    settings.progress(`load average ${machine.loadAverageBefore}: something else runs here, and shows`);
  const load = await startLoad(settings.closing);
  const variants = createVariants();
  const { outcomes, rounds } = await measureRounds<AcceptWorld, Figures>(settings, {
    open: (round) => AcceptWorld.open(settings, load, join(settings.folder, `r${round}`)),
    segments: segmentsFor(variants, settings.segmentMs),
    close: (world) => world.close(),
  });
  const durability = await describeDurability(settings, load);
  return {
    scenario: acceptScenario.name,
    title: "Durable accepts of the local daemon",
    conditions: [
      `POST /v1/send over the Unix socket, a message of ${messageBytes} bytes, one request in flight per caller, connections kept open.`,
      "The broker is away: nothing listens at its address, and every row stays pending.",
      "Every answer is a 202 for a new row; after each round the daemon is killed (SIGKILL) and its outbox.db holds exactly the accepted rows.",
    ],
    durability,
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : acceptTables(rounds, variants),
    bars: judgeBars(rounds),
  };
}

function segmentsFor(variants: readonly SendVariant[], segmentMs: number): Segment<AcceptWorld, Figures>[] {
  const at = (callers: Callers): Segment<AcceptWorld, Figures>[] => [
    { name: httpSegment(callers), measure: (world) => world.http(callers, segmentMs) },
    ...variants.flatMap((variant) => [
      {
        name: sqliteSegment(variant.name, callers),
        measure: (world: AcceptWorld) => world.rows(variant, callers, segmentMs),
      },
      {
        name: oursSegment(variant.name, callers),
        measure: (world: AcceptWorld) => world.daemon.accept(variant, callers, segmentMs),
      },
    ]),
  ];
  return [
    ...at(manyCallers),
    ...at(oneCaller),
    { name: sealingSegment, measure: (world) => world.sealing(segmentMs / 4) },
  ];
}

function judgeBars(rounds: readonly RoundFigures[] | undefined) {
  return [judgeBar(throughputBar, rounds && throughputRow(rounds, topicInOrder).ratios)];
}

async function describeDurability(settings: RunSettings, load: LoadProcess): Promise<string[]> {
  const folder = join(settings.folder, "flushes");
  mkdirSync(folder);
  const daemon = await DaemonUnderLoad.start(join(folder, "home"), load, settings.closing);
  const perAccept: string[] = [];
  for (const callers of [oneCaller, manyCallers]) {
    const work = () => daemon.accept(topicInOrder, callers, settings.segmentMs / 2);
    const counted = await countFlushes(daemon.pid, join(folder, `trace-${callers}`), work);
    if (counted === undefined) continue;
    const flushes = counted.flushes / counted.result.accepted;
    perAccept.push(`${flushes.toFixed(2)} per accept at ${callers} ${callers === 1 ? "caller" : "callers"}`);
  }
  await daemon.killAndVerify();
  const flushes =
    perAccept.length > 0
      ? `Flushes counted with strace, outside the timed segments: ${perAccept.join(", ")}.`
      : "Flushes by reasoning, as strace could not look: one per COMMIT, shared by the accepts in it, and those of checkpoints.";
  return [
    `claudemesh daemon: SQLite in WAL mode with synchronous=FULL; a 202 leaves after the COMMIT that holds its row has returned. ${flushes}`,
    "SQLite layer: the same settings and the same migration, one COMMIT per 64 rows or per row; one flush per COMMIT, and those of checkpoints.",
    "HTTP layer: no storage, no flush.",
  ];
}
