// The processes of one round of broker-reach: per store a broker with a thousand connected subscribers, a broker for
// connections that do nothing, and two daemons on a broker of their own.
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { generateMemberKeys, type MemberKeys } from "@claudemesh/client/keys";
import { type Peer, untilOnline, World } from "../../tests/support/world.ts";
import { BenchBroker } from "../broker/bench-broker.ts";
import { addMeshes, type BenchMesh, benchBody } from "../broker/bench-meshes.ts";
import type { SocketsOrder, SocketsResult } from "../broker/many-sockets.ts";
import { raisedLimit, type StoreKind } from "../broker/store-location.ts";
import type { StoreMaker } from "../broker/store-pair.ts";
import type { PairOrder, PairResult } from "../load/daemon-pair.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import type { RunSettings } from "./scenario.ts";

export const subscribers = 1_000;
/** The first ones grow pools that later ones share. */
export const idleFirst = 100;

const warmUpPerSecond = 1_000;

export type ReachFigures = Readonly<Record<string, number>>;

type Sockets = MeasuringProcess<SocketsOrder, SocketsResult>;
type Pair = MeasuringProcess<PairOrder, PairResult>;
type Fan = {
  readonly broker: BenchBroker;
  readonly sockets: Sockets;
  readonly mesh: BenchMesh;
  readonly members: readonly MemberKeys[];
};

export class ReachWorld {
  readonly #settings: RunSettings;
  readonly #fans = new Map<StoreKind, Fan>();
  readonly #removals: (() => Promise<void>)[] = [];
  readonly #daemons: World;
  readonly #peers: Peer[] = [];
  readonly #pair: Pair;

  private constructor(settings: RunSettings, daemons: World, pair: Pair) {
    this.#settings = settings;
    this.#daemons = daemons;
    this.#pair = pair;
  }

  static async open(settings: RunSettings, stores: StoreMaker, folder: string): Promise<ReachWorld> {
    mkdirSync(folder);
    const daemons = new World(["--rate-limit", raisedLimit], folder);
    const endDaemons = settings.closing.add(() => daemons.end());
    const pair: Pair = await MeasuringProcess.start(
      settings.closing,
      new URL("../load/daemon-pair.ts", import.meta.url),
    );
    const world = new ReachWorld(settings, daemons, pair);
    await world.#startDaemons();
    for (const kind of stores.kinds) await world.#openFan(stores, kind, folder);
    world.#removals.push(endDaemons, pair.stop, async () => rmSync(folder, { recursive: true }));
    // Once without counting: whatever is made at the first message is made.
    for (const kind of stores.kinds) await world.fanOut(kind);
    await world.pair(warmUpPerSecond, settings.warmUpMs);
    return world;
  }

  async fanOut(kind: StoreKind): Promise<ReachFigures> {
    const { broker, sockets, mesh } = this.#fan(kind);
    const order = { url: broker.url, meshId: mesh.id, sender: mesh.keys, receivers: subscribers };
    const { acceptedMs = Number.NaN, lastAckMs = Number.NaN } = await sockets.ask({ do: "fan_out", ...order });
    broker.promised(1);
    return { acceptedMs, lastAckMs };
  }

  async pair(perSecond: number, durationMs: number): Promise<ReachFigures> {
    const [sender, receiver] = this.#peers;
    if (sender === undefined || receiver === undefined) throw new Error("there are no two daemons");
    const {
      p50Ms,
      p99Ms,
      perSecond: reached,
    } = await this.#pair.ask({
      senderSocket: join(sender.folder, "sock"),
      receiverSocket: join(receiver.folder, "sock"),
      to: `dm:${receiver.pubkey}`,
      message: benchBody,
      perSecond,
      durationMs,
    });
    return { p50Ms, p99Ms, perSecond: reached };
  }

  /** On the SQLite broker, whose subscribers let go of their sockets first and come back behind it. */
  async idle(count: number): Promise<ReachFigures> {
    const { broker, sockets, mesh, members } = this.#fan("sqlite");
    await sockets.ask({ do: "close" });
    const order = { url: broker.url, meshId: mesh.id, members };
    await sockets.ask({ do: "connect", ...order, count: idleFirst });
    const before = residentBytes(broker.pid);
    const startedAtMs = performance.now();
    await sockets.ask({ do: "connect", ...order, count });
    const connectMs = performance.now() - startedAtMs;
    const bytesEach = (residentBytes(broker.pid) - before) / (count - idleFirst);
    await sockets.ask({ do: "close" });
    await sockets.ask({ do: "connect", ...order, count: subscribers });
    return { bytesEach, connectMs };
  }

  async close(): Promise<void> {
    for (const remove of this.#removals) await remove();
  }

  async #startDaemons(): Promise<void> {
    await this.#daemons.startBroker();
    for (const name of ["alice", "bob"]) {
      const peer = await this.#daemons.addPeer(name);
      await peer.start();
      await untilOnline(peer);
      this.#peers.push(peer);
    }
  }

  async #openFan(stores: StoreMaker, kind: StoreKind, folder: string): Promise<void> {
    const made = await stores.make(kind, folder, "reach");
    const members: MemberKeys[] = Array.from({ length: subscribers }, generateMemberKeys);
    const [mesh] = await addMeshes(made.location, [{ name: "bench", subscribers: members }]);
    if (mesh === undefined) throw new Error("there is no mesh to send to");
    const { closing } = this.#settings;
    const broker = await BenchBroker.start(made.location, folder, closing);
    const script = new URL("../broker/many-sockets.ts", import.meta.url);
    const sockets: Sockets = await MeasuringProcess.start(closing, script);
    await sockets.ask({ do: "connect", url: broker.url, meshId: mesh.id, members, count: subscribers });
    this.#fans.set(kind, { broker, sockets, mesh, members });
    this.#removals.push(sockets.stop, () => broker.killAndVerify(), made.remove);
  }

  #fan(kind: StoreKind): Fan {
    const fan = this.#fans.get(kind);
    if (fan === undefined) throw new Error(`there is no ${kind} here`);
    return fan;
  }
}

function residentBytes(pid: number): number {
  const [, kib] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) * 1_024;
}
