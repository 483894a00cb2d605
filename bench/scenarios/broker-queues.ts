// Jobs from a queue: leased and acknowledged by workers, beside pg-boss on the same PostgreSQL. Each party has data of its
// own and a process of its own, with its workers in it.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addMeshes, wishMeshes } from "../broker/bench-meshes.ts";
import { rowsMesh } from "../broker/rows-order.ts";
import { findStores, type StoreMaker } from "../broker/store-pair.ts";
import type { JobsOrder, JobsResult } from "../load/job-workers.ts";
import { judgeBar } from "../method/bars.ts";
import { readMachineFacts } from "../method/machine.ts";
import { cleanRounds, runRounds } from "../method/rounds.ts";
import { summarise } from "../method/statistics.ts";
import { readCpuTimes } from "../method/steal.ts";
import { installedVersion } from "../peers/installed-version.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import { describeRound, formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import type { Figures, RoundFigures } from "./accept-figures.ts";
import { figuresOf } from "./broker-accept-figures.ts";
import type { MarkdownTable, RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const parties = ["claudemesh, SQLite", "claudemesh, PostgreSQL", "pg-boss"] as const;
type Party = (typeof parties)[number];
type Shape = { readonly workers: number; readonly jobsAtOnce: number };

const shapes: readonly Shape[] = [
  { workers: 1, jobsAtOnce: 1 },
  { workers: 16, jobsAtOnce: 1 },
  { workers: 64, jobsAtOnce: 1 },
  { workers: 16, jobsAtOnce: 10 },
];
const promised: Shape = { workers: 16, jobsAtOnce: 1 };
const queuesBar = { name: "jobs/s on PostgreSQL ÷ pg-boss, 16 workers", kind: "at_least", limit: 2 } as const;
/** More than any party does in a second. */
const jobsPerSecond = 8_000;

const nameOf = (party: Party, { workers, jobsAtOnce }: Shape) => `${party}, ${workers} workers, ${jobsAtOnce} at once`;

export const brokerQueuesScenario: Scenario = {
  name: "broker-queues",
  summary: "jobs leased from a queue and acknowledged, beside pg-boss",
  byName: true,
  run: runBrokerQueues,
};

async function runBrokerQueues(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  const there = parties.filter((party) => party === "claudemesh, SQLite" || stores.kinds.includes("postgres"));
  const outcomes = await runRounds<QueuesWorld, Figures>({
    rounds: settings.rounds,
    open: (round) => QueuesWorld.open(settings, stores, there, join(settings.folder, `r${round}`)),
    segments: shapes.flatMap((shape) =>
      there.map((party) => ({
        name: nameOf(party, shape),
        measure: (world: QueuesWorld) => world.work(party, shape, settings.segmentMs),
      })),
    ),
    close: (world) => world.close(),
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  const rounds = cleanRounds(outcomes)?.map(({ figures }) => figures);
  return {
    scenario: brokerQueuesScenario.name,
    title: "Jobs from a queue",
    conditions: [
      "Messages of 1,024 bytes wait in one queue, more than are taken. A worker takes one job, or ten, and settles what it took: lease and ack here, fetch and complete in pg-boss. Times are of both together. In process, without a transport; each party's workers share its process.",
      "claudemesh keeps with each lease the request that it answers, and with each settlement its token: either may be asked again and is answered as the first time. pg-boss keeps the job's state.",
    ],
    durability: [
      "claudemesh, SQLite: WAL mode with synchronous=FULL; every lease and every ack is flushed before it is answered, and shared.",
      "claudemesh, PostgreSQL: fsync and synchronous_commit on; the same.",
      `pg-boss ${installedVersion("pg-boss")}: same PostgreSQL, fsync and synchronous_commit on, 20 connections.`,
    ],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : [jobsTable(rounds, there)],
    bars: there.includes("pg-boss") ? [judgeBar(queuesBar, rounds && ratiosToBoss(rounds))] : [],
  };
}

function ratiosToBoss(rounds: readonly RoundFigures[]): number[] {
  const perSecond = (round: RoundFigures, party: Party) => figuresOf(round, nameOf(party, promised)).perSecond;
  return rounds.map((round) => perSecond(round, "claudemesh, PostgreSQL") / perSecond(round, "pg-boss"));
}

function jobsTable(rounds: readonly RoundFigures[], there: readonly Party[]): MarkdownTable {
  const rows = shapes.flatMap((shape) =>
    there.map((party) => {
      const figures = rounds.map((round) => figuresOf(round, nameOf(party, shape)));
      const over = (pick: (each: Figures) => number, format: (value: number) => string) =>
        formatSummary(summarise(figures.map(pick)), format);
      const ratios = rounds.map((round, at) => {
        const base = there.includes("pg-boss") ? figuresOf(round, nameOf("pg-boss", shape)).perSecond : Number.NaN;
        return (figures[at] as Figures).perSecond / base;
      });
      return [
        party,
        String(shape.workers),
        String(shape.jobsAtOnce),
        over(({ perSecond }) => perSecond, formatRate),
        there.includes("pg-boss") ? formatSummary(summarise(ratios), formatRatio) : "–",
        over(({ p50Ms }) => p50Ms, formatMs),
        over(({ p99Ms }) => p99Ms, formatMs),
      ];
    }),
  );
  const columns = ["what", "workers", "jobs taken at once", "jobs/s", "÷ pg-boss", "p50 ms", "p99 ms"];
  return { caption: "Jobs taken and settled per second", columns, rows };
}

type Worker = MeasuringProcess<JobsOrder, JobsResult>;

class QueuesWorld {
  readonly #workers: ReadonlyMap<Party, Worker>;
  readonly #removals: readonly (() => Promise<void>)[];

  private constructor(workers: ReadonlyMap<Party, Worker>, removals: readonly (() => Promise<void>)[]) {
    this.#workers = workers;
    this.#removals = removals;
  }

  static async open(
    settings: RunSettings,
    stores: StoreMaker,
    there: readonly Party[],
    folder: string,
  ): Promise<QueuesWorld> {
    mkdirSync(folder);
    const workers = new Map<Party, Worker>();
    const removals: (() => Promise<void>)[] = [];
    for (const party of there) {
      const kind = party === "claudemesh, SQLite" ? "sqlite" : "postgres";
      const made = await stores.make(kind, folder, party === "pg-boss" ? "boss" : "queues");
      removals.push(made.remove);
      workers.set(party, await startWorker(settings, party, made.location));
    }
    const world = new QueuesWorld(workers, [...removals, async () => rmSync(folder, { recursive: true })]);
    for (const party of there) await world.work(party, { workers: 16, jobsAtOnce: 1 }, settings.warmUpMs / 4);
    return world;
  }

  async work(party: Party, shape: Shape, durationMs: number): Promise<Figures> {
    const worker = this.#workers.get(party);
    if (worker === undefined) throw new Error(`there is no ${party} here`);
    await worker.ask({ do: "fill", jobs: Math.ceil((durationMs / 1_000) * jobsPerSecond) });
    return worker.ask({ do: "work", ...shape, durationMs });
  }

  async close(): Promise<void> {
    for (const worker of this.#workers.values()) {
      await worker.ask({ do: "close" });
      await worker.stop();
    }
    for (const remove of this.#removals) await remove();
  }
}

async function startWorker(
  { closing }: RunSettings,
  party: Party,
  location: Awaited<ReturnType<StoreMaker["make"]>>["location"],
): Promise<Worker> {
  if (party === "pg-boss") {
    if (location.kind !== "postgres") throw new Error("pg-boss needs a PostgreSQL");
    return MeasuringProcess.start(closing, new URL("../peers/pg-boss-jobs.ts", import.meta.url), location.url);
  }
  const [mesh] = await addMeshes(location, wishMeshes("bench", 1));
  if (mesh === undefined) throw new Error("there is no mesh");
  const { id, sender } = rowsMesh(mesh);
  const script = new URL("../broker/in-process-queues.ts", import.meta.url);
  return MeasuringProcess.start(closing, script, JSON.stringify(location), id, sender);
}
