// What a replica's size costs its user: the time from a transaction's call to its notification, over few and over many
// entities. And how long it takes until the last of many watchers of one entity has been notified of a commit.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BenchBroker } from "../broker/bench-broker.ts";
import { addMeshes, wishMeshes } from "../broker/bench-meshes.ts";
import type { StoreKind } from "../broker/store-location.ts";
import { findStores, type MadeStore, type StoreMaker } from "../broker/store-pair.ts";
import type { LatencyFigures } from "../load/latencies.ts";
import { readMachineFacts } from "../method/machine.ts";
import { summarise } from "../method/statistics.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import { formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import type { ReplicaSize, ReplicasOrder, ReplicasResult } from "../spaces/replicas.ts";
import { measureRounds } from "./measured-rounds.ts";
import type { MarkdownTable, RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const sizes: Readonly<Record<ReplicaSize, number>> = { small: 100, large: 10_000 };
const watchers = 1_000;
const transactSegment = "transactions";
const tellSegment = (kind: StoreKind) => `last sync, ${kind}`;

export const spacesReplicaScenario: Scenario = {
  name: "spaces-replica",
  summary: "a replica's optimistic apply with 100 and 10,000 entities, and 1,000 watchers of one entity",
  byName: true,
  run: runSpacesReplica,
};

type Replicas = MeasuringProcess<ReplicasOrder, ReplicasResult>;
type Round = ReadonlyMap<string, ReplicasResult>;

async function runSpacesReplica(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  settings.progress(`connecting ${formatRate(watchers)} watchers on each store`);
  // Connecting takes longer than measuring: the rounds share their processes.
  const world = await ReplicaWorld.open(settings, stores, join(settings.folder, "world"));
  const { outcomes, rounds } = await measureRounds<ReplicaWorld, ReplicasResult>(settings, {
    open: async () => world,
    segments: [
      { name: transactSegment, measure: () => world.transact(settings.segmentMs) },
      ...stores.kinds.map((kind) => ({
        name: tellSegment(kind),
        measure: () => world.tell(kind),
      })),
    ],
    close: async () => undefined,
  });
  await world.close();
  return {
    scenario: spacesReplicaScenario.name,
    title: "Replicas of spaces",
    conditions: [
      `A process with two replicas of one broker on SQLite, one of ${formatRate(sizes.small)} entities and one of ${formatRate(sizes.large)}, each subscribed to all of them. Transactions that read and patch one field of an entity drawn at random, on the two in turn, each after the verdict of the one before. Timed from the call to the subscriber's notification, which comes before the call returns.`,
      `${formatRate(watchers)} watchers: as many connections with a session each, all in one process, subscribed to one entity; one of them commits to it, once in each round. Timed from the call until the last subscriber was told.`,
      ...(stores.kinds.includes("postgres") ? [] : ["PostgreSQL is skipped: no server, or no Redis, answers here."]),
    ],
    durability: ["The notification comes before the commit is durable, and is taken back where the broker rejects it."],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : replicaTables(rounds, stores.kinds),
    bars: [],
  };
}

function applied(round: Round, size: ReplicaSize): LatencyFigures {
  const figures = round.get(transactSegment)?.applied?.[size];
  if (figures === undefined) throw new Error("the round has no transactions");
  return figures;
}

function replicaTables(rounds: readonly Round[], kinds: readonly StoreKind[]): MarkdownTable[] {
  const over = (pick: (round: Round) => number, format: (value: number) => string = formatMs) =>
    formatSummary(summarise(rounds.map(pick)), format);
  const row = (name: string, pick: (figures: LatencyFigures) => number) => [
    name,
    over((round) => pick(applied(round, "small"))),
    over((round) => pick(applied(round, "large"))),
    over((round) => pick(applied(round, "large")) / pick(applied(round, "small")), formatRatio),
  ];
  return [
    {
      caption: "From a transaction's call to its notification, ms",
      columns: ["", "100 entities", "10,000 entities", "large ÷ small"],
      rows: [row("p50", ({ p50Ms }) => p50Ms), row("p99", ({ p99Ms }) => p99Ms)],
    },
    {
      caption: "One commit to an entity that 1,000 sessions watch, ms",
      columns: ["store", "verdict", "last sync"],
      rows: kinds.map((kind) => [
        kind === "sqlite" ? "SQLite" : "PostgreSQL",
        over((round) => round.get(tellSegment(kind))?.verdictMs ?? Number.NaN),
        over((round) => round.get(tellSegment(kind))?.lastSyncMs ?? Number.NaN),
      ]),
    },
  ];
}

class ReplicaWorld {
  readonly #folder: string;
  readonly #removals: (() => Promise<void>)[] = [];
  readonly #watching = new Map<StoreKind, Replicas>();
  #transacting: Replicas | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async open(settings: RunSettings, stores: StoreMaker, folder: string): Promise<ReplicaWorld> {
    mkdirSync(folder);
    const world = new ReplicaWorld(folder);
    for (const kind of stores.kinds) {
      const made = await stores.make(kind, folder, "replica");
      const start = await world.#serve(settings, made, folder);
      const watching = await start();
      await watching.ask({ do: "watch", watchers });
      // Once without counting: whatever is made at the first commit is made.
      await watching.ask({ do: "tell" });
      world.#watching.set(kind, watching);
      if (kind !== "sqlite") continue;
      world.#transacting = await start();
      for (const size of ["small", "large"] as const) {
        await world.#transacting.ask({ do: "fill", size, entities: sizes[size] });
      }
      await world.#transacting.ask({ do: "transact", durationMs: settings.warmUpMs });
    }
    return world;
  }

  transact(durationMs: number): Promise<ReplicasResult> {
    if (this.#transacting === undefined) throw new Error("there is no replica to commit through");
    return this.#transacting.ask({ do: "transact", durationMs });
  }

  tell(kind: StoreKind): Promise<ReplicasResult> {
    const watching = this.#watching.get(kind);
    if (watching === undefined) throw new Error(`no replica watches on ${kind}`);
    return watching.ask({ do: "tell" });
  }

  async close(): Promise<void> {
    for (const remove of this.#removals.reverse()) await remove();
    rmSync(this.#folder, { recursive: true });
  }

  /** A broker on the store; what is returned starts a process of replicas on it. */
  async #serve(settings: RunSettings, made: MadeStore, folder: string): Promise<() => Promise<Replicas>> {
    const [mesh] = await addMeshes(made.location, wishMeshes("bench", 1));
    if (mesh === undefined) throw new Error("there is no mesh to commit to");
    const broker = await BenchBroker.start(made.location, folder, settings.closing);
    this.#removals.push(made.remove, () => broker.kill());
    return async () => {
      const script = new URL("../spaces/replicas.ts", import.meta.url);
      const replicas: Replicas = await MeasuringProcess.start(settings.closing, script);
      this.#removals.push(() => replicas.stop());
      await replicas.ask({ do: "connect", url: broker.url, meshId: mesh.id, keys: mesh.keys });
      return replicas;
    };
  }
}
