// One round's broker and daemon, and the ways in which rows come to be drained: fed while they leave, one by one or many in
// a request, and waiting from a time when the broker was away.
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { type Peer, until, type World } from "../../tests/support/world.ts";
import { type CpuSecondsOf, countCpu } from "../method/process-cpu.ts";
import {
  type Callers,
  countOpenRows,
  type Load,
  message,
  openMesh,
  type Socket,
  sendOrder,
  topic,
} from "./mesh-world.ts";
import type { RunSettings } from "./scenario.ts";

export const share = 0.7;
export const oneByOne = { callers: 64 };
export const manyAtOnce = { callers: 8, sendsPerRequest: 32 };
export const inFlight = 256;
/** The daemon comes back to its broker after at most a minute, and then has the rows to drain. */
const patienceMs = 300_000;

export type DrainLengths = {
  /** Of a feed, and of the time that a backlog lasts at the share. */
  readonly feedMs: number;
  readonly segmentMs: number;
  readonly warmUpMs: number;
};

export type LiveFigures = {
  readonly broker: number;
  readonly taken: number;
  readonly sends: number;
  readonly p99Ms: number;
  readonly left: number;
  readonly cpu: CpuSecondsOf<"broker" | "daemon" | "load">;
};

export type BacklogFigures = {
  readonly broker: number;
  /** Sends per second while the broker is away. */
  readonly acceptAlone: number;
  readonly rows: number;
  readonly drained: number;
  readonly cpu: CpuSecondsOf<"broker" | "daemon">;
};

export class DrainWorld {
  readonly #lengths: DrainLengths;
  readonly #load: Load;
  readonly #socket: Socket;
  readonly #world: World;
  readonly #sender: Peer;
  readonly #direct: Peer;
  readonly close: () => Promise<void>;

  private constructor(
    lengths: DrainLengths,
    processes: { readonly load: Load; readonly socket: Socket },
    mesh: Awaited<ReturnType<typeof openMesh>>,
  ) {
    const [sender, direct] = mesh.peers;
    if (sender === undefined || direct === undefined) throw new Error("the mesh has no peers");
    this.#lengths = lengths;
    this.#load = processes.load;
    this.#socket = processes.socket;
    this.#world = mesh.world;
    this.close = mesh.close;
    this.#sender = sender;
    this.#direct = direct;
  }

  static async open(
    settings: RunSettings,
    lengths: DrainLengths,
    processes: { readonly load: Load; readonly socket: Socket },
  ): Promise<DrainWorld> {
    const mesh = await openMesh(settings, ["sender", "direct"]);
    const world = new DrainWorld(lengths, processes, mesh);
    await world.#brokerRate(lengths.warmUpMs);
    for (const callers of [oneByOne, manyAtOnce]) {
      await processes.load.ask(sendOrder(world.#sender, callers, lengths.warmUpMs));
    }
    await world.#untilEmpty();
    return world;
  }

  async live(callers: Callers): Promise<LiveFigures> {
    const { segmentMs, feedMs } = this.#lengths;
    await this.#untilEmpty();
    const broker = await this.#brokerRate(segmentMs);
    const pids = { broker: this.#world.broker.pid, daemon: this.#sender.process.pid, load: this.#load.pid };
    const { result, cpu } = await countCpu(pids, () =>
      this.#load.ask(sendOrder(this.#sender, callers, feedMs, broker * share)),
    );
    await sleep(2_000);
    const { accepted: sends, perSecond: taken, p99Ms } = result;
    return { broker, taken, sends, p99Ms, left: countOpenRows(this.#sender), cpu };
  }

  async backlog(): Promise<BacklogFigures> {
    const { segmentMs, warmUpMs, feedMs } = this.#lengths;
    await this.#untilEmpty();
    const before = lastRow(this.#sender);
    await this.#world.broker.kill("SIGTERM");
    // An accept alone is about one and a half times as fast as the share asks for.
    const { perSecond: acceptAlone } = await this.#load.ask(sendOrder(this.#sender, oneByOne, feedMs / 2));
    // The daemon stands still until the broker is as warm as it was, and its rate is known.
    const daemon = this.#sender.process;
    daemon.signal("SIGSTOP");
    await this.#world.startBroker();
    await this.#brokerRate(warmUpMs);
    const broker = await this.#brokerRate(segmentMs);
    const { cpu } = await countCpu({ broker: this.#world.broker.pid, daemon: daemon.pid }, () => {
      daemon.signal("SIGCONT");
      return this.#untilEmpty();
    });
    return { broker, acceptAlone, cpu, ...deliveryRate(this.#sender, before) };
  }

  async #brokerRate(durationMs: number): Promise<number> {
    const { home } = this.#direct;
    const { perSecond } = await this.#socket.ask({
      home,
      mesh: this.#world.mesh,
      topic,
      body: message,
      inFlight,
      durationMs,
    });
    return perSecond;
  }

  async #untilEmpty(): Promise<void> {
    await until("the outbox is empty", () => !hasOpenRows(this.#sender) || undefined, patienceMs);
  }
}

/** Read past the daemon, by one look into an index, so that asking costs it nothing. */
function hasOpenRows(peer: Peer): boolean {
  const open = "SELECT EXISTS (SELECT 1 FROM outbox WHERE status = 'pending')";
  const out = "EXISTS (SELECT 1 FROM outbox WHERE status = 'inflight')";
  return readOne<{ n: number }>(peer, `${open} OR ${out} AS n`).n === 1;
}

function lastRow(peer: Peer): number {
  return readOne<{ n: number }>(peer, "SELECT coalesce(max(rowid), 0) AS n FROM outbox").n;
}

/** From the first row that was done to the last, as the rows themselves say. */
function deliveryRate(peer: Peer, after: number): { readonly rows: number; readonly drained: number } {
  const times = "count(*) AS rows, min(delivered_at) AS first, max(delivered_at) AS last";
  const found = readOne<{ rows: number; first: number; last: number }>(
    peer,
    `SELECT ${times} FROM outbox WHERE rowid > ${after}`,
  );
  return { rows: found.rows, drained: found.rows / ((found.last - found.first) / 1_000) };
}

function readOne<Row>(peer: Peer, sql: string): Row {
  const db = new DatabaseSync(`${peer.folder}/outbox.db`, { readOnly: true });
  try {
    return db.prepare(sql).get() as Row;
  } finally {
    db.close();
  }
}
