// How many commits a space takes in process, beside the same rows written without a service: in a bare loop on SQLite, by
// pgbench on PostgreSQL. And what a long history costs a reader of the past.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addMeshes, wishMeshes } from "../broker/bench-meshes.ts";
import type { StoreKind, StoreLocation } from "../broker/store-location.ts";
import { findStores, type MadeStore, type StoreMaker } from "../broker/store-pair.ts";
import { judgeBar } from "../method/bars.ts";
import { readMachineFacts } from "../method/machine.ts";
import type { Segment } from "../method/rounds.ts";
import { runPgbench } from "../peers/pgbench.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import { formatRate } from "../report.ts";
import type { BenchSpace } from "../spaces/bench-commit.ts";
import type { CommitsOrder, CommitsResult, HistoryOrder } from "../spaces/in-process-commits.ts";
import { preparePgbenchCommits } from "../spaces/pgbench-commits.ts";
import type { Figures, RoundFigures } from "./accept-figures.ts";
import { measureRounds } from "./measured-rounds.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";
import {
  commitRatios,
  commitsSegment,
  contendedSegment,
  type HistoryLength,
  historySegment,
  manySessions,
  rowsSegment,
  type Sessions,
  sessionCounts,
  spacesTables,
} from "./spaces-figures.ts";

const lookSegmentMs = 2_000;
const shortRevisions = 100;
const longRevisionsFull = 100_000;
const longRevisionsLook = 10_000;
const historyIds: Readonly<Record<HistoryLength, string>> = { short: "history:short", long: "history:long" };
const commitLimit = 0.5;

export const spacesScenario: Scenario = {
  name: "spaces",
  summary: "commits to a space beside the same rows in a bare loop and by pgbench, and reads of a long history",
  byName: true,
  run: runSpaces,
};

type Service = MeasuringProcess<CommitsOrder | HistoryOrder, CommitsResult>;

async function runSpaces(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const stores = await findStores(settings.closing);
  const isLook = settings.segmentMs < lookSegmentMs;
  const longRevisions = isLook ? longRevisionsLook : longRevisionsFull;
  const histories = new Map<StoreKind, Service>();
  for (const kind of stores.kinds) {
    settings.progress(`making ${formatRate(longRevisions)} revisions on ${kind}`);
    const service = (await StoreSpaces.open(settings, stores, kind, settings.folder, "history")).service;
    await service.ask({ do: "make_history", id: historyIds.short, revisions: shortRevisions });
    await service.ask({ do: "make_history", id: historyIds.long, revisions: longRevisions });
    histories.set(kind, service);
  }
  const { outcomes, rounds } = await measureRounds<SpacesWorld, Figures>(settings, {
    open: (round) => SpacesWorld.open(settings, stores, histories, join(settings.folder, `r${round}`)),
    segments: stores.kinds.flatMap((kind) => segmentsOn(kind, settings.segmentMs)),
    close: (world) => world.close(),
  });
  const revisions = { short: formatRate(shortRevisions), long: formatRate(longRevisions) };
  return {
    scenario: spacesScenario.name,
    title: "Commits and history of spaces",
    conditions: [
      "A commit has one confirmed read and one patch of a field of a small document: a claim, the session's place, a log row, a revision, a head, every tenth time a snapshot, and the space's last seq. In process: the broker's service on its own backend, each session with one commit outstanding.",
      "The same rows on SQLite: prepared statements in a bare loop, as many commits per transaction as there are sessions, nothing read and nothing judged. On PostgreSQL: pgbench, one statement and one transaction per commit, which takes its seq from the space's row; as many clients as sessions.",
      "One entity: all sessions read and write the same field; who is refused reads what the refusal shows and commits again, without waiting.",
      `History: one entity with ${revisions.short} revisions and one with ${revisions.long} in one space${isLook ? " (a short run: a full one has 100,000)" : ""}, read as of a seq drawn at random.`,
      ...(stores.kinds.includes("postgres") ? [] : ["PostgreSQL is skipped: no server, or no Redis, answers here."]),
    ],
    durability: [
      "SQLite: WAL mode with synchronous=FULL, for the service and for the bare loop; a verdict is told after the COMMIT of its rows.",
      "PostgreSQL: fsync and synchronous_commit on, for the service and for pgbench; a verdict is told after the COMMIT of its rows.",
    ],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : spacesTables(rounds, stores.kinds, revisions),
    bars: judgeBars(rounds, stores.kinds),
  };
}

function judgeBars(rounds: readonly RoundFigures[] | undefined, kinds: readonly StoreKind[]) {
  return kinds.map((kind) =>
    judgeBar(
      {
        name: `${kind}: commits/s of ${manySessions} sessions ÷ the same rows/s`,
        kind: "at_least",
        limit: commitLimit,
      },
      rounds && commitRatios(rounds, kind, manySessions),
    ),
  );
}

