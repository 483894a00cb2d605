// PostgreSQL through the messages suites. The limiter has its own, since it does not live in this store; the random
// models run in accept-model.pg.deep.test.ts.
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { ampleRate, World } from "../conformance-world.ts";
import { describeAccept } from "../suites/accept/conformance.ts";
import { describeFences } from "../suites/fence/conformance.ts";
import { describeFinding } from "../suites/finding/conformance.ts";
import { describeHiddenHits } from "../suites/hidden-hits/conformance.ts";
import { describeHousekeeping } from "../suites/housekeeping/conformance.ts";
import { describeMemberships } from "../suites/memberships/conformance.ts";
import { describeOrphans } from "../suites/orphans/conformance.ts";
import { describePresence } from "../suites/presence/conformance.ts";
import { describeQueues } from "../suites/queues/conformance.ts";
import { describeReading } from "../suites/reading/conformance.ts";
import { describeSharedHands } from "../suites/webhook-hands/conformance.ts";
import { describeWebhookReplays } from "../suites/webhook-replays/conformance.ts";
import { describeWebhooks } from "../suites/webhooks/conformance.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("messages");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("messages on PostgreSQL", () => {
  const harness = new PostgresHarness(database?.url ?? "");
  beforeAll(() => harness.connect());
  afterAll(() => harness.end());

  let world: World;
  beforeEach(async () => {
    world = await World.start(harness, ampleRate);
  });
  afterEach(() => world.close());

  describe("accept", () => describeAccept(() => world));
  describe("fence", () => describeFences(() => world));
  describe("reading", () => describeReading(() => world));
  describe("queues", () => describeQueues(() => world));
  describe("memberships", () => describeMemberships(() => world));
  describe("presence", () => describePresence(() => world));
  describe("finding", () => describeFinding(() => world));
  describe("hits that are hidden", () => describeHiddenHits(() => world));
  describe("orphans", () => describeOrphans(() => world));
  describe("housekeeping", () => describeHousekeeping(() => world));
  describe("webhooks", () => describeWebhooks(() => world));
  describe("a webhook's replay", () => describeWebhookReplays(() => world));
  describe("hands for webhooks", () => describeSharedHands(() => world));
});
