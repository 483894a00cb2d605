// The broker's accepts beside others that take messages for later: the same bodies, the same number of callers, on the
// same machine in the same minutes. Each has its version and its durability in the table, because these differ.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { ApiOrder, ApiResult } from "../broker/api-load.ts";
import { BenchBroker } from "../broker/bench-broker.ts";
import { addMeshes, type BenchMesh, wishMeshes } from "../broker/bench-meshes.ts";
import type { InProcessOrder, InProcessResult } from "../broker/in-process-accepts.ts";
import { rowsMesh } from "../broker/rows-order.ts";
import type { StoreKind } from "../broker/store-location.ts";
import { askPostgres, countWalFlushes, findStores, type StoreMaker } from "../broker/store-pair.ts";
import { judgeBar } from "../method/bars.ts";
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, runRounds } from "../method/rounds.ts";
import { readCpuTimes } from "../method/steal.ts";
import { type PeerFacts, type PeerName, peerNames, peerTitles } from "../peers/peer.ts";
import type { PeerOrder, PeerResult } from "../peers/peer-load.ts";
import { preparePgbench, runPgbench } from "../peers/pgbench.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import { describeRound } from "../report.ts";
import { startApiLoad } from "./broker-accept-world.ts";
import { type PeerFigures, type PeerRow, peerPlot, peerSegment, peerTable, ratiosTo } from "./broker-peers-figures.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const callers = 64;
/** As many as the accepts have at most; for ours on PostgreSQL and pg-boss. */
const crowd = 512;
const lookSegmentMs = 2_000;
const { send: bossSend, batch: bossBatch } = peerTitles["pg-boss"];
const oursOnPostgres = "claudemesh, PostgreSQL, WebSocket";
const oursInProcess = "claudemesh, PostgreSQL, in process";
const crowdNames: readonly (string | undefined)[] = [oursInProcess, oursOnPostgres, bossSend, bossBatch];
const addresses: Readonly<Record<"nats" | "rabbitmq", string>> = {
  nats: "127.0.0.1:4222",
  rabbitmq: "amqp://guest:guest@127.0.0.1:5672",
};

export const brokerPeersScenario: Scenario = {
  name: "broker-peers",
  summary:
    "the broker's accepts beside pg-boss, graphile-worker, BullMQ, pgbench, JetStream, Redis streams and RabbitMQ",
  byName: true,
  run: runBrokerPeers,
};

type PeerProcess = MeasuringProcess<PeerOrder, PeerResult>;
type Found = { readonly facts: ReadonlyMap<PeerName, PeerFacts>; readonly missing: readonly PeerRow[] };

