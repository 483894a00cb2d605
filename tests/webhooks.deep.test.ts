// Webhooks of real brokers under SIGKILL: whatever was accepted reaches the receiver, at least once and under one id
// (MSG-22); and the commands for it, as an owner uses them.
import { writeFileSync } from "node:fs";

import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import type { TestMember } from "./support/broker-harness.ts";
import { Brokers, createMeshOn, findServers } from "./support/brokers.ts";
import { runCli, runJson } from "./support/process.ts";
import { createRandom, seedOfTheDay } from "./support/seed.ts";
import { isSigned, WebhookReceiver } from "./support/webhook-receiver.ts";
import { until, World } from "./support/world.ts";

const secret = "a-secret-of-the-receiver";
const flags = [
  ...["--webhook-allow-private", "--webhook-timeout-ms", "1000", "--webhook-attempts", "50"],
  ...["--webhook-backoff-min-ms", "20", "--webhook-backoff-max-ms", "200"],
];

let receiver: WebhookReceiver;
beforeEach(async () => {
  receiver = await WebhookReceiver.start();
});
afterEach(() => receiver.stop());

/** Every message came, each under one message id, signed; nothing else did. */
function expectAllReceived(ids: readonly string[]): void {
  expect([...new Set(receiver.messages)].toSorted()).toEqual([...ids].toSorted());
  const byMessage = Map.groupBy(receiver.received, ({ content }) => content.message.client_message_id);
  for (const hooks of byMessage.values()) {
    expect(new Set(hooks.map(({ headers }) => headers["x-claudemesh-message-id"])).size).toBe(1);
    expect(new Set(hooks.map(({ body }) => body)).size).toBe(1);
  }
  expect(receiver.received.every((hook) => isSigned(hook, secret))).toBe(true);
}

describe("on SQLite", () => {
  let world: World;
  beforeEach(() => {
    world = new World(flags);
  });
  afterEach(() => world.end());

  test("a broker that dies between the receiver's answer and writing it down delivers again, and loses nothing", async () => {
    await world.startBroker({ failpoints: "webhook.after_post@3=crash" });
    const alice = await world.addPeer("alice");
    const at = { home: alice.home };
    const secretFile = join(alice.home, "secret");
    writeFileSync(secretFile, `${secret}\n`, { mode: 0o600 });
    await runJson(["topic", "create", "builds"], at);
    await runJson(["webhook", "create", "ci", "--url", receiver.url, "--secret-file", secretFile], at);
    await alice.start();
    const ids = Array.from({ length: 10 }, (_, n) => `m${n}`);
    const crashed = world.broker.exited;
    for (const id of ids) await runJson(["send", "#builds", `about ${id}`, "--id", id], at);
    expect((await crashed).signal).toBe("SIGKILL");
    await world.startBroker();

    await until("every message was delivered", async () => {
      const { items } = await runJson<{ items: { state: string }[] }>(["webhook", "deliveries", "ci"], at);
      return (items.length === ids.length && items.every(({ state }) => state === "delivered")) || undefined;
    });
    expectAllReceived(ids);
    expect(receiver.received.length).toBeGreaterThan(ids.length);
  });

  test("the commands create, list, show, replay and delete", async () => {
    await world.startBroker();
    const alice = await world.addPeer("alice");
    const at = { home: alice.home };
    await runJson(["topic", "create", "builds"], at);
    const create = ["webhook", "create", "ci", "--url", receiver.url, "--topic", "builds"];
    const made = await runJson<{ secret: string }>(create, at);
    expect(made).toMatchObject({ id: "ci", topics: ["builds"], secret: expect.stringMatching(/^cmw_/) });
    expect(await runJson(create, at)).not.toHaveProperty("secret");
    const other = await runCli(["webhook", "create", "ci", "--url", `${receiver.url}2`, "--json"], at);
    expect(JSON.parse(other.stdout)).toMatchObject({ error: "exists_with_other_content" });
    expect(other.code).not.toBe(0);
    expect(await runJson(["webhook", "list"], at)).toMatchObject({ items: [{ id: "ci", url: receiver.url }] });

    await alice.start();
    await runJson(["send", "#builds", "one", "--id", "m1"], at);
    await until("it came", () => receiver.received.length === 1 || undefined);
    expect(receiver.received.every((hook) => isSigned(hook, made.secret))).toBe(true);
    await until("it is settled", async () => {
      const settled = ["webhook", "deliveries", "ci", "--state", "delivered"];
      return (await runJson<{ items: unknown[] }>(settled, at)).items.length === 1 || undefined;
    });
    expect((await runCli(["webhook", "deliveries", "ci"], at)).stdout).toContain("delivered");
    const replay = async (...args: string[]) => (await runCli(["webhook", "replay", "ci", ...args], at)).stdout;
    expect(await replay("--history-id", "999")).toContain("Nothing to deliver again");
    expect(await replay()).toContain("Nothing to deliver again");
    expect(await replay("--history-id", "1")).toContain("1 will be delivered again");
    await until("it came again", () => receiver.received.length === 2 || undefined);
    expect(await runJson(["webhook", "replay", "ci", "--from", "1"], at)).toMatchObject({ from_history_id: 1 });
    expect(await replay("--from", "1")).toContain("from id 1 on will be delivered again");
    expect((await runCli(["webhook", "replay", "ci", "--from", "1", "--history-id", "1"], at)).code).toBe(2);
    expect(await runJson(["webhook", "delete", "ci"], at)).toEqual({ id: "ci", deleted: true });
    expect((await runCli(["webhook", "list"], at)).stdout).toContain("There is no webhook.");
    expect((await runCli(["webhook", "deliveries", "ci"], at)).stderr).toContain("claudemesh webhook list");
  });
});

