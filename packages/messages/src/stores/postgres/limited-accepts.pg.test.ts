// PostgreSQL with the limiter on Redis in front of it, as brokers side by side have it: what spends the mesh's budget,
// what never does, and what happens while Redis is away.
import { createClient } from "redis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { RestartableRedis } from "../../../../../tests/support/restartable-redis.ts";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { until } from "../../../../../tests/support/world.ts";
import type { RateLimit } from "../../core/rate-limit.ts";
import type { Limiter } from "../../ports/limiter.ts";
import type { AcceptStore } from "../../ports.ts";
import { limitAccepts } from "../../services/limit-accepts.ts";
import { RedisConnection } from "../redis/redis-connection.ts";
import { createRedisLimiter } from "../redis/redis-limiter.ts";
import { createBarrier, dm, noEffects, send, topic, World } from "../suites/world.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("limited");
const redis = database === undefined ? undefined : await RestartableRedis.create();
afterAll(async () => {
  await database?.drop();
  await redis?.stop();
});

const rate: RateLimit = { limit: 3, windowSeconds: 60 };
const windowMs = rate.windowSeconds * 1000;

describe.skipIf(redis === undefined)("accepts behind the limiter on Redis", () => {
  const url = redis?.url ?? "";
  const admin = createClient({ url });
  admin.on("error", () => undefined);
  const connection = new RedisConnection({ url, name: "limited-accepts", onProblem: () => undefined });
  const counted = { calls: 0, passed: 0, spentThenRefused: 0 };
  let whenUnavailable: "refuse" | "pass" = "refuse";

  const createLimiter = (limit: RateLimit): Limiter => {
    const limiter = createRedisLimiter(connection, { rate: limit, onFailure: () => undefined });
    return {
      ...limiter,
      consume: (...asked) => {
        counted.calls += 1;
        return limiter.consume(...asked);
      },
    };
  };
  const limited = (accepts: AcceptStore, limiter: Limiter): AcceptStore =>
    limitAccepts(accepts, limiter, {
      whenUnavailable,
      onPassedUncounted: () => {
        counted.passed += 1;
      },
      onSpentThenRefused: () => {
        counted.spentThenRefused += 1;
      },
    });
  const harness = new PostgresHarness(database?.url ?? "", (accepts, limit) => limited(accepts, createLimiter(limit)));

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
  let alice: string;
  let bob: string;
  beforeEach(async () => {
    await admin.flushAll();
    whenUnavailable = "refuse";
    Object.assign(counted, { calls: 0, passed: 0, spentThenRefused: 0 });
    world = await World.start(harness, rate);
    [alice, bob] = await world.threeMembers();
    // Ten seconds into a window.
    world.nowMs = Math.floor(world.nowMs / windowMs) * windowMs + 10_000;
    return () => world.close();
  });
  const offer = async (id: string, store = world.store.accepts) =>
    (await world.accept(alice, send(id, dm(bob)), { store })).type;

  test("an idempotent retry of an already-committed id during a saturated window is a duplicate and spends nothing", async () => {
    const first = await world.accept(alice, send("m1", dm(bob)));
    if (first.type !== "accepted") throw new Error("the first send was not accepted");
    for (let again = 0; again < 5; again += 1) expect(await offer("m1")).toBe("duplicate");
    expect(counted.calls).toBe(1);
    expect([await offer("m2"), await offer("m3"), await offer("m4")]).toEqual(["accepted", "accepted", "rate_limited"]);
    const retry = await world.accept(alice, send("m1", dm(bob)));
    expect(retry).toMatchObject({ type: "duplicate", brokerMessageId: first.brokerMessageId, historyId: 1 });
    expect(await world.accept(alice, send("m1", dm(bob), "other"))).toMatchObject({ type: "reused" });
    expect(counted.calls).toBe(4);
  });

  test("a spent window refuses new ids on every broker until it is over, and says how long that is", async () => {
    const other = (await world.openAnother()).accepts;
    expect([await offer("m1"), await offer("m2", other), await offer("m3")]).toEqual(Array(3).fill("accepted"));
    for (const store of [world.store.accepts, other]) {
      const refusal = await world.accept(alice, send("m4", dm(bob)), { store });
      expect(refusal).toEqual({ type: "rate_limited", retryAfterSeconds: 50 });
    }
    expect(await world.effects()).toMatchObject({ dedupe: 3, history: 3 });
    await world.reopen();
    expect(await offer("m4")).toBe("rate_limited");
    world.nowMs += 50_000;
    expect(await offer("m4")).toBe("accepted");
  });

  test("a try that slept after its look-up is refused and spends nothing (MSG-24)", async () => {
    const asleep = await world.accept(alice, send("m1", dm(bob)), {
      afterLookUp: () => {
        world.nowMs += 10 * windowMs;
      },
    });
    expect(asleep).toEqual({ type: "outdated" });
    expect(counted.calls).toBe(0);
    expect(await world.effects()).toMatchObject(noEffects);
  });

  test("the same id races past the look-up on two brokers and spends once", async () => {
    const stores = [world.store.accepts, (await world.openAnother()).accepts];
    const barrier = createBarrier(6);
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, n) => {
        const store = stores[n % 2] ?? world.store.accepts;
        return world.accept(alice, send("m1", dm(bob)), { afterLookUp: barrier, store });
      }),
    );
    expect(results.map(({ type }) => type).sort()).toEqual(["accepted", ...Array(5).fill("duplicate")]);
    expect([await offer("m2"), await offer("m3"), await offer("m4")]).toEqual(["accepted", "accepted", "rate_limited"]);
  });

  test("a retry that crosses into a spent window after its id was committed is a duplicate, not rate-limited", async () => {
    const late = await world.accept(alice, send("m1", dm(bob)), {
      afterLookUp: async () => {
        expect(await offer("m1")).toBe("accepted");
        world.nowMs += windowMs;
        for (const id of ["m2", "m3", "m4"]) expect(await offer(id)).toBe("accepted");
      },
    });
    expect(late).toMatchObject({ type: "duplicate", historyId: 1 });
  });

  test("a refusal in the transaction refunds nothing, is counted once, and spends nothing more when offered again", async () => {
    const news = send("m1", topic("news"));
    for (let again = 0; again < 4; again += 1) {
      expect(await world.accept(alice, news)).toEqual({ type: "refused", code: "destination_not_found" });
    }
    expect(counted.spentThenRefused).toBe(1);
    expect([await offer("m2"), await offer("m3"), await offer("m4")]).toEqual(["accepted", "accepted", "rate_limited"]);
    await world.addTopic("news");
    expect((await world.accept(alice, news)).type).toBe("accepted");
  });

  describe("while Redis is away", () => {
    beforeEach(async () => {
      expect(await offer("before")).toBe("accepted");
      await redis?.stop();
      await until("the loss is noticed", () => !connection.ready);
      return async () => {
        await redis?.start();
        await until("Redis is back", () => connection.ready);
        await until("the test's own connection is back", () => admin.isReady);
      };
    });

    test("new ids are refused, retries succeed, nothing is stored, and its return is enough to go on", async () => {
      const refusal = await world.accept(alice, send("m1", dm(bob)));
      expect(refusal).toEqual({ type: "refused", code: "limiter_unavailable" });
      expect(await offer("before")).toBe("duplicate");
      expect(await world.fate(alice, send("m1", dm(bob)))).toEqual({ fate: "none" });
      expect(await world.effects()).toMatchObject({ dedupe: 1, history: 1 });
      await redis?.start();
      await until("Redis is back", () => connection.ready);
      expect(await offer("m1")).toBe("accepted");
    });

    test("a retry that is past its look-up is answered by what committed meanwhile", async () => {
      const answered = await world.accept(alice, send("before", dm(bob)), {
        store: { ...world.store.accepts, findAccepted: forgetOnce(world.store.accepts.findAccepted) },
      });
      expect(answered).toMatchObject({ type: "duplicate", historyId: 1 });
    });

    test("an open limiter lets new ids pass and counts them", async () => {
      whenUnavailable = "pass";
      await world.reopen();
      expect([await offer("m1"), await offer("m2")]).toEqual(["accepted", "accepted"]);
      expect(counted.passed).toBe(2);
      expect(await world.effects()).toEqual({ ...noEffects, dedupe: 3, message: 3, history: 3, delivery: 3 });
    });
  });
});

/** As a look-up does that came a moment too early. */
function forgetOnce(find: AcceptStore["findAccepted"]): AcceptStore["findAccepted"] {
  let asked = false;
  return async (meshId, id) => {
    if (asked) return find(meshId, id);
    asked = true;
    return undefined;
  };
}