async function runBrokerPeers(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  const load = await startApiLoad(settings);
  const first = await PeersWorld.open(settings, stores, load, join(settings.folder, "first"));
  const { facts, missing } = first.found;
  const known = [
    ...oursRows(stores.kinds),
    ...peerRows(facts),
    ...(stores.kinds.includes("postgres") ? [pgbenchRow(await first.postgresVersion())] : []),
  ];
  const rows: PeerRow[] = [];
  for (const row of known) {
    // Counting waits for the server's statistics, which a look cannot afford.
    const isLook = settings.segmentMs < lookSegmentMs;
    rows.push({ ...row, flushes: isLook ? "not counted" : await first.describeFlushes(row, settings.segmentMs) });
  }
  const crowdRows = rows
    .filter(({ name }) => crowdNames.includes(name))
    .map((row): PeerRow => ({ ...row, flushes: "not counted" }));
  const segmentsOf = (some: readonly PeerRow[], outstanding: number) =>
    some.map(({ name }) => ({
      name: peerSegment(name, outstanding),
      measure: (world: PeersWorld) => world.measure(name, outstanding, settings.segmentMs),
    }));
  await first.close();
  const outcomes = await runRounds<PeersWorld, PeerFigures>({
    rounds: settings.rounds,
    open: (round) => PeersWorld.open(settings, stores, load, join(settings.folder, `r${round}`)),
    segments: [...segmentsOf(rows, callers), ...segmentsOf(crowdRows, crowd)],
    close: (world) => world.close(),
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  const rounds = cleanRounds(outcomes)?.map(({ figures }) => figures);
  const judged = stores.kinds.includes("postgres") && facts.has("pg-boss");
  return {
    scenario: brokerPeersScenario.name,
    title: "The broker's accepts beside others",
    conditions: [
      `Messages of 1,024 bytes, ${callers} callers with one message outstanding each; batches hold ${callers}. Ours on PostgreSQL and pg-boss with ${crowd} callers as well. Each peer is driven by its own client in a process of its own.`,
      "claudemesh writes for each message a claim, the message, a history row and three deliveries, and answers a message sent again with the first answer. The others write one message each; what they remember of ids stands with them.",
    ],
    durability: rows.map(({ name, version, durability }) => `${name} (${version}): ${durability}.`),
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables:
      rounds === undefined
        ? []
        : [
            peerTable(rounds, [...rows, ...missing], bossSend, callers),
            ...(judged ? [peerTable(rounds, crowdRows, bossSend, crowd)] : []),
          ],
    ...(rounds === undefined ? {} : { plots: [peerPlot(rounds, rows, callers)] }),
    bars: judged
      ? [
          judgeBar(
            {
              name: `accepts/s over WebSocket on PostgreSQL ÷ ${bossSend}, ${callers} callers`,
              kind: "at_least",
              limit: 3,
            },
            rounds && ratiosTo(rounds, oursOnPostgres, bossSend, callers),
          ),
        ]
      : [],
  };
}

function oursRows(kinds: readonly StoreKind[]): PeerRow[] {
  const version = "this version";
  const sqlite = "SQLite in WAL mode with synchronous=FULL: a COMMIT is flushed once and shared by who is in it";
  const postgres =
    "PostgreSQL with fsync and synchronous_commit on, limiter in Redis: a COMMIT is shared by who is in it";
  return kinds.flatMap((kind) => {
    const durability = kind === "sqlite" ? sqlite : postgres;
    const title = kind === "sqlite" ? "SQLite" : "PostgreSQL";
    return ["in process", "WebSocket"].map((how) => ({
      name: `claudemesh, ${title}, ${how}`,
      version,
      durability,
      flushes: "",
    }));
  });
}

function peerRows(facts: ReadonlyMap<PeerName, PeerFacts>): PeerRow[] {
  return [...facts].flatMap(([peer, { version, durability }]) => {
    const { send, batch } = peerTitles[peer];
    return (batch === undefined ? [send] : [send, batch]).map((name) => ({ name, version, durability, flushes: "" }));
  });
}

function pgbenchRow(version: string): PeerRow {
  const durability = `same PostgreSQL and the product's own tables, fsync and synchronous_commit on; one statement with all rows of an accept per transaction, ${callers} clients`;
  return { name: "pgbench, comparable rows", version: `PostgreSQL ${version}`, durability, flushes: "" };
}

class PeersWorld {
  readonly found: Found;
  readonly #parts: Awaited<ReturnType<typeof openParts>>;

  private constructor(found: Found, parts: Awaited<ReturnType<typeof openParts>>) {
    this.found = found;
    this.#parts = parts;
  }

  static async open(
    settings: RunSettings,
    stores: StoreMaker,
    load: MeasuringProcess<ApiOrder, ApiResult>,
    folder: string,
  ): Promise<PeersWorld> {
    mkdirSync(folder);
    const parts = await openParts(settings, stores, load, folder);
    const facts = new Map<PeerName, PeerFacts>();
    const missing: PeerRow[] = [];
    for (const name of peerNames) {
      const answer = await parts.peers.get(name)?.ask({ do: "describe" });
      if (answer?.type === "facts") facts.set(name, answer.facts);
      else
        missing.push({
          name: peerTitles[name].send,
          version: "skipped: it does not answer here",
          durability: "",
          flushes: "–",
        });
    }
    const world = new PeersWorld({ facts, missing }, parts);
    await world.#warmUp(settings.warmUpMs / 4);
    return world;
  }

  measure(row: string, outstanding: number, durationMs: number): Promise<PeerFigures> {
    return this.#send(row, outstanding, durationMs);
  }

  /** In words, for the table; counted where PostgreSQL keeps the data. */
  async describeFlushes({ name, durability }: PeerRow, durationMs: number): Promise<string> {
    const url = this.#parts.postgresUrl;
    if (durability.includes("0 flushes per operation")) return "0";
    if (url === undefined || !/PostgreSQL|pg-boss|graphile-worker|pgbench/.test(name)) return "shared, not counted";
    const flushes = await countWalFlushes(url, () => this.#send(name, callers, durationMs));
    return flushes === undefined ? "not told by this server" : flushes.toFixed(3);
  }

  async postgresVersion(): Promise<string> {
    const url = this.#parts.postgresUrl;
    return url === undefined ? "" : (String(await askPostgres(url, "SHOW server_version")).split(" ", 1)[0] ?? "");
  }

  async close(): Promise<void> {
    const { peers, services, brokers, folder, removals } = this.#parts;
    for (const [name, peer] of peers) {
      if (this.found.facts.has(name)) await peer.ask({ do: "close" });
      await peer.stop();
    }
    for (const service of services.values()) await service.stop();
    for (const broker of brokers.values()) await broker.killAndVerify();
    for (const remove of removals) await remove();
    rmSync(folder, { recursive: true });
  }

  async #send(row: string, outstanding: number, durationMs: number): Promise<PeerFigures> {
    const { mesh, services, brokers, load } = this.#parts;
    const kind = row.includes("SQLite") ? "sqlite" : "postgres";
    if (row.endsWith("in process")) {
      const service = services.get(kind);
      if (service === undefined) throw new Error(`there is no ${kind} here`);
      return service.ask({ meshes: [rowsMesh(mesh)], outstanding, durationMs, ids: "time_ordered" });
    }
    if (row.endsWith("WebSocket")) {
      const broker = brokers.get(kind);
      if (broker === undefined) throw new Error(`there is no ${kind} here`);
      const order = { transport: "websocket", port: broker.port, meshes: [mesh], durationMs } as const;
      const result = await load.ask({ ...order, outstanding, ids: "time_ordered" });
      broker.promised(result.answered);
      return result;
    }
    return row.startsWith("pgbench") ? this.#pgbench(durationMs) : this.#peer(row, outstanding, durationMs);
  }

  async #pgbench(durationMs: number) {
    const { postgresUrl, scriptPath } = this.#parts;
    const result = postgresUrl && (await runPgbench(postgresUrl, scriptPath, callers, durationMs));
    if (!result) throw new Error("pgbench is not installed; it comes with PostgreSQL");
    return { ...result, answered: result.perSecond * (durationMs / 1_000) };
  }

  async #peer(row: string, outstanding: number, durationMs: number) {
    const name = peerNames.find((each) => Object.values(peerTitles[each]).includes(row));
    const process = name && this.#parts.peers.get(name);
    const how = name && peerTitles[name].batch === row ? "batch" : "send";
    const result = await process?.ask({ do: how, outstanding, durationMs });
    if (result?.type !== "measured") throw new Error(`${row} could not be measured`);
    const { answered, perSecond, p50Ms, p99Ms } = result;
    return { answered, perSecond, p50Ms, p99Ms };
  }

  async #warmUp(durationMs: number): Promise<void> {
    const rows = [...oursRows([...this.#parts.services.keys()]), ...peerRows(this.found.facts)];
    for (const { name } of rows) await this.#send(name, callers, durationMs);
  }
}

async function openParts(
  { closing }: RunSettings,
  stores: StoreMaker,
  load: MeasuringProcess<ApiOrder, ApiResult>,
  folder: string,
) {
  const services = new Map<StoreKind, MeasuringProcess<InProcessOrder, InProcessResult>>();
  const brokers = new Map<StoreKind, BenchBroker>();
  const removals: (() => Promise<void>)[] = [];
  const wishes = wishMeshes("bench", 1);
  let meshes: BenchMesh[] = [];
  const make = async (kind: StoreKind, label: string) => {
    const made = await stores.make(kind, folder, label);
    removals.push(made.remove);
    meshes = await addMeshes(made.location, wishes, meshes);
    return made.location;
  };
  for (const kind of stores.kinds) {
    const service = JSON.stringify(await make(kind, "service"));
    services.set(
      kind,
      await MeasuringProcess.start(closing, new URL("../broker/in-process-accepts.ts", import.meta.url), service),
    );
    brokers.set(kind, await BenchBroker.start(await make(kind, "broker"), folder, closing));
  }
  const [mesh] = meshes;
  if (mesh === undefined) throw new Error("there is no mesh to send to");
  const peers = new Map<PeerName, PeerProcess>();
  const scriptPath = join(folder, "accept.sql");
  const start = (name: PeerName, address: string): Promise<PeerProcess> =>
    MeasuringProcess.start(closing, new URL("../peers/peer-load.ts", import.meta.url), name, address);
  const location = stores.kinds.includes("postgres") ? await make("postgres", "peers") : undefined;
  const postgresUrl = location?.kind === "postgres" ? location.url : undefined;
  if (location?.kind === "postgres") {
    await preparePgbench(location.url, scriptPath, mesh);
    for (const name of ["pg-boss", "graphile-worker"] as const) peers.set(name, await start(name, location.url));
    for (const name of ["redis", "bullmq"] as const) peers.set(name, await start(name, location.redisUrl));
  }
  for (const name of ["nats", "rabbitmq"] as const) peers.set(name, await start(name, addresses[name]));
  return { services, brokers, peers, removals, mesh, load, folder, scriptPath, postgresUrl };
}
