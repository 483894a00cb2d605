// Does the number of registrations matter? Registrations and exact retries in a store with a million of them beside one
// with a thousand, in turns. One kind of store after the other: what a server still moves of its million rows is not to be in
// the figures of a file.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { BenchMesh } from "../broker/bench-meshes.ts";
import { type KeptStore, keepStore, type RoundProcesses, startOnStore } from "../broker/kept-store.ts";
import type { StoreKind } from "../broker/store-location.ts";
import { findStores, type StoreMaker } from "../broker/store-pair.ts";
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, mergeOutcomes, type RoundOutcome, runRounds, type Segment } from "../method/rounds.ts";
import { readCpuTimes } from "../method/steal.ts";
import type { RegistrarOrder, RegistrarResult } from "../registrar/registrar-order.ts";
import { describeRound, formatRate } from "../report.ts";
import type { Figures } from "./accept-figures.ts";
import { type ApiLoad, startApiLoad } from "./broker-accept-world.ts";
import { growthTable, type Size, sizeSegment, sizes, type Work, works } from "./registrar-figures.ts";
import { callers, makeSeeded, registrarMesh, serviceScript, shareMesh, smallRows } from "./registrar-world.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const largeRowsFull = 1_000_000;
const largeRowsLook = 100_000;
const lookSegmentMs = 2_000;

export const registrarMillionScenario: Scenario = {
  name: "registrar-million",
  summary: "registrations and exact retries with a million registrations, against a thousand",
  byName: true,
  run: runRegistrarMillion,
};

async function runRegistrarMillion(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  const load = await startApiLoad(settings);
  const isLook = settings.segmentMs < lookSegmentMs;
  const largeRows = isLook ? largeRowsLook : largeRowsFull;
  let outcomes: readonly RoundOutcome<Figures>[] = [];
  for (const kind of stores.kinds) {
    settings.progress(`writing ${formatRate(largeRows)} registrations into ${kind}`);
    const large = await makeStore(stores, kind, { folder: settings.folder, label: "large" }, largeRows);
    const measured = await runRounds<SizedWorld, Figures>({
      rounds: settings.rounds,
      open: (round) =>
        SizedWorld.open(settings, stores, { kind, load, large }, join(settings.folder, `${kind}${round}`)),
      segments: segmentsFor(kind, settings.segmentMs),
      close: (world) => world.close(),
      readCpuTimes,
      onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
    });
    outcomes = mergeOutcomes(outcomes, measured);
    await large.remove();
  }
  const rounds = cleanRounds(outcomes)?.map(({ figures }) => figures);
  const rows = { small: formatRate(smallRows), large: formatRate(largeRows) };
  return {
    scenario: registrarMillionScenario.name,
    title: "The registrar with a million registrations",
    conditions: [
      `Large: ${rows.large} registrations in one mesh, with their approvals, consumed keys and verdicts, and digests that are theirs${isLook ? " (a short run: a full one has 1,000,000)" : ""}; the same store for the whole run. Small: ${rows.small} at the start of every round, in a new store.`,
      "Registrations in process and retries over HTTP with 64 callers each, as the scenario registrar measures them; retries in process are there for information, since no transport hides there what the store takes. A broker and a service have a SQLite file each, and share a PostgreSQL database; both are new processes in every round, before which all that is stored is read once, so that it is in memory. One kind of store is measured after the other, and what the other has is not there meanwhile.",
      `New keys are in the order of time; digests are scattered by their nature. Retries are drawn at random from ${formatRate(smallRows)} registrations that are spread evenly over all that were there at the start: as many different keys in both stores, since the ledger of attempts is written by key.`,
    ],
    durability: ["As in registrar: two commits, shared, before every registration's answer; retries flush nothing."],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : [growthTable(rounds, stores.kinds, rows)],
    bars: [],
  };
}

function segmentsFor(kind: StoreKind, segmentMs: number): Segment<SizedWorld, Figures>[] {
  return works.flatMap((work) =>
    sizes.map((size) => ({
      name: sizeSegment(kind, work, size),
      measure: (world: SizedWorld) => world.work(work, size, segmentMs),
    })),
  );
}

type SeededStore = KeptStore & { readonly mesh: BenchMesh; readonly rows: number };
type Sized = SeededStore & RoundProcesses<RegistrarOrder, RegistrarResult>;

async function makeStore(
  stores: StoreMaker,
  kind: StoreKind,
  at: { readonly folder: string; readonly label: string },
  rows: number,
): Promise<SeededStore> {
  const made = await makeSeeded(stores, kind, at, shareMesh(), rows);
  return { ...keepStore(made), mesh: made.mesh, rows };
}

async function startSized({ closing }: RunSettings, store: SeededStore, home: string): Promise<Sized> {
  const processes = await startOnStore<RegistrarOrder, RegistrarResult>(closing, store, serviceScript, home);
  return { ...store, ...processes };
}

class SizedWorld {
  readonly #load: ApiLoad;
  readonly #stores: Readonly<Record<Size, Sized>>;
  readonly #folder: string;

  private constructor(load: ApiLoad, stores: Readonly<Record<Size, Sized>>, folder: string) {
    this.#load = load;
    this.#stores = stores;
    this.#folder = folder;
  }

  static async open(
    settings: RunSettings,
    stores: StoreMaker,
    { kind, load, large }: { readonly kind: StoreKind; readonly load: ApiLoad; readonly large: SeededStore },
    folder: string,
  ): Promise<SizedWorld> {
    mkdirSync(folder);
    const small = await makeStore(stores, kind, { folder, label: "small" }, smallRows);
    const started = {
      small: await startSized(settings, small, folder),
      large: await startSized(settings, large, folder),
    };
    const world = new SizedWorld(load, started, folder);
    for (const work of works) for (const size of sizes) await world.work(work, size, settings.warmUpMs / 2);
    return world;
  }

  work(work: Work, size: Size, durationMs: number): Promise<Figures> {
    const { service, broker, mesh, rows } = this.#stores[size];
    // As many different keys in both, since each of them has a row of its own in the ledger of attempts.
    const retryAmong = { from: 0, count: smallRows, step: Math.floor(rows / smallRows) };
    if (work === "retry over HTTP") {
      const order = { transport: "http", port: broker.port, meshes: [mesh], outstanding: callers, durationMs } as const;
      return this.#load.ask({ ...order, ids: "time_ordered", retryAmong, what: "register" });
    }
    const order = { mesh: registrarMesh(mesh), callers, durationMs };
    return service.ask(work === "register" ? order : { ...order, retryAmong });
  }

  async close(): Promise<void> {
    const { small, large } = this.#stores;
    await small.stop();
    await large.stop();
    await small.remove();
    rmSync(this.#folder, { recursive: true });
  }
}
