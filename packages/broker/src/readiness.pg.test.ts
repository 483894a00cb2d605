// /readyz of a real broker whose PostgreSQL or Redis answers questions and takes no writes, as a standby or a replica does.
import { join } from "node:path";
import pg from "pg";
import { createClient } from "redis";
import { afterAll, describe, expect, test, vi } from "vitest";
import { callBroker, makeTemporaryFolder, startTestBroker } from "../../../tests/support/broker-harness.ts";
import { RestartableRedis } from "../../../tests/support/restartable-redis.ts";
import { createTestDatabase } from "../../../tests/support/services.ts";

const database = await createTestDatabase("readiness");
const redis = database === undefined ? undefined : await RestartableRedis.create();
afterAll(async () => {
  await redis?.stop();
  await database?.drop();
});

async function startBroker(flags: Record<string, string> = {}) {
  const folder = makeTemporaryFolder();
  const stores = { store: database?.url ?? "", redis: redis?.url ?? "" };
  return startTestBroker({ folder, flags: { ...stores, "admin-token-file": join(folder, "admin"), ...flags } });
}

/** The proof is kept for a second. */
async function untilReadiness(url: string, status: number, facts: object): Promise<void> {
  await vi.waitFor(async () => expect(await callBroker(url, "GET", "/readyz")).toMatchObject({ status, body: facts }), {
    timeout: 15_000,
    interval: 100,
  });
}

/** As a standby refuses them; every question is answered as before. */
async function refuseWrites(refused: boolean): Promise<void> {
  const client = new pg.Client({ connectionString: database?.url });
  await client.connect();
  await client.query(
    refused
      ? `CREATE FUNCTION mesh.refuse_writes() RETURNS trigger LANGUAGE plpgsql AS $$
           BEGIN RAISE EXCEPTION 'cannot execute in a read-only transaction' USING ERRCODE = '25006'; END $$;
         CREATE TRIGGER refuse_writes BEFORE INSERT OR UPDATE OR DELETE ON mesh.broker_lease
           FOR EACH STATEMENT EXECUTE FUNCTION mesh.refuse_writes()`
      : "DROP FUNCTION mesh.refuse_writes CASCADE",
  );
  await client.end();
}

describe.skipIf(redis === undefined)("/readyz", () => {
  test("is 503 while PostgreSQL takes no writes though it answers, and 200 afterwards", async () => {
    const { url } = await startBroker();
    await untilReadiness(url, 200, { status: "ready", store: "ok", limiter: "ok", time: expect.any(Number) });
    await refuseWrites(true);
    await untilReadiness(url, 503, { error: "storage_unavailable", store: "unavailable", limiter: "ok" });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    expect(metrics).toContain("cm_broker_store_up 0\n");
    expect(metrics).toContain("cm_broker_limiter_up 1\n");
    await refuseWrites(false);
    await untilReadiness(url, 200, { store: "ok" });
  });

  test("is 503 while Redis is a replica that takes no writes; with --limiter-open it says that sends pass uncounted", async () => {
    const strict = await startBroker();
    const open = await startBroker({ "limiter-open": "true" });
    const admin = createClient({ url: redis?.url ?? "" });
    await admin.connect();
    await admin.sendCommand(["REPLICAOF", "127.0.0.1", "1"]);
    await untilReadiness(strict.url, 503, { error: "limiter_unavailable", store: "ok", limiter: "unavailable" });
    await untilReadiness(open.url, 200, { status: "ready", limiter: "uncounted" });
    await admin.sendCommand(["REPLICAOF", "NO", "ONE"]);
    await untilReadiness(strict.url, 200, { limiter: "ok" });
    admin.destroy();
  });
});
