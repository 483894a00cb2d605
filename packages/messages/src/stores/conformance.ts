// What every MessagesStore owes the services above it, as one suite over a harness. Each back end's test file supplies
// the harness and adds what is particular to it.
import { afterEach, beforeEach, describe } from "vitest";
import type { RateLimit } from "../core/rate-limit.ts";
import { ampleRate, type MessagesHarness, World } from "./conformance-world.ts";
import { describeAccept } from "./suites/accept/conformance.ts";
import { describeFences } from "./suites/fence/conformance.ts";
import { describeFinding } from "./suites/finding/conformance.ts";
import { describeHiddenHits } from "./suites/hidden-hits/conformance.ts";
import { describeHousekeeping } from "./suites/housekeeping/conformance.ts";
import { describeLimiter, tightRate } from "./suites/limiter/conformance.ts";
import { describeLists } from "./suites/lists/conformance.ts";
import { describeMemberships } from "./suites/memberships/conformance.ts";
import { describeModel, modelRate } from "./suites/model/conformance.ts";
import { describeOrphans } from "./suites/orphans/conformance.ts";
import { describePresence } from "./suites/presence/conformance.ts";
import { describeQueueModel } from "./suites/queue-model/conformance.ts";
import { describeQueues } from "./suites/queues/conformance.ts";
import { describeReading } from "./suites/reading/conformance.ts";
import { describeSharedHands } from "./suites/webhook-hands/conformance.ts";
import { describeWebhookReplays } from "./suites/webhook-replays/conformance.ts";
import { describeWebhooks } from "./suites/webhooks/conformance.ts";

const withWorldOf =
  (harness: MessagesHarness) =>
  (name: string, rate: RateLimit, body: (world: () => World) => void): void => {
    describe(name, () => {
      let world: World;
      beforeEach(async () => {
        world = await World.start(harness, rate);
      });
      afterEach(() => world.close());
      body(() => world);
    });
  };

/** The same for every store; the limiter is apart because it does not live in PostgreSQL. */
export const messagesSuites: readonly (readonly [name: string, describe: (world: () => World) => void])[] = [
  ["accept", describeAccept],
  ["fence", describeFences],
  ["reading", describeReading],
  ["lists", describeLists],
  ["queues", describeQueues],
  ["memberships", describeMemberships],
  ["presence", describePresence],
  ["finding", describeFinding],
  ["hits that are hidden", describeHiddenHits],
  ["housekeeping", describeHousekeeping],
  ["orphans", describeOrphans],
  ["webhooks", describeWebhooks],
  ["a webhook's replay", describeWebhookReplays],
  ["hands for webhooks", describeSharedHands],
];

export function describeMessagesConformance(harness: MessagesHarness): void {
  const withWorld = withWorldOf(harness);
  withWorld("limiter", tightRate, describeLimiter);
  for (const [name, suite] of messagesSuites) withWorld(name, ampleRate, suite);
}

/** Random interleavings against naive models: these take a while. */
export function describeMessagesModels(harness: MessagesHarness): void {
  const withWorld = withWorldOf(harness);
  withWorld("queue model", ampleRate, describeQueueModel);
  withWorld("model", modelRate, describeModel);
}
