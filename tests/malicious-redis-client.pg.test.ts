// What a program can do that reaches the brokers' Redis and knows nothing else: it listens on their channel, speaks on it, plays
// what it heard again, cuts them off, and writes the limiter's keys. Two real brokers on PostgreSQL and a Redis of their own. The
// whole list: docs/threat-model.md.
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { createTestMesh, joinTestMesh, makeTemporaryFolder, startTestBroker } from "./support/broker-harness.ts";
import { MaliciousRedisClient } from "./support/malicious-redis-client.ts";
import { soon } from "./support/member-home.ts";
import { RestartableRedis } from "./support/restartable-redis.ts";
import { createTestDatabase } from "./support/services.ts";

const database = await createTestDatabase("redis_client");
const redis = database === undefined ? undefined : await RestartableRedis.create();
afterAll(async () => {
  await redis?.stop();
  await database?.drop();
});

let meshes = 0;

/** Alice at one broker, bob at the other. */
async function start(env: Record<string, string> = {}) {
  const folder = makeTemporaryFolder();
  const flags = {
    store: database?.url ?? "",
    redis: redis?.url ?? "",
    "admin-token-file": join(folder, "admin"),
    "delivery-sweep-seconds": "1",
  };
  const [one, two] = [await startTestBroker({ folder, flags, env }), await startTestBroker({ folder, flags, env })];
  const alice = await createTestMesh(one, `acme-${++meshes}`);
  const bob = await joinTestMesh(alice, "bob");
  bob.url = two.url;
  const client = await MaliciousRedisClient.connect(redis?.url ?? "");
  const forged = async () => {
    const counts = await Promise.all(
      [one, two].map(async ({ url }) => {
        const text = await (await fetch(`${url}/metrics`)).text();
        return Number(/^cm_broker_signals_forged_total(?:\{[^}]*\})? (\d+)$/m.exec(text)?.[1]);
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };
  return { one, two, alice, bob, client, forged };
}

describe.skipIf(redis === undefined)("a program that speaks on the brokers' channel", () => {
  test("ends no daemon and cuts no member off with signals that it makes up, and each broker counts them", async () => {
    const { alice, bob, client, forged } = await start();
    const daemon = await bob.connect();
    const about = { meshId: alice.meshId, pubkey: bob.pubkey };
    const signals = [
      { type: "daemon_connected", ...about, stamp: "ffffffff-ffff-7fff-8fff-ffffffffffff" },
      { type: "daemon_refused", ...about, stamp: "ffffffff-ffff-7fff-8fff-ffffffffffff" },
      { type: "member_revoked", ...about },
    ];
    const text = JSON.stringify({ from: "another", signals });
    for (const said of [text, `${"0".repeat(64)} ${text}`, "no signal at all"]) await client.say(said);
    await expect.poll(forged, soon).toBe(6);
    expect((await daemon.request("topic.list")).status).toBe(200);
  });

  test("does nothing by playing again what it has heard there, that a daemon came among it", async () => {
    const { alice, bob, client, forged } = await start();
    const first = await bob.connect();
    await expect.poll(() => client.heard("daemon_connected"), soon).not.toEqual([]);
    const second = await bob.connect();
    expect((await first.closed).code).toBe(4003);
    await alice.send("m-1", bob);
    const { client_message_id, history_id } = await second.nextPush();
    expect(client_message_id).toBe("m-1");
    await second.ack(history_id);
    for (const said of [...client.said]) await client.say(said);
    await alice.send("m-2", bob);
    expect((await second.nextPush()).client_message_id).toBe("m-2");
    expect(second.arrived).toEqual([]);
    // They were taken for what a broker said once.
    expect(await forged()).toBe(0);
  });

  test("reads there who is in which mesh and when something comes for whom, and not a word of a message", async () => {
    const { alice, bob, client } = await start();
    const daemon = await bob.connect();
    await alice.send("m-1", bob, "0451-tulip");
    await daemon.nextPush();
    await expect.poll(() => client.heard("deliveries"), soon).not.toEqual([]);
    const all = client.said.join("\n");
    expect(all).toContain(bob.pubkey);
    expect(all).toContain(alice.meshId);
    expect(all).not.toMatch(/tulip|m-1/);
  });

  test("keeps no message and no revocation back by cutting the brokers off from Redis", async () => {
    const { alice, bob, client } = await start();
    const daemon = await bob.connect();
    await alice.token();
    const stop = await client.cutOffForEver();
    await alice.send("m-1", bob);
    expect((await daemon.nextPush()).client_message_id).toBe("m-1");
    await alice.call("DELETE", `/members/${bob.pubkey}`);
    expect((await daemon.closed).code).toBe(4005);
    await stop();
  });
});

describe.skipIf(redis === undefined)("a program that writes the limiter's keys", () => {
  const rate = { CLAUDEMESH_RATE_LIMIT: "20/86400s" };

  test("spends a mesh's budget, so that new sends wait until the window ends, and retries of old ones do not", async () => {
    const { alice, bob, client } = await start(rate);
    expect((await alice.send("m-1", bob)).status).toBe(201);
    await client.spend(alice.meshId);
    expect((await alice.send("m-2", bob)).status).toBe(429);
    expect(await alice.send("m-1", bob)).toMatchObject({ status: 200, body: { duplicate: true } });
  });

  test("gives a mesh's budget back as often as it likes, so that its members can send without one", async () => {
    const { alice, bob, client } = await start(rate);
    const statuses: number[] = [];
    const sendMany = async (name: string) => {
      for (let at = 0; at < 20; at++) statuses.push((await alice.send(`${name}-${at}`, bob)).status);
    };
    await sendMany("a");
    expect(statuses).toContain(429);
    statuses.length = 0;
    await client.refund(alice.meshId);
    await sendMany("b");
    expect(new Set(statuses)).toEqual(new Set([201]));
  });

  test("makes the limiter useless by writing what is no budget: sends are refused, and none is taken uncounted", async () => {
    const { alice, bob, client } = await start(rate);
    expect((await alice.send("m-1", bob)).status).toBe(201);
    await client.spoil(alice.meshId);
    expect(await alice.send("m-2", bob)).toMatchObject({ status: 503, body: { retryable: true } });
    expect(await alice.send("m-1", bob)).toMatchObject({ status: 200, body: { duplicate: true } });
    await client.refund(alice.meshId);
    expect((await alice.send("m-2", bob)).status).toBe(201);
  });
});
