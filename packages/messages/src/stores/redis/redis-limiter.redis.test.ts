// The limiter on a real Redis: what it counts, what it keeps and for how long, and what it says when Redis is away.
import { randomUUID } from "node:crypto";
import { createClient } from "redis";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { startFaultyProxy } from "../../../../../tests/support/faulty-proxy.ts";
import { RestartableRedis } from "../../../../../tests/support/restartable-redis.ts";
import { until } from "../../../../../tests/support/world.ts";
import type { RateLimit } from "../../core/rate-limit.ts";
import type { Limiter } from "../../ports/limiter.ts";
import { RedisConnection } from "./redis-connection.ts";
import { createRedisLimiter } from "./redis-limiter.ts";

const redis = await RestartableRedis.create();
afterAll(() => redis?.stop());

const rate: RateLimit = { limit: 3, windowSeconds: 60 };
/** Ten seconds into a window. */
const nowMs = 1_699_999_990_000;

type OpenLimiter = { readonly limiter: Limiter; readonly failures: unknown[]; readonly readies: number };

async function openLimiter(
  url: string,
  options: { rate?: RateLimit; heartbeatMs?: number } = {},
): Promise<OpenLimiter> {
  const failures: unknown[] = [];
  const ready = Promise.withResolvers<void>();
  let readies = 0;
  const connection = new RedisConnection({
    url,
    name: "limiter-test",
    onProblem: () => undefined,
    onReady: () => {
      readies += 1;
      ready.resolve();
    },
    ...(options.heartbeatMs === undefined ? {} : { heartbeatMs: options.heartbeatMs }),
  });
  onTestFinished(() => connection.close());
  await ready.promise;
  const onFailure = (error: unknown) => void failures.push(error);
  const limiter = createRedisLimiter(connection, { rate: options.rate ?? rate, onFailure });
  return {
    limiter,
    failures,
    get readies() {
      return readies;
    },
  };
}

