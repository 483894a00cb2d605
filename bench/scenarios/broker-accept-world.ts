// The processes of one round of the broker's accepts: per store its rows in a bare loop, our service in process and a
// whole broker, each on data of its own; the transports alone; and the load. All are fresh and warmed up alike.
import { mkdirSync, rmSync } from "node:fs";
import type { ApiOrder, ApiResult } from "../broker/api-load.ts";
import { BenchBroker } from "../broker/bench-broker.ts";
import { addMeshes, type BenchMesh, wishMeshes } from "../broker/bench-meshes.ts";
import type { InProcessOrder, InProcessResult } from "../broker/in-process-accepts.ts";
import { type RowsOrder, type RowsResult, rowsMesh } from "../broker/rows-order.ts";
import type { StoreKind } from "../broker/store-location.ts";
import type { MadeStore, StoreMaker } from "../broker/store-pair.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import type { Figures } from "./accept-figures.ts";
import { meshCounts, outstandings, type Shape, type Transport, transports } from "./broker-accept-figures.ts";
import type { RunSettings } from "./scenario.ts";

export type AnsweredFigures = Figures & { readonly answered: number };
export type ApiLoad = MeasuringProcess<ApiOrder, ApiResult>;
type Rows = MeasuringProcess<RowsOrder, RowsResult>;
type InProcess = MeasuringProcess<InProcessOrder, InProcessResult>;
type Served = MeasuringProcess<"port", number>;

export const startApiLoad = (settings: RunSettings): Promise<ApiLoad> =>
  MeasuringProcess.start(settings.closing, new URL("../broker/api-load.ts", import.meta.url));

const rowsScripts: Readonly<Record<StoreKind, URL>> = {
  sqlite: new URL("../broker/sqlite-rows.ts", import.meta.url),
  postgres: new URL("../broker/postgres-rows.ts", import.meta.url),
};

/** One store with everything that is measured on it. */
class StoreWorld {
  readonly broker: BenchBroker;
  readonly meshes: readonly BenchMesh[];
  readonly rows: Rows;
  readonly inProcess: InProcess;
  readonly remove: () => Promise<void>;

  private constructor(parts: Pick<StoreWorld, "broker" | "meshes" | "rows" | "inProcess" | "remove">) {
    this.broker = parts.broker;
    this.meshes = parts.meshes;
    this.rows = parts.rows;
    this.inProcess = parts.inProcess;
    this.remove = parts.remove;
  }

  static async open(kind: StoreKind, stores: StoreMaker, folder: string, settings: RunSettings): Promise<StoreWorld> {
    const { closing } = settings;
    // Rows, service and broker each fill data of their own.
    const made: MadeStore[] = [];
    for (const label of ["raw", "service", "broker"]) made.push(await stores.make(kind, folder, label));
    const [raw, service, whole] = made;
    if (raw === undefined || service === undefined || whole === undefined)
      throw new Error("three stores were asked for");
    const wishes = wishMeshes("bench", Math.max(...meshCounts));
    // The same meshes in all three, so that one order fits each.
    const meshes = await addMeshes(whole.location, wishes);
    await addMeshes(raw.location, wishes, meshes);
    await addMeshes(service.location, wishes, meshes);
    const rowsScript = rowsScripts[kind];
    const rowsArgument = raw.location.kind === "sqlite" ? raw.location.path : JSON.stringify(raw.location);
    const serviceScript = new URL("../broker/in-process-accepts.ts", import.meta.url);
    const rows: Rows = await MeasuringProcess.start(closing, rowsScript, rowsArgument);
    const inProcess: InProcess = await MeasuringProcess.start(closing, serviceScript, JSON.stringify(service.location));
    const broker = await BenchBroker.start(whole.location, folder, closing);
    const remove = async () => {
      await Promise.all([rows.stop(), inProcess.stop()]);
      for (const { remove: removeOne } of made) await removeOne();
    };
    return new StoreWorld({ broker, meshes, rows, inProcess, remove });
  }

