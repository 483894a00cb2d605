// Does it matter how much is there already? Accepts, retries, commits to a space and reads of its past with a thousand rows,
// ten thousand, and so on; each beside the smallest in the same round. What is promised of the largest stores is judged.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addMeshes, type BenchMesh, wishMeshes } from "../broker/bench-meshes.ts";
import type { InProcessOrder, InProcessResult } from "../broker/in-process-accepts.ts";
import { rowsMesh } from "../broker/rows-order.ts";
import { seedAccepts } from "../broker/seed-accepts.ts";
import type { StoreKind } from "../broker/store-location.ts";
import { findStores, type MadeStore, type StoreMaker } from "../broker/store-pair.ts";
import type { SpaceOrder, SpaceResult } from "../growth/in-process-spaces.ts";
import { judgeBar } from "../method/bars.ts";
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, mergeOutcomes, type RoundOutcome, type Segment } from "../method/rounds.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import { formatRate } from "../report.ts";
import type { Figures, RoundFigures } from "./accept-figures.ts";
import {
  type GrowthWork,
  growthCurves,
  growthRatios,
  growthSegment,
  growthSizes,
  growthTables,
  growthWorks,
} from "./growth-figures.ts";
import { measureRounds } from "./measured-rounds.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const callers = 64;
const committers = 16;
const growthLimit = 1.3;
const retriedAmong = 1_000;
/** Larger stores are made once and kept for all rounds; what a segment adds to them is little beside what is there. */
const remadeUpTo = 10_000;
const warmUpShare = 8;
/** Short, so that a store has at the end about as many rows as at the start. */
const segmentShare = 4;

export const growthScenario: Scenario = {
  name: "growth",
  summary: "accept, retry, commit and point-in-time read at 1,000 to 10,000,000 rows",
  byName: true,
  run: runGrowth,
};

async function runGrowth(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  const sizes = growthSizes(settings.rowsMax);
  const durationMs = settings.segmentMs / segmentShare;
  let outcomes: readonly RoundOutcome<Figures>[] = [];
  // One after the other: what is measured together has to fit into memory together.
  for (const kind of stores.kinds) {
    outcomes = mergeOutcomes(outcomes, await measureStore(settings, stores, { kind, sizes, durationMs }));
  }
  const rounds = cleanRounds(outcomes)?.map(({ figures }) => figures);
  return {
    scenario: growthScenario.name,
    title: "Growth",
    conditions: [
      `In process, on stores with ${sizes.map(formatRate).join(", ")} rows at the start; up to ${formatRate(remadeUpTo)} they are made anew for every round, larger ones are kept. Each grows by what its own segments add, the smallest manifold. Processes are new in every round and warmed up alike; each segment lasts ${durationMs / 1_000} s. Stores of one kind are measured together, and are in the file system's cache where they fit; those of the other kind are not there meanwhile.`,
      `Accept and retry: rows are claims with time-ordered ids, on PostgreSQL with their history rows. ${callers} callers; a retry is drawn from the ${formatRate(retriedAmong)} latest.`,
      `Commit and read: rows are revisions, ten of each entity, written through commits. ${committers} sessions: each commit sets one entity of its own that it has read, each read is of any entity at any moment of the past.`,
    ],
    durability: ["A flush before the answer of every accept and commit, shared; retries and reads flush nothing."],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : growthTables(rounds, stores.kinds, sizes),
    ...(rounds === undefined ? {} : { plots: [growthCurves(rounds, stores.kinds, sizes)] }),
    bars: judgeBars(rounds, stores.kinds, sizes),
  };
}

/** Accepts and retries, at the most rows that were measured; a look measures fewer and promises nothing. */
function judgeBars(rounds: readonly RoundFigures[] | undefined, kinds: readonly StoreKind[], sizes: readonly number[]) {
  const largest = sizes.at(-1) ?? 0;
  return kinds.flatMap((kind) =>
    (["accept", "retry"] as const).map((work) =>
      judgeBar(
        {
          name: `${kind}: ${work} with ${formatRate(largest)} rows, how many times as long as with 1,000`,
          kind: "at_most",
          limit: growthLimit,
        },
        rounds && growthRatios(rounds, kind, work, largest),
      ),
    ),
  );
}

async function measureStore(
  settings: RunSettings,
  stores: StoreMaker,
  of: { readonly kind: StoreKind; readonly sizes: readonly number[]; readonly durationMs: number },
): Promise<readonly RoundOutcome<Figures>[]> {
  const { kind, sizes, durationMs } = of;
  const make = (name: string, wanted: readonly number[]) =>
    makeStores(settings, stores, { kind, folder: join(settings.folder, `${kind}-${name}`), sizes: wanted });
  const kept = await make(
    "kept",
    sizes.filter((size) => size > remadeUpTo),
  );
  const { outcomes } = await measureRounds<GrowthWorld, Figures>(settings, {
    open: async (round) => {
      const small = sizes.filter((size) => size <= remadeUpTo);
      return GrowthWorld.open(settings, await make(`r${round}`, small), kept);
    },
    segments: segmentsFor(kind, sizes, durationMs),
    close: (world) => world.close(),
  });
  await removeStores(kept);
  return outcomes;
}

