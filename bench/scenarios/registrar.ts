// What a registration costs beyond its statements, and what an exact retry costs beyond a route that does nothing but
// authenticate.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BenchBroker } from "../broker/bench-broker.ts";
import type { BenchMesh } from "../broker/bench-meshes.ts";
import type { StoreKind } from "../broker/store-location.ts";
import { findStores, type StoreMaker } from "../broker/store-pair.ts";
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, runRounds, type Segment } from "../method/rounds.ts";
import { readCpuTimes } from "../method/steal.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import { describeRound } from "../report.ts";
import type { Figures } from "./accept-figures.ts";
import { type ApiLoad, startApiLoad } from "./broker-accept-world.ts";
import {
  elsewhereSegment,
  noopSegment,
  registerSegment,
  registrarTables,
  retrySegment,
  statementsSegment,
} from "./registrar-figures.ts";
import {
  callers,
  countRegistrations,
  get,
  makeSeeded,
  type Registering,
  registrarMesh,
  shareMesh,
  smallRows,
  startService,
  startStatements,
} from "./registrar-world.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

export const registrarScenario: Scenario = {
  name: "registrar",
  summary: "registrations beside their statements alone, and exact retries beside an authenticated no-op",
  byName: true,
  run: runRegistrar,
};

async function runRegistrar(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  const load = await startApiLoad(settings);
  const outcomes = await runRounds<RegistrarWorld, Figures>({
    rounds: settings.rounds,
    open: (round) => RegistrarWorld.open(settings, stores, load, join(settings.folder, `r${round}`)),
    segments: segmentsFor(stores.kinds, settings.segmentMs),
    close: (world) => world.close(),
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  const rounds = cleanRounds(outcomes)?.map(({ figures }) => figures);
  return {
    scenario: registrarScenario.name,
    title: "The registrar: registrations and exact retries",
    conditions: [
      "One registration: one approval with its single-use nonce is consumed by a new key. Key, nonce and effect are looked at and the consumed key and the inert registration are written in one transaction; the rows are read again and checked, with the owner's signature; the verdict is appended in a second transaction. It counts when it is `registered_closed`. Approvals are made before, by the same service, and are not timed.",
      "Ours: the registrar's service in process on the broker's own backend, 64 callers with one request each outstanding. Approved here: this process took the approval and remembers that its signature is good (it remembers 10,000). Approved elsewhere: another broker did, or this one before a restart, so that the signature is checked; for information.",
      "Statements alone: exactly the statements of such a registration, written down while the product makes one, with their values worked out before, in a bare loop. SQLite: 64 registrations in each of the two transactions, and in each snapshot that is read between. PostgreSQL: one after the other on each of 8 connections, as many as the product has for them, statements sent together where the product does.",
      `A retry: the same request again, drawn at random from ${smallRows} registrations; 200 with the first result, the offered nonce is not looked at. It is counted for the ledger of attempts, which is in the figures. The no-op is the broker's own way in over HTTP with the same request, schema, bearer token, counters and size of answer, answering at once. Both over HTTP with 64 connections.`,
      `Every store has ${smallRows} registrations when a round begins.`,
    ],
    durability: [
      "SQLite: WAL mode with synchronous=FULL on both sides; a registration's answer waits for the COMMIT of its rows and for that of its verdict, each shared by the requests that came meanwhile.",
      "PostgreSQL: fsync and synchronous_commit on, on both sides; two commits for each registration. Retries flush nothing before they answer.",
    ],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : registrarTables(rounds, stores.kinds),
    bars: [],
  };
}

function segmentsFor(kinds: readonly StoreKind[], segmentMs: number): Segment<RegistrarWorld, Figures>[] {
  return kinds.flatMap((kind) => [
    { name: statementsSegment(kind), measure: (world) => world.statements(kind, segmentMs) },
    { name: registerSegment(kind), measure: (world) => world.register(kind, segmentMs) },
    { name: elsewhereSegment(kind), measure: (world) => world.register(kind, segmentMs, true) },
    { name: noopSegment(kind), measure: (world) => world.noop(kind, segmentMs) },
    { name: retrySegment(kind), measure: (world) => world.retry(kind, segmentMs) },
  ]);
}

/** What one store of a round is measured by. */
type Parties = {
  readonly mesh: BenchMesh;
  readonly alone: Registering;
  readonly service: Registering;
  readonly noopPort: number;
  readonly retryPort: number;
};

class RegistrarWorld {
  readonly #load: ApiLoad;
  readonly #parties = new Map<StoreKind, Parties>();
  readonly #removals: (() => Promise<void>)[] = [];

  private constructor(load: ApiLoad) {
    this.#load = load;
  }

  static async open(settings: RunSettings, stores: StoreMaker, load: ApiLoad, folder: string): Promise<RegistrarWorld> {
    mkdirSync(folder);
    const world = new RegistrarWorld(load);
    for (const kind of stores.kinds) await world.#openStore(settings, stores, kind, folder);
    world.#removals.push(async () => rmSync(folder, { recursive: true }));
    for (const kind of stores.kinds) await world.#warmUp(kind, settings.warmUpMs);
    return world;
  }

  statements(kind: StoreKind, durationMs: number): Promise<Figures> {
    const { alone, mesh } = get(this.#parties, kind);
    return alone.ask({ mesh: registrarMesh(mesh), callers, durationMs });
  }

  register(kind: StoreKind, durationMs: number, approvedElsewhere = false): Promise<Figures> {
    const { service, mesh } = get(this.#parties, kind);
    return service.ask({ mesh: registrarMesh(mesh), callers, durationMs, approvedElsewhere });
  }

  noop(kind: StoreKind, durationMs: number): Promise<Figures> {
    return this.#overHttp(kind, get(this.#parties, kind).noopPort, durationMs);
  }

  retry(kind: StoreKind, durationMs: number): Promise<Figures> {
    return this.#overHttp(kind, get(this.#parties, kind).retryPort, durationMs);
  }

  async close(): Promise<void> {
    for (const remove of this.#removals) await remove();
  }

  #overHttp(kind: StoreKind, port: number, durationMs: number): Promise<Figures> {
    const { mesh } = get(this.#parties, kind);
    const order = { transport: "http", port, meshes: [mesh], outstanding: callers, durationMs } as const;
    const retryAmong = { from: 0, count: smallRows };
    return this.#load.ask({ ...order, ids: "time_ordered", retryAmong, what: "register" });
  }

  async #openStore(settings: RunSettings, stores: StoreMaker, kind: StoreKind, folder: string): Promise<void> {
    const shared = shareMesh();
    const make = (label: string) => makeSeeded(stores, kind, { folder, label }, shared, smallRows);
    const raw = await make("raw");
    const ours = await make("ours");
    const noop = await make("noop");
    const retried = await make("retried");
    const { mesh } = raw;
    const alone = await startStatements(settings, raw.location, mesh);
    const service = await startService(settings, ours.location);
    const noopScript = new URL("../broker/authenticated-noop.ts", import.meta.url);
    const served = await MeasuringProcess.start<"port", number>(
      settings.closing,
      noopScript,
      JSON.stringify(noop.location),
    );
    const broker = await BenchBroker.start(retried.location, folder, settings.closing);
    const noopPort = await served.ask("port");
    this.#parties.set(kind, { mesh, alone, service, noopPort, retryPort: broker.port });
    this.#removals.push(
      () => broker.kill(),
      // Retries add nothing.
      async () => {
        const stored = await countRegistrations(retried.location);
        if (stored !== smallRows) throw new Error(`${stored} registrations are stored after retries of ${smallRows}`);
      },
      () => served.stop(),
      () => alone.stop(),
      () => service.stop(),
      ...[raw, ours, noop, retried].map(({ remove }) => remove),
    );
  }

  async #warmUp(kind: StoreKind, durationMs: number): Promise<void> {
    // In full: what is measured first would otherwise be measured cold.
    await this.statements(kind, durationMs);
    await this.register(kind, durationMs);
    await this.noop(kind, durationMs);
    await this.retry(kind, durationMs);
  }
}
