// Opens the one of two backends that the settings name. Nothing else in the broker knows which it is.
import { BrokerConfigError } from "../config.ts";
import type { Backend, BackendSurroundings } from "./backend.ts";

export async function openBackend(surroundings: BackendSurroundings): Promise<Backend> {
  const { store, redisUrl, limiterOpen, deliverySweepSeconds } = surroundings.config;
  if (store.kind === "postgres") {
    if (redisUrl === undefined) {
      throw new BrokerConfigError("--store names a PostgreSQL; brokers on it also need --redis redis://<host>.");
    }
    // Loaded when asked for: an embedded broker starts without the driver and the Redis client.
    const { openPostgresBackend } = await import("./postgres-backend.ts");
    return openPostgresBackend(surroundings, store.url, redisUrl);
  }
  const given = {
    redis: redisUrl,
    "limiter-open": limiterOpen || undefined,
    "delivery-sweep-seconds": deliverySweepSeconds,
  };
  for (const [flag, value] of Object.entries(given)) {
    if (value === undefined) continue;
    throw new BrokerConfigError(`--${flag} goes with --store postgres://…; a broker on SQLite has no use for it.`);
  }
  const { openSqliteBackend } = await import("./sqlite-backend.ts");
  return openSqliteBackend(surroundings, store.path);
}
