// What goes on beside requests in every broker: the full-text index follows history, and what a revocation left
// unfinished is finished. Safe on any number of brokers at once.
import { endUnfinishedMemberships } from "@claudemesh/messages/services/end-membership";
import type { BrokerContext } from "../context.ts";
import { PacedWorker } from "./paced-worker.ts";

/** How soon a message that was accepted in a quiet hour can be found. */
const searchIdleMs = 500;
const membershipsIdleMs = 60_000;
const registrarIdleMs = 15_000;

export type BackgroundWork = { readonly stop: () => Promise<void> };

export function startBackgroundWork(broker: BrokerContext): BackgroundWork {
  const onFailure = (what: string) => (error: unknown) => {
    broker.log.error({ event: "background_failed", what, err: error }, `${what} failed`);
  };
  const workers = [
    new PacedWorker({
      step: () => broker.messages.search.indexNext(broker.nowMs()),
      idleMs: searchIdleMs,
      onFailure: onFailure("indexing messages"),
    }),
    new PacedWorker({
      step: async () => {
        await endUnfinishedMemberships({ store: broker.messages.memberships, nowMs: broker.nowMs });
        return false;
      },
      idleMs: membershipsIdleMs,
      onFailure: onFailure("ending memberships"),
    }),
    new PacedWorker({
      step: () => broker.registrar.tidyUp(),
      idleMs: registrarIdleMs,
      onFailure: onFailure("finishing registrations"),
    }),
  ];
  for (const worker of workers) worker.start();
  return {
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.stop()));
    },
  };
}
