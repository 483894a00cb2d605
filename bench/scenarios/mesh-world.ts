// A broker and daemons that are connected to it, for scenarios in which rows leave: real processes in one folder, started
// as a user starts them.
import { appendFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { bodyOf } from "@claudemesh/client/daemon";
import { runJson } from "../../tests/support/process.ts";
import { type Peer, until, World } from "../../tests/support/world.ts";
import type { SocketOrder, SocketResult } from "../layers/broker-socket.ts";
import type { LoadOrder, LoadResult } from "../load/generator.ts";
import type { Closing } from "../processes/closing.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import type { RunSettings } from "./scenario.ts";

export const topic = "bench";
export const message = "m".repeat(1_024);

/** An outbox keeps what is done; no run comes near this. */
const outboxBytesMax = 2 ** 36;

export type MeshWorld = {
  readonly world: World;
  readonly peers: readonly Peer[];
  readonly close: () => Promise<void>;
};

export async function openMesh({ closing, folder }: RunSettings, names: readonly string[]): Promise<MeshWorld> {
  const world = new World(["--rate-limit", "100000000/60s"], folder);
  const close = closing.add(() => world.end());
  await world.startBroker();
  const peers: Peer[] = [];
  for (const name of names) {
    const peer = await world.addPeer(name);
    appendFileSync(`${peer.folder}/config.toml`, `\n[outbox]\nmax_bytes = ${outboxBytesMax}\n`);
    await peer.start();
    await until(`${name} is online`, async () => bodyOf(await peer.client.health()).broker.state === "online");
    peers.push(peer);
  }
  const [owner] = peers;
  if (owner !== undefined) await runJson(["topic", "create", topic], { home: owner.home });
  return { world, peers, close };
}

export type Load = MeasuringProcess<LoadOrder, LoadResult>;
export type Socket = MeasuringProcess<SocketOrder, SocketResult>;

export const startSocket = (closing: Closing): Promise<Socket> =>
  MeasuringProcess.start(closing, new URL("../layers/broker-socket.ts", import.meta.url));

/** How many send at a time, and how many at once where they do not send one by one. */
export type Callers = Pick<LoadOrder, "callers" | "sendsPerRequest">;

export function sendOrder(peer: Peer, callers: Callers, durationMs: number, perSecond?: number): LoadOrder {
  const paced = perSecond === undefined ? {} : { perSecond };
  const socketPath = `${peer.folder}/sock`;
  return { socketPath, ...callers, durationMs, ids: "time_ordered", to: `#${topic}`, message, ...paced };
}

/** Rows that are due or out, read past the daemon so that asking costs it nothing. */
export function countOpenRows(peer: Peer, dueBefore = Number.MAX_SAFE_INTEGER): number {
  const db = new DatabaseSync(`${peer.folder}/outbox.db`, { readOnly: true });
  try {
    const pending = "SELECT count(*) AS n FROM outbox WHERE status = 'pending' AND next_attempt_at < ?";
    const inflight = "SELECT count(*) AS n FROM outbox WHERE status = 'inflight'";
    return Number(db.prepare(pending).get(dueBefore)?.n) + Number(db.prepare(inflight).get()?.n);
  } finally {
    db.close();
  }
}
