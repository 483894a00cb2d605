// Webhooks in a running broker: paces their delivery, forgets what was settled long ago, and passes a stop on to requests
// that are under way. The messages package decides what to deliver and what becomes of it.
import { WebhookDeliveries } from "@claudemesh/messages/services/deliver-webhooks";
import type { BrokerContext } from "../context.ts";
import { postWebhook } from "../webhooks/post-webhook.ts";
import { PacedWorker } from "./paced-worker.ts";

/** How soon a message that was accepted in a quiet hour is on its way. */
const idleMs = 250;
const pruneIdleMs = 600_000;
const prunedPerStep = 1_000;
/** Settled deliveries are listed for so long. */
const settledKeptMs = 7 * 86_400_000;
/** Between the end of a try and its settlement being written, at the very most. */
const settlingMs = 5_000;
/** How long a request may go on after a stop of the broker has begun. */
const stopGraceMs = 5_000;

export function startWebhooks(broker: BrokerContext): { readonly stop: () => Promise<void> } {
  const { config, log, nowMs } = broker;
  const { webhookAllowPrivate: allowPrivate, webhookTimeoutMs: timeoutMs } = config;
  const backoff = { minMs: config.webhookBackoffMinMs, maxMs: config.webhookBackoffMaxMs };
  const store = broker.messages.webhooks;
  const stopping = new AbortController();
  const onFailure = (error: unknown) => {
    log.error({ event: "background_failed", what: "webhooks", err: error }, "delivering to webhooks failed");
  };
  const deliveries = new WebhookDeliveries({
    store,
    post: (url, request) => postWebhook(url, request, { allowPrivate, timeoutMs, signal: stopping.signal }),
    nowMs,
    random: Math.random,
    rules: { attemptsMax: config.webhookAttempts, backoff },
    leaseMs: timeoutMs + settlingMs,
    afterPost: () => broker.failpoints.hit("webhook.after_post"),
    onTried: broker.metrics.webhookTried,
    onFailure,
    onFree: () => delivering.wake(),
  });
  const delivering = new PacedWorker({ step: () => deliveries.step(), idleMs, onFailure });
  const pruning = new PacedWorker({
    step: async () => (await store.prune(nowMs() - settledKeptMs, prunedPerStep)) === prunedPerStep,
    idleMs: pruneIdleMs,
    onFailure,
  });
  delivering.start();
  pruning.start();
  return {
    stop: async () => {
      const giveUp = setTimeout(() => stopping.abort(), stopGraceMs);
      await Promise.all([delivering.stop(), pruning.stop()]);
      await deliveries.idle();
      clearTimeout(giveUp);
    },
  };
}
