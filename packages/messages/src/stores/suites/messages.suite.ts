// What every MessagesStore owes the services above it, as one suite over a harness. Each back end's test file supplies
// the harness and adds what is particular to it.
import { afterEach, beforeEach, describe } from "vitest";
import type { RateLimit } from "../../core/rate-limit.ts";
import { describeAccept } from "./accept.suite.ts";
import { describeFences } from "./fence.suite.ts";
import { describeFinding } from "./finding.suite.ts";
import { describeHiddenHits } from "./hidden-hits.suite.ts";
import { describeHousekeeping } from "./housekeeping.suite.ts";
import { describeLimiter, tightRate } from "./limiter.suite.ts";
import { describeLists } from "./lists.suite.ts";
import { describeMemberships } from "./memberships.suite.ts";
import { describeModel, modelRate } from "./model.suite.ts";
import { describeOrphans } from "./orphans.suite.ts";
import { describePresence } from "./presence.suite.ts";
import { describeQueueModel } from "./queue-model.suite.ts";
import { describeQueues } from "./queues.suite.ts";
import { describeReading } from "./reading.suite.ts";
import { describeWebhookReplays } from "./webhook-replays.suite.ts";
import { describeSharedSlots } from "./webhook-slots.suite.ts";
import { describeWebhooks } from "./webhooks.suite.ts";
import { ampleRate, type MessagesHarness, World } from "./world.ts";

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
  ["delivery slots of webhooks", describeSharedSlots],
];

export function describeMessagesSuite(harness: MessagesHarness): void {
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
