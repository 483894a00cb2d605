// The byte ledger on Redis, shared by every broker. Keys of a mesh share its hash tag, and all of them expire.
import type { ByteLedger } from "../../ports/byte-ledger.ts";
import type { RedisConnection } from "./redis-connection.ts";

const timeoutMs = 250;

export function createRedisByteLedger(redis: RedisConnection): ByteLedger {
  return {
    add: async (meshId, windowStartMs, windowSeconds, bytes) => {
      const key = `rlb:{${meshId}}:${windowSeconds}:${windowStartMs}`;
      const [used] = await redis.ask(
        (client) =>
          client
            .multi()
            .incrBy(key, bytes)
            .expire(key, 2 * windowSeconds)
            .execTyped(),
        timeoutMs,
      );
      return used;
    },
  };
}