const servers = await findServers("webhooks");
afterAll(() => servers.stop());

describe.skipIf(!servers.found)("on brokers side by side", () => {
  test("whichever is killed, and however the receiver fails, every message arrives", async () => {
    const random = createRandom(seedOfTheDay());
    const brokers = new Brokers({ ...servers.urls, flags });
    try {
      const all = await Promise.all([brokers.add(), brokers.add()]);
      const owner: TestMember = await createMeshOn(brokers, all[0], "hooks");
      receiver.answerWith(() => {
        const drawn = random.next();
        if (drawn < 0.1) return (_request, response) => void response.destroy();
        return drawn < 0.2 ? 503 : 200;
      });
      await owner.call("POST", "/topics", { name: "builds" });
      expect((await owner.call("POST", "/webhooks", { id: "ci", url: receiver.url, secret })).status).toBe(201);
      const ids: string[] = [];
      for (let kill = 0; kill < 4; kill++) {
        const [victim, other] = kill % 2 === 0 ? all : all.toReversed();
        if (victim === undefined || other === undefined) throw new Error("two brokers were started");
        owner.url = other.url;
        const goal = receiver.received.length + 20;
        const batch = Array.from({ length: 60 }, (_, n) => `m${ids.length + n}`);
        const destination = { kind: "topic", ref: "builds" };
        const posts = batch.map((id) =>
          owner.call("POST", "/messages", { client_message_id: id, destination, body: id }),
        );
        for (const { status } of await Promise.all(posts)) expect(status).toBe(201);
        ids.push(...batch);
        await until("deliveries are on their way", () => receiver.received.length >= goal || undefined);
        await victim.kill();
        await victim.start();
      }
      await until(
        "nothing is open",
        async () => {
          const { body } = await owner.call("GET", "/webhooks");
          const [hook] = body.items as { pending: number; parked: number; read_up_to: number }[];
          return (hook?.pending === 0 && hook.parked === 0 && hook.read_up_to === ids.length) || undefined;
        },
        60_000,
      );
      expectAllReceived(ids);
    } finally {
      await brokers.end();
    }
  });
});
