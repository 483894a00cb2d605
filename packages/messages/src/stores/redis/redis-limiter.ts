// The limiter on Redis, shared by every broker: the idempotent budget of one mesh per window. Keys of a mesh share its
// hash tag, so that a cluster keeps them together, and all of them expire.

import { Batcher, questions } from "@claudemesh/storage/batcher";
import { type RateLimit, retryAfterSeconds, windowStartMs } from "../../core/rate-limit.ts";
import type { Limiter, LimiterDecision } from "../../ports/limiter.ts";
import type { RedisConnection } from "./redis-connection.ts";

export type RedisLimiterOptions = {
  readonly rate: RateLimit;
  readonly timeoutMs?: number;
  /** Why it was unavailable; for the log. */
  readonly onFailure: (error: unknown) => void;
};

/** Shared by all brokers; what it holds means nothing. */
const probeKey = "rls:probe";

/** What the script says of an id. */
type Covering = "spent" | "counted_before" | "denied";
type AskedId = { readonly meshId: string; readonly window: number; readonly clientMessageId: string };

/** Where a window's ids are. A mesh's windows share a hash tag, so that they are on one server of a cluster. */
export function windowKey(meshId: string, windowSeconds: number, window: number): string {
  return `rls:{${meshId}}:${windowSeconds}:${window}`;
}

export function createRedisLimiter(redis: RedisConnection, options: RedisLimiterOptions): Limiter {
  const { rate, timeoutMs = 250, onFailure } = options;
  const keyOf = (meshId: string, window: number) => windowKey(meshId, rate.windowSeconds, window);
  // The current window and the one after it: a broker whose clock is late still finds what was counted.
  const ttlSeconds = 2 * rate.windowSeconds;
  const ids = new Batcher<AskedId, Covering>(questions, {
    keyOf: ({ meshId, window }) => keyOf(meshId, window),
    run: async (asked) => {
      const { meshId, window } = asked[0] as AskedId;
      const keys = { current: keyOf(meshId, window), outlived: keyOf(meshId, window - 2) };
      const offered = asked.map(({ clientMessageId }) => clientMessageId);
      const covered = await redis.ask(
        (client) => client.consumeBudget(keys, offered, rate.limit, ttlSeconds),
        timeoutMs,
      );
      return covered.map((answer) => (answer === 2 ? "spent" : answer === 1 ? "counted_before" : "denied"));
    },
  });

  return {
    consume: async (meshId, clientMessageId, nowMs): Promise<LimiterDecision> => {
      const window = windowStartMs(rate, nowMs) / (rate.windowSeconds * 1000);
      try {
        const covering = await ids.submit({ meshId, window, clientMessageId });
        if (covering !== "denied") return { type: "ok", spent: covering === "spent" };
        return { type: "denied", retryAfterSeconds: retryAfterSeconds(rate, nowMs) };
      } catch (error) {
        onFailure(error);
        return { type: "unavailable" };
      }
    },
    available: async () => {
      try {
        // A write, since a server that answers may be a replica, or out of memory.
        await redis.ask((client) => client.set(probeKey, "1", { expiration: { type: "EX", value: 60 } }), timeoutMs);
        return true;
      } catch (error) {
        onFailure(error);
        return false;
      }
    },
  };
}
