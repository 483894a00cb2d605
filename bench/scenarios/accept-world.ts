// The processes of one round: our daemon, the layers alone, and the load. All are fresh and warmed up alike, because
// code that has run for a minute is faster than code that has just started; the load generator alone stays for the run.
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { generateMemberKeys } from "@claudemesh/client/keys";
import { paddedLength } from "@claudemesh/protocol/messages/sealed-content";
import type { SealOrder, SealResult } from "../layers/sealing.ts";
import type { RowShape, SqliteOrder, SqliteResult } from "../layers/sqlite-rows.ts";
import type { IdOrder } from "../load/client-ids.ts";
import type { LoadOrder, LoadResult } from "../load/generator.ts";
import { BenchDaemon } from "../processes/bench-daemon.ts";
import type { Closing } from "../processes/closing.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import type { RunSettings } from "./scenario.ts";

export const messageBytes = 1_024;
const message = "m".repeat(messageBytes);

export type SendVariant = {
  readonly name: string;
  readonly sealed: boolean;
  readonly ids: IdOrder;
  readonly row: RowShape;
};

const topicRow: RowShape = {
  to: "#bench",
  kind: "topic",
  ref: "bench",
  envelopeVersion: "1",
  payloadBytes: messageBytes,
};

export const topicInOrder: SendVariant = {
  name: "topic, time-ordered ids",
  sealed: false,
  ids: "time_ordered",
  row: topicRow,
};

/** What a box holds besides: both keys, the id, lengths, nonce and authenticator. */
const besideTheBodyBytes = 213;

export function createVariants(): readonly SendVariant[] {
  const recipient = generateMemberKeys().ed25519.public_key;
  const payloadBytes = paddedLength(messageBytes + besideTheBodyBytes);
  return [
    topicInOrder,
    { name: "topic, random ids", sealed: false, ids: "random", row: topicRow },
    {
      name: "sealed direct message, time-ordered ids",
      sealed: true,
      ids: "time_ordered",
      row: { to: `dm:${recipient}`, kind: "dm", ref: recipient, envelopeVersion: "3", payloadBytes },
    },
  ];
}

export type LoadProcess = MeasuringProcess<LoadOrder, LoadResult>;

export function startLoad(closing: Closing): Promise<LoadProcess> {
  return MeasuringProcess.start<LoadOrder, LoadResult>(closing, new URL("../load/generator.ts", import.meta.url));
}

/** One daemon under load, with an account of what it has accepted. */
export class DaemonUnderLoad {
  readonly #daemon: BenchDaemon;
  readonly #load: LoadProcess;
  #accepted = 0;

  private constructor(daemon: BenchDaemon, load: LoadProcess) {
    this.#daemon = daemon;
    this.#load = load;
  }

  static async start(home: string, load: LoadProcess, closing: Closing): Promise<DaemonUnderLoad> {
    return new DaemonUnderLoad(await BenchDaemon.start(home, closing), load);
  }

  get pid(): number {
    return this.#daemon.pid;
  }

  async accept(variant: SendVariant, callers: number, durationMs: number): Promise<LoadResult> {
    const { socketPath } = this.#daemon;
    const { ids, row } = variant;
    const result = await this.#load.ask({ socketPath, callers, durationMs, ids, to: row.to, message });
    this.#accepted += result.accepted;
    return result;
  }

  /** Killed without notice, and then held to every 202 that it gave. */
  async killAndVerify(): Promise<number> {
    await this.#daemon.kill();
    this.#daemon.verifyRows(this.#accepted);
    return this.#accepted;
  }
}

export class AcceptWorld {
  readonly daemon: DaemonUnderLoad;
  readonly #folder: string;
  readonly #load: LoadProcess;
  readonly #sqlite: MeasuringProcess<SqliteOrder, SqliteResult>;
  readonly #sealing: MeasuringProcess<SealOrder, SealResult>;
  readonly #endLayers: () => Promise<void>;

  private constructor(parts: {
    readonly folder: string;
    readonly daemon: DaemonUnderLoad;
    readonly load: LoadProcess;
    readonly sqlite: MeasuringProcess<SqliteOrder, SqliteResult>;
    readonly sealing: MeasuringProcess<SealOrder, SealResult>;
    readonly endLayers: () => Promise<void>;
  }) {
    this.#folder = parts.folder;
    this.daemon = parts.daemon;
    this.#load = parts.load;
    this.#sqlite = parts.sqlite;
    this.#sealing = parts.sealing;
    this.#endLayers = parts.endLayers;
  }

  static async open(settings: RunSettings, load: LoadProcess, folder: string): Promise<AcceptWorld> {
    mkdirSync(folder);
    const { closing } = settings;
    const [sqlite, sealing, route, daemon] = await Promise.all([
      MeasuringProcess.start<SqliteOrder, SqliteResult>(closing, new URL("../layers/sqlite-rows.ts", import.meta.url)),
      MeasuringProcess.start<SealOrder, SealResult>(closing, new URL("../layers/sealing.ts", import.meta.url)),
      MeasuringProcess.start<never, never>(
        closing,
        new URL("../layers/fastify-route.ts", import.meta.url),
        routeSocket(folder),
      ),
      DaemonUnderLoad.start(join(folder, "home"), load, closing),
    ]);
    const endLayers = async () => {
      await Promise.all([sqlite.stop(), sealing.stop(), route.stop()]);
    };
    const world = new AcceptWorld({ folder, daemon, load, sqlite, sealing, endLayers });
    await world.#warmUp(settings.warmUpMs);
    return world;
  }

  http(callers: number, durationMs: number): Promise<LoadResult> {
    const { ids, row } = topicInOrder;
    return this.#load.ask({ socketPath: routeSocket(this.#folder), callers, durationMs, ids, to: row.to, message });
  }

  rows({ ids, row }: SendVariant, rowsPerTransaction: number, durationMs: number): Promise<SqliteResult> {
    return this.#sqlite.ask({ path: join(this.#folder, "raw", "outbox.db"), rowsPerTransaction, durationMs, ids, row });
  }

  sealing(durationMs: number): Promise<SealResult> {
    return this.#sealing.ask({ durationMs, bodyBytes: messageBytes });
  }

  async close(): Promise<void> {
    await this.#endLayers();
    await this.daemon.killAndVerify();
    rmSync(this.#folder, { recursive: true });
  }

  async #warmUp(durationMs: number): Promise<void> {
    await this.http(64, durationMs);
    await this.daemon.accept(topicInOrder, 64, durationMs);
    await this.rows(topicInOrder, 64, durationMs / 4);
    await this.sealing(durationMs / 4);
  }
}

function routeSocket(folder: string): string {
  return join(folder, "route.sock");
}