function segmentsOn(kind: StoreKind, segmentMs: number): Segment<SpacesWorld, Figures>[] {
  return [
    ...sessionCounts.flatMap((sessions) => [
      { name: rowsSegment(kind, sessions), measure: (world: SpacesWorld) => world.rows(kind, sessions, segmentMs) },
      {
        name: commitsSegment(kind, sessions),
        measure: (world: SpacesWorld) => world.commits(kind, sessions, "own", segmentMs),
      },
    ]),
    {
      name: contendedSegment(kind),
      measure: (world: SpacesWorld) => world.commits(kind, manySessions, "one", segmentMs),
    },
    ...(["short", "long"] as const).map((length) => ({
      name: historySegment(kind, length),
      measure: (world: SpacesWorld) => world.history(kind, length, segmentMs),
    })),
  ];
}

/** One store with our service on it; and, for rounds, a store like it with the same rows written bare. */
class StoreSpaces {
  readonly service: Service;
  readonly rows: (sessions: Sessions, durationMs: number) => Promise<Figures>;
  readonly remove: () => Promise<void>;

  private constructor(parts: Pick<StoreSpaces, "service" | "rows" | "remove">) {
    this.service = parts.service;
    this.rows = parts.rows;
    this.remove = parts.remove;
  }

  static async open(
    settings: RunSettings,
    stores: StoreMaker,
    kind: StoreKind,
    folder: string,
    label: string,
  ): Promise<StoreSpaces> {
    const ours = await stores.make(kind, folder, label);
    const bare = await stores.make(kind, folder, `${label}-bare`);
    const wishes = wishMeshes("bench", 1);
    const meshes = await addMeshes(ours.location, wishes);
    await addMeshes(bare.location, wishes, meshes);
    const [mesh] = meshes;
    if (mesh === undefined) throw new Error("there is no mesh to commit to");
    const bench: BenchSpace = { meshId: mesh.id, member: mesh.keys.ed25519.public_key };
    const script = new URL("../spaces/in-process-commits.ts", import.meta.url);
    const [location, who] = [JSON.stringify(ours.location), JSON.stringify(bench)];
    const service: Service = await MeasuringProcess.start(settings.closing, script, location, who);
    const { rows, stop } = await openRows(settings, bare, bench, folder);
    const remove = async () => {
      await Promise.all([service.stop(), stop()]);
      await Promise.all([ours.remove(), bare.remove()]);
    };
    return new StoreSpaces({ service, rows, remove });
  }
}

async function openRows(settings: RunSettings, { location }: MadeStore, bench: BenchSpace, folder: string) {
  if (location.kind === "postgres") return openPgbench(location, bench, join(folder, "commits.sql"));
  const script = new URL("../spaces/sqlite-commit-rows.ts", import.meta.url);
  const started = await MeasuringProcess.start<CommitsOrder, CommitsResult>(
    settings.closing,
    script,
    location.path,
    JSON.stringify(bench),
  );
  return {
    rows: (sessions: Sessions, durationMs: number) =>
      started.ask({ do: "commit", sessions, entities: "own", durationMs }),
    stop: () => started.stop(),
  };
}

async function openPgbench(
  { url }: Extract<StoreLocation, { kind: "postgres" }>,
  bench: BenchSpace,
  scriptPath: string,
) {
  await preparePgbenchCommits(url, scriptPath, bench, manySessions);
  const rows = async (sessions: Sessions, durationMs: number): Promise<Figures> => {
    const figures = await runPgbench(url, scriptPath, sessions, durationMs);
    if (figures === undefined) throw new Error("pgbench is not installed; it comes with PostgreSQL");
    return figures;
  };
  return { rows, stop: async () => undefined };
}

class SpacesWorld {
  readonly #stores = new Map<StoreKind, StoreSpaces>();
  readonly #histories: ReadonlyMap<StoreKind, Service>;
  readonly #folder: string;

  private constructor(histories: ReadonlyMap<StoreKind, Service>, folder: string) {
    this.#histories = histories;
    this.#folder = folder;
  }

  static async open(
    settings: RunSettings,
    stores: StoreMaker,
    histories: ReadonlyMap<StoreKind, Service>,
    folder: string,
  ): Promise<SpacesWorld> {
    mkdirSync(folder);
    const world = new SpacesWorld(histories, folder);
    for (const kind of stores.kinds) {
      world.#stores.set(kind, await StoreSpaces.open(settings, stores, kind, folder, "round"));
      for (const { measure } of segmentsOn(kind, settings.warmUpMs / 4)) await measure(world);
    }
    return world;
  }

  rows(kind: StoreKind, sessions: Sessions, durationMs: number): Promise<Figures> {
    return get(this.#stores, kind).rows(sessions, durationMs);
  }

  commits(kind: StoreKind, sessions: Sessions, entities: "own" | "one", durationMs: number): Promise<Figures> {
    return get(this.#stores, kind).service.ask({ do: "commit", sessions, entities, durationMs });
  }

  history(kind: StoreKind, length: HistoryLength, durationMs: number): Promise<Figures> {
    return get(this.#histories, kind).ask({ do: "read_history", id: historyIds[length], durationMs });
  }

  async close(): Promise<void> {
    for (const store of this.#stores.values()) await store.remove();
    rmSync(this.#folder, { recursive: true });
  }
}

function get<Value>(map: ReadonlyMap<StoreKind, Value>, kind: StoreKind): Value {
  const value = map.get(kind);
  if (value === undefined) throw new Error(`there is no ${kind} here`);
  return value;
}
