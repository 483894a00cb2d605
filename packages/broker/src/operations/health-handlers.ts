// What of a mesh needs somebody to look at it, as this broker knows: bounded numbers, and the first names of each.

import { onceStateAt } from "@claudemesh/protocol/registrar/once-state";
import type { EmptyInput } from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import { type Handlers, ok } from "./handler.ts";

/** A number that has reached this means "at least so many". */
const countedMax = 1_000;
const namesMax = 10;

export const healthHandlers = {
  "mesh.health": async (broker, { member: { meshId } }, _input: EmptyInput) => {
    const [{ store, limiter }, queues, uncertain, failed, check] = await Promise.all([
      broker.checkReady(),
      broker.messages.queues.countParked(meshId, countedMax),
      findUncertain(broker, meshId),
      broker.registrar.failedVerifications(meshId, countedMax),
      broker.messages.orphans.lastCheck(meshId),
    ]);
    return ok({
      time: broker.nowMs(),
      store,
      limiter,
      brokers: broker.brokerUrls(),
      parked: {
        messages: queues.reduce((sum, { parked }) => sum + parked, 0),
        queues: queues.slice(0, namesMax).map(({ queue }) => queue),
      },
      uncertain: named(uncertain),
      verify_failed: named(failed),
      nightly_check: check === undefined ? null : { ended_at: check.endedAtMs, found: check.found, rules: check.rules },
    });
  },
} satisfies Handlers;

async function findUncertain(broker: BrokerContext, meshId: string): Promise<string[]> {
  const unsettled = await broker.once.list({ meshId, after: "", limit: countedMax, unsettled: true });
  const nowMs = broker.nowMs();
  return unsettled.filter(({ newest }) => onceStateAt(newest, nowMs) === "uncertain").map(({ key }) => key);
}

function named(keys: readonly string[]): Record<string, unknown> {
  return { keys: keys.length, first: keys.slice(0, namesMax) };
}
