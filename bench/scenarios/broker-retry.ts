// What a retry costs, and whether the number of stored ids matters: a retry of a committed id beside a route that does
// nothing but authenticate, and accepts and retries with millions of claims beside a store with few.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addMeshes, type BenchMesh, wishMeshes } from "../broker/bench-meshes.ts";
import type { InProcessOrder, InProcessResult } from "../broker/in-process-accepts.ts";
import { type KeptStore, keepStore, type RoundProcesses, startOnStore } from "../broker/kept-store.ts";
import { rowsMesh } from "../broker/rows-order.ts";
import { seedAccepts } from "../broker/seed-accepts.ts";
import type { SeededRange } from "../broker/seeded-ids.ts";
import type { StoreKind, StoreLocation } from "../broker/store-location.ts";
import { findStores, type StoreMaker } from "../broker/store-pair.ts";
import { judgeBar } from "../method/bars.ts";
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, runRounds, type Segment } from "../method/rounds.ts";
import { readCpuTimes } from "../method/steal.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import { describeRound, formatRate } from "../report.ts";
import type { Figures, RoundFigures } from "./accept-figures.ts";
import { type ApiLoad, startApiLoad } from "./broker-accept-world.ts";
import {
  type Ids,
  idOrders,
  noopSegment,
  retryRatios,
  retrySegment,
  retryTables,
  type Size,
  sizeSegment,
  type Work,
  works,
} from "./broker-retry-figures.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const callers = 64;
const smallRows = 10_000;
const largeRowsFull = 5_000_000;
const largeRowsLook = 500_000;
const lookSegmentMs = 2_000;
const retryLimit = 0.7;

export const brokerRetryScenario: Scenario = {
  name: "broker-retry",
  summary: "retries beside an authenticated no-op, and accepts and retries with five million stored ids",
  byName: true,
  run: runBrokerRetry,
};

/** One store with one mesh per order of ids. */
type SeededStore = KeptStore & { readonly meshes: Readonly<Record<Ids, BenchMesh>>; readonly rows: number };
type Sized = SeededStore & RoundProcesses<InProcessOrder, InProcessResult>;
const serviceScript = new URL("../broker/in-process-accepts.ts", import.meta.url);