describe.skipIf(redis === undefined)("the limiter on Redis", () => {
  const url = redis?.url ?? "";
  const admin = createClient({ url });
  admin.on("error", () => undefined);
  beforeAll(async () => {
    await admin.connect();
  });
  afterAll(() => admin.destroy());

  test("covers an id once per window, whichever broker offers it and however often, and denies what is over the limit", async () => {
    const mesh = randomUUID();
    const [one, two] = [await openLimiter(url), await openLimiter(url)];
    const offers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : two).limiter.consume(mesh, "m1", nowMs)),
    );
    expect(new Set(offers.map(({ type }) => type))).toEqual(new Set(["ok"]));
    expect(offers.filter((offer) => offer.type === "ok" && offer.spent)).toHaveLength(1);
    expect(await one.limiter.consume(mesh, "m2", nowMs)).toEqual({ type: "ok", spent: true });
    expect(await two.limiter.consume(mesh, "m3", nowMs)).toEqual({ type: "ok", spent: true });
    expect(await one.limiter.consume(mesh, "m4", nowMs)).toEqual({ type: "denied", retryAfterSeconds: 50 });
    expect(await two.limiter.consume(mesh, "m2", nowMs)).toEqual({ type: "ok", spent: false });
    // Another mesh and another window have budgets of their own.
    expect(await one.limiter.consume(randomUUID(), "m4", nowMs)).toEqual({ type: "ok", spent: true });
    expect(await one.limiter.consume(mesh, "m4", nowMs + 50_000)).toEqual({ type: "ok", spent: true });
  });

  test("gives exactly the budget to many brokers that offer different ids at once", async () => {
    const mesh = randomUUID();
    const limiters = await Promise.all(
      [1, 2, 3].map(() => openLimiter(url, { rate: { limit: 500, windowSeconds: 60 } })),
    );
    const decisions = await Promise.all(
      Array.from({ length: 1_200 }, (_, n) => limiters[n % 3]?.limiter.consume(mesh, `m${n}`, nowMs)),
    );
    expect(decisions.filter((decision) => decision?.type === "ok")).toHaveLength(500);
    expect(decisions.filter((decision) => decision?.type === "denied")).toHaveLength(700);
  });

  test("keeps a mesh's keys under one hash tag, each with an end, and records nothing for what it denies", async () => {
    const mesh = randomUUID();
    const { limiter } = await openLimiter(url);
    for (const id of ["m1", "}{", "m3", "m4", "m5"]) await limiter.consume(mesh, id, nowMs);
    const keys = await admin.keys(`*${mesh}*`);
    expect(keys).toHaveLength(1);
    for (const key of keys) {
      expect(/\{([^}]*)\}/.exec(key)?.[1]).toBe(mesh);
      expect(await admin.sMembers(key)).toEqual(expect.arrayContaining(["m1", "}{", "m3"]));
      expect(await admin.sCard(key)).toBe(3);
      const ttl = await admin.ttl(key);
      expect(ttl).toBeGreaterThan(60);
      expect(ttl).toBeLessThanOrEqual(120);
    }
  });

  test("frees what a mesh in use spent in the window before the last, and keeps the last for a broker whose clock is late", async () => {
    const mesh = randomUUID();
    const { limiter } = await openLimiter(url);
    for (const window of [0, 1, 2]) await limiter.consume(mesh, `m${window}`, nowMs + window * 60_000);
    const kept = await Promise.all((await admin.keys(`*${mesh}*`)).map((key) => admin.sMembers(key)));
    expect(kept.flat().sort()).toEqual(["m1", "m2"]);
    expect(await limiter.consume(mesh, "m1", nowMs + 60_000)).toEqual({ type: "ok", spent: false });
  });

  test("asks once for everyone who comes in the same moment, also when Redis has forgotten the script", async () => {
    const mesh = randomUUID();
    const { limiter } = await openLimiter(url, { rate: { limit: 1_000, windowSeconds: 60 } });
    await limiter.consume(mesh, "first", nowMs);
    await admin.configResetStat();
    await Promise.all(Array.from({ length: 100 }, (_, n) => limiter.consume(mesh, `m${n}`, nowMs)));
    const stats = await admin.info("commandstats");
    expect(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1]).toBe("1");
    expect(stats).not.toContain("cmdstat_eval:");
    await admin.scriptFlush();
    expect(await limiter.consume(mesh, "after", nowMs)).toEqual({ type: "ok", spent: true });
  });

  test("is unavailable at once while Redis is away, and comes back with it", async () => {
    const { limiter, failures } = await openLimiter(url);
    expect(await limiter.available()).toBe(true);
    await redis?.stop();
    onTestFinished(() => redis?.start());
    await until("the loss is noticed", async () => !(await limiter.available()));
    const before = failures.length;
    const decisions = await Promise.all(["m1", "m2"].map((id) => limiter.consume(randomUUID(), id, nowMs)));
    expect(decisions).toEqual([{ type: "unavailable" }, { type: "unavailable" }]);
    expect(failures.length).toBeGreaterThan(before);
    await redis?.start();
    await until("Redis is back", () => limiter.available());
    expect(await limiter.consume(randomUUID(), "m1", nowMs)).toEqual({ type: "ok", spent: true });
  });

  test("does not wait for a Redis that has fallen silent, and replaces the connection until one is answered", async () => {
    const proxy = await startFaultyProxy(url);
    onTestFinished(() => proxy.stop());
    const open = await openLimiter(proxy.url, { heartbeatMs: 100 });
    expect(await open.limiter.consume(randomUUID(), "m1", nowMs)).toEqual({ type: "ok", spent: true });
    proxy.fallSilent();
    expect(await open.limiter.consume(randomUUID(), "m2", nowMs)).toEqual({ type: "unavailable" });
    // The next one is accepted, and hears nothing either.
    await until("the replacement is replaced", () => proxy.seen.connections > 2);
    expect(await open.limiter.consume(randomUUID(), "m2", nowMs)).toEqual({ type: "unavailable" });
    proxy.speak();
    await until("another connection is made", () => open.readies > 1);
    expect(await open.limiter.consume(randomUUID(), "m3", nowMs)).toEqual({ type: "ok", spent: true });
  });
});