  order({ outstanding, meshes }: Shape, durationMs: number): RowsOrder {
    return { meshes: this.meshes.slice(0, meshes).map(rowsMesh), outstanding, durationMs, ids: "time_ordered" };
  }
}

export class BrokerAcceptWorld {
  readonly #folder: string;
  readonly #load: ApiLoad;
  readonly #stores: ReadonlyMap<StoreKind, StoreWorld>;
  readonly #transports: Served;
  readonly #transportPort: number;

  private constructor(
    folder: string,
    load: ApiLoad,
    stores: ReadonlyMap<StoreKind, StoreWorld>,
    served: { readonly process: Served; readonly port: number },
  ) {
    this.#folder = folder;
    this.#load = load;
    this.#stores = stores;
    this.#transports = served.process;
    this.#transportPort = served.port;
  }

  static async open(
    settings: RunSettings,
    makers: StoreMaker,
    load: ApiLoad,
    folder: string,
  ): Promise<BrokerAcceptWorld> {
    mkdirSync(folder);
    const stores = new Map<StoreKind, StoreWorld>();
    for (const kind of makers.kinds) stores.set(kind, await StoreWorld.open(kind, makers, folder, settings));
    const script = new URL("../broker/transport-alone.ts", import.meta.url);
    const process: Served = await MeasuringProcess.start(settings.closing, script);
    const world = new BrokerAcceptWorld(folder, load, stores, { process, port: await process.ask("port") });
    await world.#warmUp(settings.warmUpMs);
    return world;
  }

  rows(kind: StoreKind, shape: Shape, durationMs: number): Promise<Figures> {
    const store = this.#store(kind);
    return store.rows.ask(store.order(shape, durationMs));
  }

  limiter(shape: Shape, durationMs: number): Promise<Figures> {
    const store = this.#store("postgres");
    return store.rows.ask({ ...store.order(shape, durationMs), what: "limiter" });
  }

  inProcess(kind: StoreKind, shape: Shape, durationMs: number): Promise<Figures> {
    const store = this.#store(kind);
    return store.inProcess.ask(store.order(shape, durationMs));
  }

  transport(transport: Transport, outstanding: number, durationMs: number): Promise<Figures> {
    const [store] = this.#stores.values();
    const meshes = store?.meshes.slice(0, 1) ?? [];
    const order = { transport, port: this.#transportPort, meshes, outstanding, durationMs };
    return this.#load.ask({ ...order, ids: "time_ordered" });
  }

  async api(kind: StoreKind, transport: Transport, shape: Shape, durationMs: number): Promise<AnsweredFigures> {
    const { broker, meshes } = this.#store(kind);
    const { outstanding } = shape;
    const order = { transport, port: broker.port, meshes: meshes.slice(0, shape.meshes), outstanding, durationMs };
    const result = await this.#load.ask({ ...order, ids: "time_ordered" });
    broker.promised(result.answered);
    return result;
  }

  broker(kind: StoreKind): BenchBroker {
    return this.#store(kind).broker;
  }

  async close(): Promise<void> {
    await this.#transports.stop();
    for (const { broker } of this.#stores.values()) await broker.killAndVerify();
    for (const store of this.#stores.values()) await store.remove();
    rmSync(this.#folder, { recursive: true });
  }

  #store(kind: StoreKind): StoreWorld {
    const store = this.#stores.get(kind);
    if (store === undefined) throw new Error(`there is no ${kind} in this round`);
    return store;
  }

  // With as many as there will ever be, and for as long on every side: a process compiles what it has done some ten
  // thousand times, and a broker that has served for two seconds is to be judged like one that has served for a day.
  async #warmUp(durationMs: number): Promise<void> {
    const outstanding = Math.max(...outstandings);
    const shape = { outstanding, meshes: Math.max(...meshCounts) };
    for (const transport of transports) await this.transport(transport, outstanding, durationMs);
    for (const kind of this.#stores.keys()) {
      await this.rows(kind, shape, durationMs);
      await this.inProcess(kind, shape, durationMs);
      for (const transport of transports) await this.api(kind, transport, shape, durationMs);
    }
    if (this.#stores.has("postgres")) await this.limiter(shape, durationMs / 4);
  }
}
