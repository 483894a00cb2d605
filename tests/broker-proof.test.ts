// A daemon believes its own broker alone: whatever else answers at the broker's address, and whatever that says, the daemon
// goes on, keeps what it was asked to send, takes nothing in, and says so. Real brokers and a real daemon, in this process.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMesh, joinMesh, withBroker } from "@claudemesh/client/broker";
import { trustInMemory } from "@claudemesh/client/broker-trust";
import { createDaemonClient, type DaemonClient } from "@claudemesh/client/daemon";
import { ensureMeshDir, type MeshPaths, meshPaths, readMeshConfig, writeMeshConfig } from "@claudemesh/client/home";
import { generateMemberKeys, identityOf, type MemberKeys, writeKeyFile } from "@claudemesh/client/keys";
import { openLink } from "@claudemesh/client/link";
import { type RunningDaemon, startDaemon } from "@claudemesh/daemon/start";
import { announceFeatures } from "@claudemesh/protocol/features";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { describe, expect, onTestFinished, test } from "vitest";
import { startBreachingProxy } from "./support/breaching-proxy.ts";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "./support/broker-harness.ts";
import { createPeerKeys } from "./support/peer-keys.ts";
import { PortThief, type Victim } from "./support/port-thief.ts";

const soon = { timeout: 20_000, interval: 20 };

const thiefKeys = createPeerKeys();

class World {
  readonly folder = makeTemporaryFolder();
  readonly keys: MemberKeys = generateMemberKeys();
  readonly paths: MeshPaths;
  url = "";
  brokerKey = "";
  meshId = "";
  stopBroker: () => Promise<void> = async () => undefined;
  daemon: RunningDaemon | undefined;

  private constructor() {
    const home = mkdtempSync(join(tmpdir(), "cm-"));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    this.paths = meshPaths(home, "acme");
  }

  /** A mesh of one at a broker of its own, and a home for its member; `pinned`: the home knows the broker's key. */
  static async open({ pinned = true } = {}): Promise<World> {
    const world = new World();
    const broker = await world.startBroker();
    const { keys, url } = world;
    const order = { broker: url, adminToken: readAdminToken(broker), name: "acme", ownerName: "alice", keys };
    const { mesh_id: id, broker_key } = await createMesh(order);
    world.meshId = id;
    ensureMeshDir(world.paths);
    writeKeyFile(world.paths.keypair, keys);
    const config = { id, name: "acme", broker: url, member_name: "alice" };
    writeMeshConfig(world.paths, pinned ? { ...config, broker_key } : config);
    return world;
  }

  /** Again on the port that it had. */
  async startBroker() {
    const listen = this.url === "" ? "127.0.0.1:0" : new URL(this.url).host;
    const broker = await startTestBroker({ folder: this.folder, flags: { listen } });
    this.url = broker.url;
    this.brokerKey = broker.brokerKey;
    this.stopBroker = broker.stop;
    return broker;
  }

  async startDaemon(): Promise<DaemonClient> {
    const { home, sock } = this.paths;
    const overrides = { outbox: { backoff_min_ms: 5, backoff_max_ms: 20 }, ipc: { tcp_enabled: false } };
    const connect: NonNullable<Parameters<typeof startDaemon>[0]["connect"]> = (options) =>
      openLink({ ...options, backoff: { minMs: 5, maxMs: 20 } });
    const daemon = await startDaemon({ home, mesh: "acme", env: {}, overrides, connect });
    this.daemon = daemon;
    onTestFinished(() => daemon.stop());
    return createDaemonClient({ socketPath: sock, timeoutMs: 10_000 });
  }

  /** Another program takes the port that the broker had. */
  async takePort(behave: (victim: Victim) => unknown): Promise<PortThief> {
    await this.stopBroker();
    const thief = await PortThief.start(Number(new URL(this.url).port), thiefKeys, behave);
    onTestFinished(() => thief.stop());
    return thief;
  }

