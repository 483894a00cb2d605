// The process that makes the load: a number of callers on one Unix socket, each with one request in flight, for a
// given time. The same for every HTTP server that is measured, so that its own cost is the same on both sides.
import { serveOrders } from "../processes/orders.ts";
import { Caller } from "./caller.ts";
import { createClientIds, type IdOrder } from "./client-ids.ts";
import { Latencies, type LatencyFigures } from "./latencies.ts";
import { formatManyRequest, formatSendRequest, type SendRequestBytes } from "./send-request.ts";

export type LoadOrder = {
  readonly socketPath: string;
  readonly callers: number;
  /** One by one where absent. */
  readonly sendsPerRequest?: number;
  readonly durationMs: number;
  readonly ids: IdOrder;
  readonly to: string;
  readonly message: string;
  /** At most so many; as many as the callers get through where absent. */
  readonly perSecond?: number;
};

/** Every send that left was answered 202 and is counted, the last ones after the time was over included. */
export type LoadResult = LatencyFigures & { readonly accepted: number; readonly perSecond: number };

async function generateLoad(order: LoadOrder): Promise<LoadResult> {
  const nextId = createClientIds(order.ids);
  const { sendsPerRequest = 1 } = order;
  const waiting: Caller[] = [];
  const letThrough = () => {
    const nowMs = performance.now();
    while (waiting.length > 0 && pace.isDue(nowMs)) waiting.pop()?.send(nextId, nowMs);
  };
  const pace = createPace(order.perSecond, sendsPerRequest, letThrough);
  const latencies = new Latencies();
  const { promise: finished, resolve, reject } = Promise.withResolvers<number>();
  let inFlight = 0;
  let endsAtMs = Number.POSITIVE_INFINITY;
  const events = {
    onAccepted: (caller: Caller, latencyMs: number, nowMs: number) => {
      latencies.add(latencyMs);
      if (nowMs < endsAtMs) {
        if (pace.isDue(nowMs)) caller.send(nextId, nowMs);
        else waiting.push(caller);
        return;
      }
      inFlight--;
      if (inFlight === 0) resolve(nowMs);
    },
    onFailed: (what: string) => reject(new Error(`${order.socketPath} gave ${what}`)),
  };
  const callers = Array.from(
    { length: order.callers },
    () => new Caller(order.socketPath, formatRequest(order), events),
  );
  try {
    await Promise.race([Promise.all(callers.map((caller) => caller.connected())), finished]);
    const startedAtMs = performance.now();
    endsAtMs = startedAtMs + order.durationMs;
    inFlight = callers.length;
    pace.start(startedAtMs, callers.length);
    for (const caller of callers) caller.send(nextId, performance.now());
    const elapsedMs = (await finished) - startedAtMs;
    const accepted = latencies.count * sendsPerRequest;
    return { accepted, perSecond: accepted / (elapsedMs / 1_000), ...latencies.figures() };
  } finally {
    pace.stop();
    for (const caller of callers) caller.close();
  }
}

function formatRequest({ to, message, sendsPerRequest }: LoadOrder): SendRequestBytes {
  return sendsPerRequest === undefined
    ? formatSendRequest(to, message)
    : formatManyRequest(to, message, sendsPerRequest);
}

const paceTickMs = 2;

/** So many sends per second, evenly: a caller that finds one due sends at once, one that is early waits for a tick. */
function createPace(perSecond: number | undefined, sendsPerRequest: number, onTick: () => void) {
  let startedAtMs = 0;
  let allowed = 0;
  /** Sends for which no caller was free are not saved up beyond one request of each caller. */
  let arrearsMax = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    /** The first request of each caller has its turn already. */
    start: (nowMs: number, callers: number) => {
      startedAtMs = nowMs;
      arrearsMax = callers * sendsPerRequest;
      allowed = arrearsMax;
      if (perSecond !== undefined) timer = setInterval(onTick, paceTickMs);
    },
    /** True takes the turn. */
    isDue: (nowMs: number): boolean => {
      if (perSecond === undefined) return true;
      const due = ((nowMs - startedAtMs) / 1_000) * perSecond;
      if (allowed >= due) return false;
      allowed = Math.max(allowed, due - arrearsMax) + sendsPerRequest;
      return true;
    },
    stop: () => clearInterval(timer),
  };
}

serveOrders<LoadOrder, LoadResult>(generateLoad);