function segmentsFor(kind: StoreKind, sizes: readonly number[], durationMs: number): Segment<GrowthWorld, Figures>[] {
  return growthWorks.flatMap((work) =>
    sizes.map((rows) => ({
      name: growthSegment(kind, work, rows),
      measure: (world: GrowthWorld) => world.measure(rows, work, durationMs),
    })),
  );
}

/** One store with claims and one with revisions, so many of each. */
type StoresOfSize = {
  readonly rows: number;
  readonly messages: MadeStore;
  readonly mesh: BenchMesh;
  readonly spaces: MadeStore;
  readonly spaceMesh: BenchMesh;
};

type Made = { readonly folder: string; readonly all: readonly StoresOfSize[] };

async function makeStores(
  settings: RunSettings,
  stores: StoreMaker,
  { kind, folder, sizes }: { readonly kind: StoreKind; readonly folder: string; readonly sizes: readonly number[] },
): Promise<Made> {
  mkdirSync(folder);
  const all: StoresOfSize[] = [];
  for (const rows of sizes) {
    if (rows > remadeUpTo) settings.progress(`writing ${formatRate(rows)} rows of each kind into ${kind}`);
    all.push(await makeOfSize(settings, stores, { kind, folder, rows }));
  }
  return { folder, all };
}

async function removeStores({ folder, all }: Made): Promise<void> {
  for (const { messages, spaces } of all) {
    await messages.remove();
    await spaces.remove();
  }
  rmSync(folder, { recursive: true });
}

async function makeOfSize(
  settings: RunSettings,
  stores: StoreMaker,
  { kind, folder, rows }: { readonly kind: StoreKind; readonly folder: string; readonly rows: number },
): Promise<StoresOfSize> {
  const messages = await stores.make(kind, folder, `messages-${rows}`);
  const spaces = await stores.make(kind, folder, `spaces-${rows}`);
  const [mesh] = await addMeshes(messages.location, wishMeshes("bench", 1));
  const [spaceMesh] = await addMeshes(spaces.location, wishMeshes("bench", 1));
  if (mesh === undefined || spaceMesh === undefined) throw new Error("a mesh was asked for");
  await seedAccepts(messages.location, [{ mesh, ids: "time_ordered", rows }]);
  const made = { rows, messages, mesh, spaces, spaceMesh };
  const filling = await startSpaces(settings, made);
  await filling.ask({ do: "fill" });
  await filling.stop();
  return made;
}

function startSpaces(
  { closing }: RunSettings,
  { spaces, spaceMesh, rows }: StoresOfSize,
): Promise<MeasuringProcess<SpaceOrder, SpaceResult>> {
  const script = new URL("../growth/in-process-spaces.ts", import.meta.url);
  const member = spaceMesh.keys.ed25519.public_key;
  return MeasuringProcess.start(closing, script, JSON.stringify(spaces.location), spaceMesh.id, member, String(rows));
}

type Worker = {
  readonly work: (what: GrowthWork, durationMs: number) => Promise<Figures>;
  readonly stop: () => Promise<void>;
};

async function startWorker(settings: RunSettings, stores: StoresOfSize): Promise<Worker> {
  const { messages, mesh, rows } = stores;
  const accepts = await MeasuringProcess.start<InProcessOrder, InProcessResult>(
    settings.closing,
    new URL("../broker/in-process-accepts.ts", import.meta.url),
    JSON.stringify(messages.location),
  );
  const entities = await startSpaces(settings, stores);
  const send = { meshes: [rowsMesh(mesh)], outstanding: callers, ids: "time_ordered" } as const;
  const retryAmong = { from: rows - retriedAmong, count: retriedAmong };
  return {
    work: (what, durationMs) => {
      if (what === "accept") return accepts.ask({ ...send, durationMs });
      if (what === "retry") return accepts.ask({ ...send, durationMs, retryAmong });
      return entities.ask({ do: what, outstanding: committers, durationMs });
    },
    stop: async () => {
      await accepts.stop();
      await entities.stop();
    },
  };
}

class GrowthWorld {
  readonly #own: Made;
  readonly #workers = new Map<number, Worker>();

  private constructor(own: Made) {
    this.#own = own;
  }

  static async open(settings: RunSettings, own: Made, kept: Made): Promise<GrowthWorld> {
    const world = new GrowthWorld(own);
    const all = [...own.all, ...kept.all];
    const workers = await Promise.all(all.map((stores) => startWorker(settings, stores)));
    for (const [at, { rows }] of all.entries()) {
      const worker = workers[at] as Worker;
      world.#workers.set(rows, worker);
      for (const work of growthWorks) await worker.work(work, settings.warmUpMs / warmUpShare);
    }
    return world;
  }

  measure(rows: number, work: GrowthWork, durationMs: number): Promise<Figures> {
    const worker = this.#workers.get(rows);
    if (worker === undefined) throw new Error(`there is no store with ${rows} rows here`);
    return worker.work(work, durationMs);
  }

  async close(): Promise<void> {
    for (const worker of this.#workers.values()) await worker.stop();
    await removeStores(this.#own);
  }
}
