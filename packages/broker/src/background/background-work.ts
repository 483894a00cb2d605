// What goes on beside requests in every broker: the full-text index and the rate counters follow history, webhooks
// are sent its messages, unfinished revocations and registrations are finished, what is old is removed, and each night the
// store is checked. Safe on any number of brokers at once.
import { endUnfinishedMemberships } from "@claudemesh/messages/services/end-membership";
import type { BrokerContext } from "../context.ts";
import { startNightly } from "./nightly.ts";
import { PacedWorker } from "./paced-worker.ts";
import { startWebhooks } from "./webhook-work.ts";

/** How soon a message that was accepted in a quiet hour can be found. */
const searchIdleMs = 500;
const membershipsIdleMs = 60_000;
const ratesIdleMs = 10_000;
const sweepIdleMs = 600_000;
const sweepDelayMs = 60_000;
const registrarIdleMs = 15_000;

/** `stop` resolves when nothing is under way any more. */
export type BackgroundWork = { readonly stop: () => Promise<void> };

export function startBackgroundWork(broker: BrokerContext, random: () => number = Math.random): BackgroundWork {
  const { messages, housekeeping, nowMs } = broker;
  const onFailure = (what: string) => (error: unknown) => {
    broker.log.error({ event: "background_failed", what, err: error }, `${what} failed`);
  };
  const work = (what: string, idleMs: number, step: () => Promise<boolean>, startDelayMs = 0) =>
    new PacedWorker({ step, idleMs, startDelayMs, onFailure: onFailure(what) });
  const workers = [
    work("indexing messages", searchIdleMs, () => messages.search.indexNext(nowMs())),
    work("counting messages", ratesIdleMs, () => messages.housekeeping.countNext()),
    work("ending memberships", membershipsIdleMs, async () => {
      await endUnfinishedMemberships({ store: messages.memberships, nowMs });
      return false;
    }),
    work("sweeping", sweepIdleMs, () => housekeeping.sweepNext(), sweepDelayMs),
    work("finishing registrations", registrarIdleMs, () => broker.registrar.tidyUp()),
  ];
  for (const worker of workers) worker.start();
  const webhooks = startWebhooks(broker);
  const { minute } = broker.config.nightlyCheck;
  let stopping = false;
  const nightly =
    minute === undefined
      ? undefined
      : startNightly({
          minute,
          nowMs,
          random,
          run: () => housekeeping.checkTonight(),
          onFailure: (error) => {
            if (!stopping) onFailure("the nightly orphan check")(error);
          },
        });
  return {
    stop: async () => {
      stopping = true;
      housekeeping.stop();
      await Promise.all([...[...workers, webhooks].map((worker) => worker.stop()), nightly?.stop()]);
    },
  };
}
