// From one daemon to another: sends at a steady rate through the first one's socket, and looks at the second one's events
// when each message arrives. Both ends are in this process, so that one clock times both.
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { createDaemonClient } from "@claudemesh/client/daemon";
import { serveOrders } from "../processes/orders.ts";
import { Latencies, type LatencyFigures } from "./latencies.ts";

export type PairOrder = {
  readonly senderSocket: string;
  readonly receiverSocket: string;
  readonly to: string;
  readonly message: string;
  readonly perSecond: number;
  readonly durationMs: number;
};

export type PairResult = LatencyFigures & { readonly delivered: number; readonly perSecond: number };

const tickMs = 2;
const callersMax = 32;
const patienceMs = 30_000;

async function sendAtRate(order: PairOrder): Promise<PairResult> {
  const sender = createDaemonClient({ socketPath: order.senderSocket, timeoutMs: patienceMs });
  const receiver = createDaemonClient({ socketPath: order.receiverSocket, timeoutMs: patienceMs });
  const ending = new AbortController();
  const sentAtMs = new Map<string, number>();
  let latencies = new Latencies();
  const listening = (async () => {
    for await (const event of receiver.events({ signal: ending.signal })) {
      if (event.kind !== "message") continue;
      const startedAtMs = sentAtMs.get(event.data.client_message_id);
      if (startedAtMs === undefined) continue;
      sentAtMs.delete(event.data.client_message_id);
      latencies.add(performance.now() - startedAtMs);
    }
  })();
  const send = async (dueAtMs: number): Promise<void> => {
    const id = randomUUID();
    sentAtMs.set(id, dueAtMs);
    const { status } = await sender.send({ to: order.to, message: order.message, client_message_id: id });
    if (status !== 202) throw new Error(`a send was answered ${status}`);
  };
  try {
    await expectArrival(send, () => latencies.count);
    latencies = new Latencies();
    const startedAtMs = performance.now();
    await keepRate(order, startedAtMs, send);
    const elapsedMs = performance.now() - startedAtMs;
    const deadlineMs = performance.now() + patienceMs;
    while (sentAtMs.size > 0 && performance.now() < deadlineMs) await sleep(tickMs);
    if (sentAtMs.size > 0) throw new Error(`${sentAtMs.size} messages have not arrived`);
    return { delivered: latencies.count, perSecond: latencies.count / (elapsedMs / 1_000), ...latencies.figures() };
  } finally {
    ending.abort();
    await listening;
    sender.close();
    receiver.close();
  }
}

/** Few callers, which send what is due; a send that finds all of them busy has been waiting since it was due. */
async function keepRate(
  { perSecond, durationMs }: PairOrder,
  startedAtMs: number,
  send: (dueAtMs: number) => Promise<void>,
): Promise<void> {
  const total = Math.max(1, Math.floor((durationMs / 1_000) * perSecond));
  let next = 0;
  const callers = Array.from({ length: Math.min(callersMax, total) }, async () => {
    for (let at = next++; at < total; at = next++) {
      const dueAtMs = startedAtMs + (at / perSecond) * 1_000;
      const waitMs = dueAtMs - performance.now();
      if (waitMs > 0) await sleep(waitMs);
      await send(dueAtMs);
    }
  });
  await Promise.all(callers);
}

/** The daemon does not announce when its events begin to flow; a message that arrives shows that they do. */
async function expectArrival(send: (dueAtMs: number) => Promise<void>, arrived: () => number): Promise<void> {
  const deadlineMs = performance.now() + patienceMs;
  while (arrived() === 0) {
    if (performance.now() > deadlineMs) throw new Error("no message arrives at the second daemon");
    await send(performance.now());
    await sleep(100);
  }
}

serveOrders<PairOrder, PairResult>(sendAtRate);
