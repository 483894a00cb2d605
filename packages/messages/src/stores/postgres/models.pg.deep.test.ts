// Random interleavings on PostgreSQL with the limiter on Redis, against the naive models.
import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { RestartableRedis } from "../../../../../tests/support/restartable-redis.ts";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { until } from "../../../../../tests/support/world.ts";
import type { RateLimit } from "../../core/rate-limit.ts";
import type { AcceptStore } from "../../ports.ts";
import { limitAccepts } from "../../services/limit-accepts.ts";
import { RedisConnection } from "../redis/redis-connection.ts";
import { createRedisLimiter } from "../redis/redis-limiter.ts";
import { describeModel, modelRate } from "../suites/model.suite.ts";
import { describeQueueModel } from "../suites/queue-model.suite.ts";
import { ampleRate, World } from "../suites/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("models");
const redis = database === undefined ? undefined : await RestartableRedis.create();
afterAll(async () => {
  await database?.drop();
  await redis?.stop();
});

describe.skipIf(redis === undefined)("PostgreSQL and Redis against the models", () => {
  const url = redis?.url ?? "";
  const admin = createClient({ url });
  const connection = new RedisConnection({ url, name: "models", onProblem: () => undefined });

  // The model spends nothing on an id that was committed between look-up and limiter. On Redis such a send spends a
  // unit where the window has changed in between, since the limit comes before the claim; so here it is looked up again.
  const limited = (accepts: AcceptStore, rate: RateLimit): AcceptStore => {
    const limiter = createRedisLimiter(connection, { rate, onFailure: () => undefined });
    return limitAccepts(
      accepts,
      {
        ...limiter,
        consume: async (meshId, id, nowMs) =>
          (await accepts.findAccepted(meshId, id)) === undefined
            ? limiter.consume(meshId, id, nowMs)
            : { type: "ok", spent: false },
      },
      { whenUnavailable: "refuse", onPassedUncounted: () => undefined, onSpentThenRefused: () => undefined },
    );
  };
  const harness = new PostgresHarness(database?.url ?? "", limited);

  beforeAll(async () => {
    await admin.connect();
    await harness.connect();
    await until("Redis is there", () => connection.ready);
  });
  afterAll(async () => {
    admin.destroy();
    connection.close();
    await harness.end();
  });

  let world: World;
  afterEach(() => world.close());
  const startWorld = (rate: RateLimit) => async () => {
    await admin.flushAll();
    world = await World.start(harness, rate);
  };

  describe("accept", () => {
    beforeEach(startWorld(modelRate));
    describeModel(() => world);
  });
  describe("queues", () => {
    beforeEach(startWorld(ampleRate));
    describeQueueModel(() => world);
  });
});
