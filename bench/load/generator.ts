// The process that makes the load: a number of callers on one Unix socket, each with one request in flight, for a
// given time. The same for every HTTP server that is measured, so that its own cost is the same on both sides.
import { serveOrders } from "../processes/orders.ts";
import { Caller } from "./caller.ts";
import { createClientIds, type IdOrder } from "./client-ids.ts";
import { Latencies, type LatencyFigures } from "./latencies.ts";
import { formatSendRequest } from "./send-request.ts";

export type LoadOrder = {
  readonly socketPath: string;
  readonly callers: number;
  readonly durationMs: number;
  readonly ids: IdOrder;
  readonly to: string;
  readonly message: string;
};

/** Every request that left was answered 202 and is counted, the last ones after the time was over included. */
export type LoadResult = LatencyFigures & { readonly accepted: number; readonly perSecond: number };

async function generateLoad(order: LoadOrder): Promise<LoadResult> {
  const nextId = createClientIds(order.ids);
  const latencies = new Latencies();
  const { promise: finished, resolve, reject } = Promise.withResolvers<number>();
  let inFlight = 0;
  let endsAtMs = Number.POSITIVE_INFINITY;
  const events = {
    onAccepted: (caller: Caller, latencyMs: number, nowMs: number) => {
      latencies.add(latencyMs);
      if (nowMs < endsAtMs) {
        caller.send(nextId(), nowMs);
        return;
      }
      inFlight--;
      if (inFlight === 0) resolve(nowMs);
    },
    onFailed: (what: string) => reject(new Error(`${order.socketPath} gave ${what}`)),
  };
  const callers = Array.from(
    { length: order.callers },
    () => new Caller(order.socketPath, formatSendRequest(order.to, order.message), events),
  );
  try {
    await Promise.race([Promise.all(callers.map((caller) => caller.connected())), finished]);
    const startedAtMs = performance.now();
    endsAtMs = startedAtMs + order.durationMs;
    inFlight = callers.length;
    for (const caller of callers) caller.send(nextId(), performance.now());
    const elapsedMs = (await finished) - startedAtMs;
    return { accepted: latencies.count, perSecond: latencies.count / (elapsedMs / 1_000), ...latencies.figures() };
  } finally {
    for (const caller of callers) caller.close();
  }
}

serveOrders<LoadOrder, LoadResult>(generateLoad);
