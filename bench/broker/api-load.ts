// The process that makes the load on a broker's API: so many sends outstanding, over HTTP one per connection, over
// WebSocket many on one socket per mesh. The same for the broker and for its transports alone.

import { Caller } from "../load/caller.ts";
import { createClientIds, type IdOrder } from "../load/client-ids.ts";
import { Latencies, type LatencyFigures } from "../load/latencies.ts";
import { formatBrokerRequest, formatRegistrarRequest } from "../load/send-request.ts";
import { serveOrders } from "../processes/orders.ts";
import { type BenchMesh, benchBody, benchTopic } from "./bench-meshes.ts";
import { MemberSocket } from "./member-socket.ts";
import { drawSeededId, type SeededRange } from "./seeded-ids.ts";

export type ApiOrder = {
  readonly transport: "http" | "websocket";
  readonly port: number;
  readonly meshes: readonly BenchMesh[];
  readonly outstanding: number;
  readonly durationMs: number;
  readonly ids: IdOrder;
  /** Offers ids again that are stored already; without it every id is new. */
  readonly retryAmong?: SeededRange;
  /** Retries of registrations instead of sends; over HTTP. */
  readonly what?: "send" | "register";
};

/** Every request that left was answered as expected and is counted. */
export type ApiResult = LatencyFigures & { readonly answered: number; readonly perSecond: number };

const host = "127.0.0.1";

/** One of the outstanding sends: goes out again and again, each time with another id. */
type Sender = { readonly send: (nextId: () => string, nowMs: number) => void };
type Heard = {
  readonly onAnswer: (sender: Sender, latencyMs: number) => void;
  readonly onFailed: (what: string) => void;
};
type Opened = { readonly senders: readonly Sender[]; readonly close: () => void };

async function openHttp(order: ApiOrder, heard: Heard): Promise<Opened> {
  const expected = order.retryAmong === undefined ? 201 : 200;
  const callers = Array.from({ length: order.outstanding }, (_, at) => {
    const { id: meshId, token } = meshAt(order, at);
    const request =
      order.what === "register"
        ? formatRegistrarRequest({ meshId, token })
        : formatBrokerRequest({ meshId, token, topic: benchTopic }, benchBody, expected);
    const events = { onAccepted: heard.onAnswer, onFailed: heard.onFailed };
    return new Caller({ host, port: order.port }, request, events);
  });
  await Promise.all(callers.map((caller) => caller.connected()));
  return { senders: callers, close: () => closeAll(callers) };
}

async function openWebSocket(order: ApiOrder, heard: Heard): Promise<Opened> {
  const expected = order.retryAmong === undefined ? 201 : 200;
  const url = `ws://${host}:${order.port}`;
  const sockets = await Promise.all(
    order.meshes.map(({ id, keys }) => MemberSocket.open({ url, meshId: id, keys, kind: "client" }, heard.onFailed)),
  );
  const rest = JSON.stringify({ destination: { kind: "topic", ref: benchTopic }, body: benchBody }).slice(1);
  const senders = Array.from({ length: order.outstanding }, (_, at): Sender => {
    const socket = sockets[at % sockets.length];
    if (socket === undefined) throw new Error("an order names at least one mesh");
    const sender: Sender = {
      send: (nextId, nowMs) =>
        socket.request(`"send","client_message_id":"${nextId()}",${rest}`, (status, text) => {
          if (status !== expected) heard.onFailed(`an answer that is not ${expected}: ${text}`);
          else heard.onAnswer(sender, performance.now() - nowMs);
        }),
    };
    return sender;
  });
  return { senders, close: () => closeAll(sockets) };
}

function closeAll(all: readonly { readonly close: () => void }[]): void {
  for (const each of all) each.close();
}

function meshAt({ meshes }: ApiOrder, at: number): BenchMesh {
  const mesh = meshes[at % meshes.length];
  if (mesh === undefined) throw new Error("an order names at least one mesh");
  return mesh;
}

const summed = (latencies: Latencies) => ({ count: latencies.count, ...latencies.figures() });

async function generate(order: ApiOrder): Promise<ApiResult> {
  const nextNew = createClientIds(order.ids);
  const { retryAmong: among } = order;
  const nextId = among === undefined ? nextNew : () => drawSeededId(order.ids, among);
  const { promise: failed, reject } = Promise.withResolvers<never>();
  // A failure while no call waits for it is thrown by the next one.
  failed.catch(() => undefined);
  let latencies = new Latencies();
  let idle = Promise.withResolvers<void>();
  let inFlight = 0;
  let endsAtMs = 0;
  const heard: Heard = {
    onAnswer: (sender, latencyMs) => {
      latencies.add(latencyMs);
      const nowMs = performance.now();
      if (nowMs < endsAtMs) {
        sender.send(nextId, nowMs);
        return;
      }
      inFlight--;
      if (inFlight === 0) idle.resolve();
    },
    onFailed: (what) => reject(new Error(`${order.transport} at port ${order.port} gave ${what}`)),
  };
  const opening = order.transport === "http" ? openHttp(order, heard) : openWebSocket(order, heard);
  const opened = await Promise.race([opening, failed]);
  const sendUntil = async (endMs: number) => {
    endsAtMs = endMs;
    latencies = new Latencies();
    idle = Promise.withResolvers<void>();
    inFlight = opened.senders.length;
    for (const sender of opened.senders) sender.send(nextId, performance.now());
    await Promise.race([idle.promise, failed]);
    return latencies;
  };
  try {
    // A server takes new connections one in each turn of its loop. So each has had one answer before time is taken.
    const first = await sendUntil(0);
    const startedAtMs = performance.now();
    const { count, ...rest } = await sendUntil(startedAtMs + order.durationMs).then(summed);
    const elapsedMs = performance.now() - startedAtMs;
    return { answered: first.count + count, perSecond: count / (elapsedMs / 1_000), ...rest };
  } finally {
    opened.close();
  }
}

serveOrders<ApiOrder, ApiResult>(generate);
