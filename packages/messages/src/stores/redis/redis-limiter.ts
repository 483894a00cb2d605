// The limiter on Redis, shared by every broker: the idempotent budget of one mesh per window. Keys of a mesh share its
// hash tag, so that a cluster keeps them together, and all of them expire.

import { NaturalBatches } from "@claudemesh/storage/natural-batches";
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
const idsPerCall = 256;
const callsAtOnce = 2;

/** What the script says of an id. */
type Covering = "spent" | "counted_before" | "denied";
type Lane = { readonly window: number; readonly ids: NaturalBatches<string, Covering> };

/** Where a window's ids are. A mesh's windows share a hash tag, so that they are on one server of a cluster. */
export function windowKey(meshId: string, windowSeconds: number, window: number): string {
  return `rls:{${meshId}}:${windowSeconds}:${window}`;
}

export function createRedisLimiter(redis: RedisConnection, options: RedisLimiterOptions): Limiter {
  const { rate, timeoutMs = 250, onFailure } = options;
  /** By mesh. Who is late for a window that has passed shares with those who are late like it, or with nobody. */
  const lanes = new Map<string, Lane>();

  const openLane = (meshId: string, window: number): Lane => {
    const keyOf = (aWindow: number) => windowKey(meshId, rate.windowSeconds, aWindow);
    const keys = { current: keyOf(window), outlived: keyOf(window - 2) };
    // The current window and the one after it: whoever's clock is late still finds what was counted.
    const ttlSeconds = 2 * rate.windowSeconds;
    const ids = new NaturalBatches<string, Covering>({
      maxBatch: idsPerCall,
      maxConcurrent: callsAtOnce,
      run: async (batch) => {
        const covered = await redis.ask(
          (client) => client.consumeBudget(keys, batch, rate.limit, ttlSeconds),
          timeoutMs,
        );
        return covered.map((answer) => (answer === 2 ? "spent" : answer === 1 ? "counted_before" : "denied"));
      },
    });
    const lane = { window, ids };
    lanes.set(meshId, lane);
    return lane;
  };

  return {
    consume: async (meshId, clientMessageId, nowMs): Promise<LimiterDecision> => {
      const window = windowStartMs(rate, nowMs) / (rate.windowSeconds * 1000);
      const open = lanes.get(meshId);
      const lane = open?.window === window ? open : openLane(meshId, window);
      try {
        const covering = await lane.ids.submit(clientMessageId);
        if (covering !== "denied") return { type: "ok", spent: covering === "spent" };
        return { type: "denied", retryAfterSeconds: retryAfterSeconds(rate, nowMs) };
      } catch (error) {
        onFailure(error);
        return { type: "unavailable" };
      } finally {
        if (lane.ids.idle && lanes.get(meshId) === lane) lanes.delete(meshId);
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
