// The byte ledger on a real Redis: brokers add to one sum, and it expires.
import { randomUUID } from "node:crypto";
import { createClient } from "redis";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { findRedis } from "../../../../../tests/support/services.ts";
import { createRedisByteLedger } from "./redis-byte-ledger.ts";
import { RedisConnection } from "./redis-connection.ts";

const redis = await findRedis();
afterAll(() => redis?.stop());

async function openLedger(url: string) {
  const ready = Promise.withResolvers<void>();
  const connection = new RedisConnection({
    url,
    name: "byte-ledger-test",
    onProblem: () => undefined,
    onReady: ready.resolve,
  });
  onTestFinished(() => connection.close());
  await ready.promise;
  return { connection, ledger: createRedisByteLedger(connection) };
}

test.skipIf(redis === undefined)("adds up what brokers spend for a mesh in a window, and lets it expire", async () => {
  const url = redis?.url ?? "";
  const mesh = randomUUID();
  const [a, b] = [await openLedger(url), await openLedger(url)];
  expect(await a.ledger.add(mesh, 60_000, 60, 5)).toBe(5);
  expect(await b.ledger.add(mesh, 60_000, 60, 6)).toBe(11);
  expect(await b.ledger.add(mesh, 120_000, 60, 1)).toBe(1);
  const client = await createClient({ url }).connect();
  const ttl = await client.ttl(`rlb:{${mesh}}:60:60000`);
  client.destroy();
  expect(ttl).toBeGreaterThan(60);
  expect(ttl).toBeLessThanOrEqual(120);
  a.connection.close();
  await expect(a.ledger.add(mesh, 60_000, 60, 1)).rejects.toMatchObject({ name: "RedisUnavailable" });
});
