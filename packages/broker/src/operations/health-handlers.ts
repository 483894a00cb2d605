// What in a mesh needs attention from a person, as far as this broker knows: bounded numbers, and the first names of each.

import { onceStateAt } from "@claudemesh/protocol/registrar/once-state";
import type { EmptyInput } from "@claudemesh/protocol/wire/operations";
import type { BrokerContext } from "../context.ts";
import { type Handlers, ok } from "./handler.ts";

/** A number that has reached this means "at least so many". */
const countedMax = 1_000;
const namesMax = 10;
/** What one question reads at most. */
const pagesMax = 20;

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

/** Keys that run stand among those that are uncertain, and a mesh that runs many must not hide these. */
export async function findUncertain(
  { once, nowMs }: { readonly once: Pick<BrokerContext["once"], "list">; readonly nowMs: () => number },
  meshId: string,
): Promise<string[]> {
  const uncertain: string[] = [];
  for (let after = "", page = 0; page < pagesMax && uncertain.length < countedMax; page++) {
    const unsettled = await once.list({ meshId, after, limit: countedMax, unsettled: true });
    const now = nowMs();
    uncertain.push(...unsettled.filter(({ newest }) => onceStateAt(newest, now) === "uncertain").map(({ key }) => key));
    if (unsettled.length < countedMax) break;
    after = unsettled.at(-1)?.key ?? after;
  }
  return uncertain.slice(0, countedMax);
}

function named(keys: readonly string[]): Record<string, unknown> {
  return { keys: keys.length, first: keys.slice(0, namesMax) };
}