async function runBrokerRetry(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  const load = await startApiLoad(settings);
  const isLook = settings.segmentMs < lookSegmentMs;
  const largeRows = isLook ? largeRowsLook : largeRowsFull;
  const large = new Map<StoreKind, SeededStore>();
  for (const kind of stores.kinds) {
    settings.progress(`writing ${formatRate(largeRows)} ids of each order into ${kind}`);
    large.set(kind, await makeSeeded(stores, kind, { folder: settings.folder, label: "large" }, largeRows));
  }
  const outcomes = await runRounds<RetryWorld, Figures>({
    rounds: settings.rounds,
    open: (round) => RetryWorld.open(settings, stores, { load, large }, join(settings.folder, `r${round}`)),
    segments: segmentsFor(stores.kinds, settings.segmentMs),
    close: (world) => world.close(),
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  const rounds = cleanRounds(outcomes)?.map(({ figures }) => figures);
  const sizes = { small: formatRate(smallRows), large: formatRate(largeRows) };
  return {
    scenario: brokerRetryScenario.name,
    title: "Retries, and stores with many ids",
    conditions: [
      "A retry offers a committed id with the same content; drawn at random, of time-ordered ids from the 10,000 latest and of random ones from all. It is answered 200 with the first answer's ids, writes nothing and asks no limiter.",
      "The no-op is the broker's own way in over HTTP with the same request, schema, bearer token and counters on the same kind of store, answering at once. Both over HTTP with 64 connections.",
      `Large: ${sizes.large} claims with time-ordered ids in one mesh and as many with random ids in another, in one store${isLook ? " (a short run: a full one has 5,000,000)" : ""}. Small: ${sizes.small} of each at the start of every round. Accepts have new ids of the same order. Accepts in process, so that no transport hides what the store takes; retries over HTTP, and in process for information. A broker and a service have a SQLite file each, and share a PostgreSQL database; both are new processes in every round, before which all that is stored is read once, so that it is in memory.`,
    ],
    durability: ["As in broker-accept: a flush before every accept's answer, shared; retries flush nothing."],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : retryTables(rounds, stores.kinds, sizes),
    bars: judgeBars(rounds, stores.kinds),
  };
}

function judgeBars(rounds: readonly RoundFigures[] | undefined, kinds: readonly StoreKind[]) {
  return kinds.map((kind) =>
    judgeBar(
      { name: `${kind}: retries/s ÷ authenticated no-ops/s`, kind: "at_least", limit: retryLimit },
      rounds && retryRatios(rounds, kind),
    ),
  );
}

function segmentsFor(kinds: readonly StoreKind[], segmentMs: number): Segment<RetryWorld, Figures>[] {
  return kinds.flatMap((kind) => [
    { name: noopSegment(kind), measure: (world: RetryWorld) => world.noop(kind, segmentMs) },
    { name: retrySegment(kind), measure: (world: RetryWorld) => world.retry(kind, segmentMs) },
    ...idOrders.flatMap((ids) =>
      works.flatMap((work) =>
        (["small", "large"] as const).map((size) => ({
          name: sizeSegment(kind, work, ids, size),
          measure: (world: RetryWorld) => world.sized(kind, work, ids, size, segmentMs),
        })),
      ),
    ),
  ]);
}

async function makeSeeded(
  stores: StoreMaker,
  kind: StoreKind,
  at: { readonly folder: string; readonly label: string },
  rows: number,
): Promise<SeededStore> {
  const made = await stores.make(kind, at.folder, at.label);
  const [ordered, random] = await addMeshes(made.location, wishMeshes("bench", 2));
  if (ordered === undefined || random === undefined) throw new Error("two meshes were asked for");
  const meshes = { time_ordered: ordered, random };
  await seedAccepts(
    made.location,
    idOrders.map((ids) => ({ mesh: meshes[ids], ids, rows })),
  );
  return { ...keepStore(made), meshes, rows };
}

/** The no-op on a store like the small one, and the mesh that is in both. */
type Noop = { readonly port: number; readonly mesh: BenchMesh };
type Kept = { readonly load: ApiLoad; readonly large: ReadonlyMap<StoreKind, SeededStore> };

class RetryWorld {
  readonly #kept: Kept;
  readonly #stores = { small: new Map<StoreKind, Sized>(), large: new Map<StoreKind, Sized>() };
  readonly #noops = new Map<StoreKind, Noop>();
  readonly #removals: (() => Promise<void>)[] = [];

  private constructor(kept: Kept) {
    this.#kept = kept;
  }

  static async open(settings: RunSettings, stores: StoreMaker, kept: Kept, folder: string): Promise<RetryWorld> {
    mkdirSync(folder);
    const world = new RetryWorld(kept);
    for (const kind of stores.kinds) await world.#openStore(settings, stores, kind, folder);
    world.#removals.push(async () => rmSync(folder, { recursive: true }));
    await world.#warmUp(settings.warmUpMs);
    return world;
  }

  noop(kind: StoreKind, durationMs: number): Promise<Figures> {
    const { mesh, port } = get(this.#noops, kind);
    return this.#overHttp(mesh, port, "time_ordered", { from: 0, count: smallRows }, durationMs);
  }

  retry(kind: StoreKind, durationMs: number): Promise<Figures> {
    return this.sized(kind, "retry over HTTP", "time_ordered", "small", durationMs);
  }

  sized(kind: StoreKind, work: Work, ids: Ids, size: Size, durationMs: number): Promise<Figures> {
    const { service, broker, meshes, rows } = get(this.#stores[size], kind);
    const order = { meshes: [rowsMesh(meshes[ids])], outstanding: callers, durationMs, ids };
    if (work === "accept") return service.ask(order);
    // What is retried has just been sent: ids in the order of time then lie side by side, random ones anywhere.
    const retryAmong = ids === "random" ? { from: 0, count: rows } : { from: rows - smallRows, count: smallRows };
    if (work === "retry") return service.ask({ ...order, retryAmong });
    return this.#overHttp(meshes[ids], broker.port, ids, retryAmong, durationMs);
  }

  async close(): Promise<void> {
    for (const remove of this.#removals) await remove();
  }

  #overHttp(mesh: BenchMesh, port: number, ids: Ids, retryAmong: SeededRange, durationMs: number): Promise<Figures> {
    const order = { transport: "http", port, meshes: [mesh], outstanding: callers, durationMs } as const;
    return this.#kept.load.ask({ ...order, ids, retryAmong });
  }

  async #openStore(settings: RunSettings, stores: StoreMaker, kind: StoreKind, folder: string): Promise<void> {
    const small = await makeSeeded(stores, kind, { folder, label: "small" }, smallRows);
    await this.#openSized(settings, kind, "small", small, folder);
    await this.#openSized(settings, kind, "large", get(this.#kept.large, kind), folder);
    const noop = await stores.make(kind, folder, "noop");
    const mesh = small.meshes.time_ordered;
    await addMeshes(noop.location, wishMeshes("bench", 1), [mesh]);
    const served = await startNoop(settings, noop.location);
    this.#noops.set(kind, { mesh, port: await served.ask("port") });
    this.#removals.push(() => served.stop(), small.remove, noop.remove);
  }

  async #openSized(
    settings: RunSettings,
    kind: StoreKind,
    size: Size,
    store: SeededStore,
    home: string,
  ): Promise<void> {
    const processes: RoundProcesses<InProcessOrder, InProcessResult> = await startOnStore(
      settings.closing,
      store,
      serviceScript,
      home,
    );
    this.#stores[size].set(kind, { ...store, ...processes });
    this.#removals.push(processes.stop);
  }

  async #warmUp(durationMs: number): Promise<void> {
    for (const kind of this.#stores.small.keys()) {
      // Whatever serves HTTP in full: what is compiled while it is measured would look slower than what came before it.
      await this.noop(kind, durationMs);
      for (const size of ["small", "large"] as const) {
        for (const work of works) {
          const share = work === "retry over HTTP" ? 1 : 4;
          await this.sized(kind, work, "time_ordered", size, durationMs / share);
        }
      }
    }
  }
}

function startNoop(settings: RunSettings, location: StoreLocation): Promise<MeasuringProcess<"port", number>> {
  const script = new URL("../broker/authenticated-noop.ts", import.meta.url);
  return MeasuringProcess.start(settings.closing, script, JSON.stringify(location));
}

function get<Value>(map: ReadonlyMap<StoreKind, Value>, kind: StoreKind): Value {
  const value = map.get(kind);
  if (value === undefined) throw new Error(`there is no ${kind} here`);
  return value;
}
