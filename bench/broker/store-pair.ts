// The stores that broker scenarios run on: a SQLite file and, where a server is there, a PostgreSQL database of their own
// with Redis beside it. Made for one round or one run, and removed after it.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { createTestDatabase, findRedis } from "../../tests/support/services.ts";
import type { Closing } from "../processes/closing.ts";
import type { StoreKind, StoreLocation } from "./store-location.ts";

export type StoreMaker = {
  /** SQLite always; PostgreSQL where it and Redis are. */
  readonly kinds: readonly StoreKind[];
  readonly make: (kind: StoreKind, folder: string, label: string) => Promise<MadeStore>;
};

export type MadeStore = { readonly location: StoreLocation; readonly remove: () => Promise<void> };

export async function findStores(closing: Closing): Promise<StoreMaker> {
  const redis = await findRedis();
  const probe = redis && (await createTestDatabase("bench_probe"));
  await probe?.drop();
  if (redis !== undefined) closing.add(() => redis.stop());
  const make: StoreMaker["make"] = async (kind, folder, label) => {
    if (kind === "sqlite")
      return { location: { kind, path: join(folder, `${label}.db`) }, remove: async () => undefined };
    const database = await createTestDatabase(`bench_${label.replaceAll("-", "_")}`);
    if (database === undefined || redis === undefined) throw new Error("PostgreSQL or Redis has gone away");
    const remove = closing.add(() => database.drop());
    return { location: { kind, url: database.url, redisUrl: redis.url }, remove };
  };
  return { kinds: probe === undefined ? ["sqlite"] : ["sqlite", "postgres"], make };
}

/** Accepted sends that the store holds, read on a connection of its own. */
export async function countAccepted(location: StoreLocation): Promise<number> {
  if (location.kind === "sqlite") {
    const db = new DatabaseSync(location.path, { timeout: 10_000 });
    const { n } = db.prepare("SELECT count(*) AS n FROM client_message_dedupe").get() ?? {};
    db.close();
    return Number(n);
  }
  return Number(await askPostgres(location.url, "SELECT count(*) FROM mesh.client_message_dedupe"));
}

/** The first column of the first row. */
export async function askPostgres(url: string, text: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query({ text, rowMode: "array" });
    return rows[0]?.[0];
  } finally {
    await client.end();
  }
}

/** A connection that has gone idle reports what it did within this time, and not sooner. */
const statisticsDelayMs = 10_500;

/**
 * How often the server flushed its log per operation while `work` was done; undefined where it does not tell. The
 * count is the server's own and for all who use it. Takes long, so that it stays out of timed segments.
 */
export async function countWalFlushes(
  url: string,
  work: () => Promise<{ readonly answered: number }>,
): Promise<number | undefined> {
  const version = Number(await askPostgres(url, "SHOW server_version_num"));
  if (version < 140_000) return undefined;
  const text =
    version < 180_000 ? "SELECT wal_sync FROM pg_stat_wal" : "SELECT sum(fsyncs) FROM pg_stat_io WHERE object = 'wal'";
  await sleep(statisticsDelayMs);
  const before = Number(await askPostgres(url, text));
  const { answered } = await work();
  await sleep(statisticsDelayMs);
  return (Number(await askPostgres(url, text)) - before) / answered;
}
