// What asking on a connection to a real Redis means for who asks.
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { RestartableRedis } from "../../../../../tests/support/restartable-redis.ts";
import { RedisConnection } from "./redis-connection.ts";

const redis = await RestartableRedis.create();
afterAll(() => redis?.stop());

/** Long enough for Redis to have answered whatever was written before. */
function keepBusy(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
}

describe.skipIf(redis === undefined)("a connection to Redis", () => {
  test.each([
    ["before the question is written", (block: () => void) => block()],
    ["after it", (block: () => void) => setImmediate(block)],
  ])("gives the answer to a process that was busy for longer than the time limit, %s", async (_, atTheTime) => {
    const ready = Promise.withResolvers<void>();
    const connection = new RedisConnection({
      url: redis?.url ?? "",
      name: "connection-test",
      onProblem: () => undefined,
      onReady: ready.resolve,
    });
    onTestFinished(() => connection.close());
    await ready.promise;
    const timeoutMs = 100;
    const answer = connection.ask((client) => client.ping(), timeoutMs);
    atTheTime(() => keepBusy(10 * timeoutMs));
    expect(await answer).toBe("PONG");
  });
});
