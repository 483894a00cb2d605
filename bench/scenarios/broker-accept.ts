// How many sends the broker accepts durably, in process and through its API, against the layers that such an accept
// cannot do without: the same rows in a bare loop, the limiter's script, and the transports without anything behind them.
// Why: docs/tuning-log.md#what-the-brokers-figures-stand-beside.
import { join } from "node:path";
import { countWalFlushes, findStores, type StoreMaker } from "../broker/store-pair.ts";
import { judgeBar } from "../method/bars.ts";
import { countFlushes } from "../method/flushes.ts";
import { isBusy, readMachineFacts } from "../method/machine.ts";
import { cleanRounds, runRounds, type Segment } from "../method/rounds.ts";
import { readCpuTimes } from "../method/steal.ts";
import { describeRound } from "../report.ts";
import type { Figures, RoundFigures } from "./accept-figures.ts";
import {
  apiRow,
  apiSegment,
  limiterSegment,
  oursSegment,
  outstandings,
  rawSegment,
  type Store,
  shapes,
  transportSegment,
  transports,
} from "./broker-accept-figures.ts";
import { brokerAcceptTables } from "./broker-accept-tables.ts";
import { type AnsweredFigures, type ApiLoad, BrokerAcceptWorld, startApiLoad } from "./broker-accept-world.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const apiLimit = 0.7;

export const brokerAcceptScenario: Scenario = {
  name: "broker-accept",
  summary: "durable accepts of the broker, in process and over its API, 64 and 512 outstanding, 1 and 8 meshes",
  byName: true,
  run: runBrokerAccept,
};

async function runBrokerAccept(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  if (isBusy(machine))
    settings.progress(`load average ${machine.loadAverageBefore}: something else runs here, and shows`);
  const stores = await findStores(settings.closing);
  const load = await startApiLoad(settings);
  const outcomes = await runRounds<BrokerAcceptWorld, Figures>({
    rounds: settings.rounds,
    open: (round) => BrokerAcceptWorld.open(settings, stores, load, join(settings.folder, `r${round}`)),
    segments: segmentsFor(stores.kinds, settings.segmentMs),
    close: (world) => world.close(),
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  const durability = await describeDurability(settings, stores, load);
  const rounds = cleanRounds(outcomes)?.map(({ figures }) => figures);
  return {
    scenario: brokerAcceptScenario.name,
    title: "Durable accepts of the broker",
    conditions: [
      "Sends of 1,024 bytes to a topic with three subscribers who are not connected: one claim, one message, one history row, three deliveries. Ids in the order of time. The limiter is on, its limit raised.",
      "In process: the broker's service on its own backend, so many callers with one send each. Raw: the same rows (SQLite) or the product's own statements (PostgreSQL) in a bare loop with as many sends per batch; on SQLite with the limiter's rows.",
      "API: a broker as a user starts it, its background work included; HTTP with one request per connection and a bearer token, WebSocket with all sends of a mesh on one socket. D: transport alone, raw and, with PostgreSQL, the limiter's script in Redis alone.",
      "After each round the brokers are killed (SIGKILL), and their stores hold exactly the sends that were answered 201.",
      ...(stores.kinds.includes("postgres") ? [] : ["PostgreSQL is skipped: no server, or no Redis, answers here."]),
    ],
    durability,
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : brokerAcceptTables(rounds, stores.kinds),
    bars: judgeBars(rounds, stores.kinds),
  };
}

type WorldSegment = Segment<BrokerAcceptWorld, Figures>;

function segmentsFor(kinds: readonly Store[], segmentMs: number): WorldSegment[] {
  const alone = outstandings.flatMap((outstanding) =>
    transports.map(
      (transport): WorldSegment => ({
        name: transportSegment(transport, outstanding),
        measure: (world) => world.transport(transport, outstanding, segmentMs),
      }),
    ),
  );
  // What is compared stands side by side.
  const onStores = shapes.flatMap((shape) =>
    kinds.flatMap((kind): WorldSegment[] => [
      { name: rawSegment(kind, shape), measure: (world) => world.rows(kind, shape, segmentMs) },
      { name: oursSegment(kind, shape), measure: (world) => world.inProcess(kind, shape, segmentMs) },
      ...transports.map((transport) => ({
        name: apiSegment(kind, transport, shape),
        measure: (world: BrokerAcceptWorld) => world.api(kind, transport, shape, segmentMs),
      })),
      ...(kind === "postgres"
        ? [{ name: limiterSegment(shape), measure: (world: BrokerAcceptWorld) => world.limiter(shape, segmentMs / 4) }]
        : []),
    ]),
  );
  return [...alone, ...onStores];
}

function judgeBars(rounds: readonly RoundFigures[] | undefined, kinds: readonly Store[]) {
  return kinds.flatMap((kind) =>
    outstandings.map((outstanding) =>
      judgeBar(
        { name: `${kind}, WebSocket, ${outstanding} outstanding: accepts/s ÷ D`, kind: "at_least", limit: apiLimit },
        rounds && apiRow(rounds, kind, "websocket", { outstanding, meshes: 1 }).ratios,
      ),
    ),
  );
}

async function describeDurability(settings: RunSettings, stores: StoreMaker, load: ApiLoad): Promise<string[]> {
  const world = await BrokerAcceptWorld.open(settings, stores, load, join(settings.folder, "flushes"));
  const lines: string[] = [];
  for (const kind of stores.kinds) {
    const perAccept: string[] = [];
    for (const outstanding of outstandings) {
      const send = () => world.api(kind, "websocket", { outstanding, meshes: 1 }, settings.segmentMs / 2);
      const flushes = await flushesPerAccept(world, kind, join(settings.folder, `trace-${outstanding}`), send);
      if (flushes !== undefined) perAccept.push(`${flushes.toFixed(3)} per accept at ${outstanding} outstanding`);
    }
    const counted = perAccept.length === 0 ? "not counted here" : perAccept.join(", ");
    lines.push(
      kind === "sqlite"
        ? `SQLite: WAL mode with synchronous=FULL, for the broker and for the raw loop; a 201 leaves after the COMMIT of its rows. Flushes of the broker's process, counted with strace outside the timed segments: ${counted}.`
        : `PostgreSQL: fsync and synchronous_commit on, for the broker and for the raw loop; a 201 leaves after the COMMIT of its rows. Flushes of the server's log (its own count, for all who use it): ${counted}. The limiter's Redis flushes nothing.`,
    );
  }
  await world.close();
  return [...lines, "Transports alone: no storage, no flush."];
}

async function flushesPerAccept(
  world: BrokerAcceptWorld,
  kind: Store,
  tracePath: string,
  send: () => Promise<AnsweredFigures>,
): Promise<number | undefined> {
  const { pid, location } = world.broker(kind);
  if (location.kind === "postgres") return countWalFlushes(location.url, send);
  const counted = await countFlushes(pid, tracePath, send);
  return counted && counted.flushes / counted.result.answered;
}