  log(): Readonly<Record<string, unknown>>[] {
    const lines = readFileSync(this.paths.log, "utf8").trim().split("\n");
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  events(name: string) {
    return this.log().filter(({ event }) => event === name);
  }
}

async function brokerOf(client: DaemonClient) {
  const { body } = await client.health();
  return (body as { broker: Readonly<Record<string, unknown>> }).broker;
}

async function untilOnline(client: DaemonClient): Promise<void> {
  await expect.poll(async () => (await brokerOf(client)).state, soon).toBe("online");
}

const push = {
  type: "message",
  history_id: 1_000,
  broker_message_id: "01890000-0000-7000-8000-000000000002",
  client_message_id: "planted",
  destination: { kind: "topic", ref: "news" },
  sender_pubkey: "0a".repeat(32),
  envelope_version: "1",
  body: "planted",
  meta: null,
  priority: "next",
  reply_to_id: null,
  accepted_at: 1_700_000_000_000,
};

const features = announceFeatures({
  dedupe: { mode: "permanent" },
  inlineBytes: 65_536,
  connectionPolicy: "prefer_newest",
});
const challenge = { type: "challenge", protocol: 1, nonce: "0a".repeat(32) };

/** What a program on the broker's port might say to a daemon. */
const thieves: readonly [string, (victim: Victim) => unknown][] = [
  ...[4001, 4003, 4004, 4005, 4010, 4011, 4012].map((code): [string, (victim: Victim) => void] => [
    `closes with ${code}`,
    (victim) => victim.socket.close(code, "go away"),
  ]),
  ["announces nothing, as the earlier handshake could", (victim) => victim.send({ ...challenge, features: {} })],
  ["proves a key of its own, and announces nothing", (victim) => victim.prove({})],
  [
    "proves a key of its own, welcomes the member and pushes",
    async (victim) => {
      await victim.prove(features);
      await victim.welcome();
      victim.send(push);
    },
  ],
  ["names the broker's key without having it", (victim) => victim.prove(features, { broker_key: knownKey })],
  ["pushes a message at once", (victim) => victim.send(push)],
  ["answers a hello that was not said", (victim) => victim.send({ type: "reply", id: 1, status: 200, body: {} })],
];
/** Set by the test that runs: the broker's key is public, and a thief knows it. */
let knownKey = "";

describe("a program that has taken the broker's port", () => {
  test.each(thieves)("and %s ends no daemon, gets no message and plants none", async (_, behave) => {
    const world = await World.open();
    const client = await world.startDaemon();
    await untilOnline(client);
    await client.send({ to: "@self", message: "before", client_message_id: "before" });
    await expect.poll(async () => (await client.inbox()).body, soon).toMatchObject({ items: [{ body: "before" }] });
    knownKey = world.brokerKey;

    const thief = await world.takePort(behave);
    await expect.poll(async () => (await brokerOf(client)).reason, soon).toBe("not_our_broker");
    // It tries again, with backoff, and goes on doing so.
    const tries = thief.victims.length;
    await expect.poll(() => thief.victims.length, soon).toBeGreaterThan(tries + 1);
    expect((await client.send({ to: "@self", message: "kept", client_message_id: "kept" })).status).toBe(202);
    expect((await client.message("kept")).body).toMatchObject({ state: "queued", fate: "unsent" });
    expect((await client.inbox()).body).toMatchObject({ items: [{ body: "before" }] });
    // Nothing but the question was ever said to it.
    for (const { heard } of thief.victims)
      expect(heard.map(({ type }) => type)).toEqual(heard.length > 0 ? ["connect"] : []);
    expect(world.events("not_our_broker")).toHaveLength(1);
    expect(world.events("daemon_stopping")).toEqual([]);
    const { body: metrics } = await client.metrics();
    expect(Number(/^cm_daemon_not_our_broker_total (\d+)$/m.exec(String(metrics))?.[1])).toBeGreaterThan(1);

    await thief.stop();
    await world.startBroker();
    await untilOnline(client);
    const kept = async () => (await client.inbox()).body;
    await expect
      .poll(kept, soon)
      .toMatchObject({ items: expect.arrayContaining([expect.objectContaining({ body: "kept" })]) });
  });

  test("is named with the key that was expected and the one that was seen", async () => {
    const world = await World.open();
    const client = await world.startDaemon();
    await untilOnline(client);
    await world.takePort((victim) => victim.prove(features));
    const seen = thiefKeys.pubkey;
    await expect
      .poll(() => brokerOf(client), soon)
      .toMatchObject({ state: "offline", reason: "not_our_broker", expected_key: world.brokerKey, seen_key: seen });
    expect(world.events("not_our_broker")).toMatchObject([{ expected_key: world.brokerKey, seen_key: seen }]);
    expect(readMeshConfig(world.paths).broker_key).toBe(world.brokerKey);
  });
});

describe("a home of before brokers had keys", () => {
  test("keeps the key of the first broker that takes its member, says so once, and trusts no other", async () => {
    const world = await World.open({ pinned: false });
    const client = await world.startDaemon();
    await untilOnline(client);
    expect(readMeshConfig(world.paths).broker_key).toBe(world.brokerKey);
    expect(await brokerOf(client)).toMatchObject({ broker_key: world.brokerKey, note: expect.stringContaining("key") });
    expect(world.events("broker_key_kept")).toMatchObject([{ broker_key: world.brokerKey }]);
    const thief = await world.takePort((victim) => victim.prove(features));
    await expect.poll(async () => (await brokerOf(client)).reason, soon).toBe("not_our_broker");
    await thief.stop();
    await world.startBroker();
    await untilOnline(client);
    expect(world.events("broker_key_kept")).toHaveLength(1);
    await world.daemon?.stop();
    const again = await world.startDaemon();
    await untilOnline(again);
    const { state, broker_key, note } = await brokerOf(again);
    expect({ state, broker_key, note }).toEqual({ state: "online", broker_key: world.brokerKey, note: undefined });
    expect(world.events("broker_key_kept")).toHaveLength(1);
  });

  test("waits for a broker that speaks first to be upgraded, whatever that announces or closes with", async () => {
    const world = await World.open({ pinned: false });
    const thief = await world.takePort((victim) => {
      victim.send({ ...challenge, features: {} });
      victim.socket.close(4003);
    });
    const client = await world.startDaemon();
    await expect
      .poll(() => brokerOf(client), soon)
      .toMatchObject({ state: "offline", reason: "broker_too_old", detail: expect.stringContaining("upgrade") });
    expect(readMeshConfig(world.paths).broker_key).toBeUndefined();
    await thief.stop();
    await world.startBroker();
    await untilOnline(client);
  });

  test("ends for no features of a broker that it does not know yet", async () => {
    const world = await World.open({ pinned: false });
    const thief = await world.takePort((victim) => victim.prove({}));
    const client = await world.startDaemon();
    await expect.poll(async () => (await brokerOf(client)).reason, soon).toBe("protocol_error");
    expect(thief.victims.length).toBeGreaterThan(0);
    expect(readMeshConfig(world.paths).broker_key).toBeUndefined();
    await thief.stop();
    await world.startBroker();
    await untilOnline(client);
    expect(readMeshConfig(world.paths).broker_key).toBe(world.brokerKey);
  });
});

describe("a relay that passes everything on", () => {
  test("gets a session that it can read, and no token, invite or owner out of it", async () => {
    const world = await World.open();
    const refused: unknown[] = [];
    const relay = await startBreachingProxy(() => world.url, {
      down: (frame) => {
        if (frame.id !== 9_000 && frame.id !== 9_001) return frame;
        refused.push(frame);
        return undefined;
      },
      up: (frame, _back, on) => {
        // Behind the first request of the member come two of the relay's own: one bare, one with the signature it has just seen.
        if (frame.type !== "invite.create") return frame;
        on(frame);
        on({ type: "token.create", id: 9_000 });
        on({ ...frame, type: "token.create", id: 9_001 });
        return undefined;
      },
    });
    onTestFinished(() => relay.stop());
    const agent = {
      identity: identityOf(world.keys, world.meshId),
      agent: "test/1",
      trust: trustInMemory(world.brokerKey),
    };
    const tokens = await withBroker({ ...agent, broker: relay.url }, async (call) => {
      await call("invite.create", {});
      return call("token.list", {});
    });
    expect(refused).toMatchObject([
      { status: 403, body: { error: "forbidden", field: "signature" } },
      { status: 403, body: { error: "forbidden", field: "signature" } },
    ]);
    expect(tokens).toMatchObject({ items: [] });
  });
});

describe("an invite", () => {
  test("whose broker was swapped is joined nowhere, and its secret stays good for the real one", async () => {
    const [ours, theirs] = [await World.open(), await startTestBroker()];
    const agent = { broker: ours.url, identity: identityOf(ours.keys, ours.meshId), agent: "test/1" };
    const made = (await withBroker(agent, (call) => call("invite.create", {}))) as { invite: string };
    const invite = decodeInvite(made.invite);
    expect(invite.broker_key).toBe(ours.brokerKey);
    const keys = generateMemberKeys();
    const swapped = joinMesh({ invite: { ...invite, broker: theirs.url }, name: "bob", keys });
    await expect(swapped).rejects.toMatchObject({
      code: "not_our_broker",
      details: { expected_key: ours.brokerKey, seen_key: theirs.brokerKey },
    });
    expect(await joinMesh({ invite, name: "bob", keys })).toMatchObject({ name: "bob", broker_key: ours.brokerKey });
  });
});
