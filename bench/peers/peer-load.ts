// The process in which one peer's own client makes its load: so many callers, each with one message outstanding, or one
// batch after the other. Arguments: the peer's name and its address. A peer that is not there says why.
import process from "node:process";
import { benchBody } from "../broker/bench-meshes.ts";
import { Latencies, type LatencyFigures } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { openBullMq } from "./bullmq-peer.ts";
import { openGraphileWorker } from "./graphile-worker-peer.ts";
import { openNats } from "./nats-peer.ts";
import type { Peer, PeerFacts, PeerName } from "./peer.ts";
import { openPgBoss } from "./pg-boss-peer.ts";
import { openRabbitMq } from "./rabbitmq-peer.ts";
import { openRedisStream } from "./redis-peer.ts";

export type PeerOrder =
  | { readonly do: "describe" }
  | { readonly do: "close" }
  | { readonly do: "send" | "batch"; readonly outstanding: number; readonly durationMs: number };

export type PeerResult =
  | { readonly type: "facts"; readonly facts: PeerFacts }
  | { readonly type: "missing"; readonly why: string }
  | { readonly type: "closed" }
  | ({ readonly type: "measured"; readonly answered: number; readonly perSecond: number } & LatencyFigures);

const opening: Readonly<Record<PeerName, (address: string) => Promise<Peer>>> = {
  "pg-boss": openPgBoss,
  "graphile-worker": openGraphileWorker,
  bullmq: openBullMq,
  nats: openNats,
  redis: openRedisStream,
  rabbitmq: openRabbitMq,
};

const [name, address] = process.argv.slice(2);
if (name === undefined || address === undefined) throw new Error("give a peer's name and its address");
const body = Buffer.from(benchBody);
const opened = await opening[name as PeerName](address).catch((error: unknown) => String(error));

async function carryOut(order: PeerOrder): Promise<PeerResult> {
  if (typeof opened === "string") return { type: "missing", why: opened };
  if (order.do === "describe") {
    const { version, durability } = opened;
    return { type: "facts", facts: { version, durability } };
  }
  if (order.do === "close") {
    await opened.close();
    return { type: "closed" };
  }
  return measure(opened, order);
}

async function measure(peer: Peer, order: Extract<PeerOrder, { outstanding: number }>): Promise<PeerResult> {
  const { outstanding, durationMs } = order;
  const batch = Array.from({ length: outstanding }, () => body);
  const isBatch = order.do === "batch";
  const send = isBatch ? () => peer.sendBatch?.(batch) : () => peer.send(body);
  const times = new Latencies();
  const startedAtMs = performance.now();
  const callers = Array.from({ length: isBatch ? 1 : outstanding }, async () => {
    for (let nowMs = performance.now(); nowMs - startedAtMs < durationMs; ) {
      await send();
      const answeredAtMs = performance.now();
      times.add(answeredAtMs - nowMs);
      nowMs = answeredAtMs;
    }
  });
  await Promise.all(callers);
  const answered = times.count * (isBatch ? outstanding : 1);
  const perSecond = answered / ((performance.now() - startedAtMs) / 1_000);
  return { type: "measured", answered, perSecond, ...times.figures() };
}

serveOrders<PeerOrder, PeerResult>(carryOut);
