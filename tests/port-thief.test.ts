// Programs that have taken a broker's port, with and without its key: a daemon believes its own broker alone. Whatever else
// answers at the broker's address, and whatever that says, the daemon goes on, keeps what it was asked to send, takes nothing
// in, and says so. Real brokers and a real daemon, in this process. What becomes of each move: docs/threat-model.md.
import { readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { createMesh, joinMesh, withBroker } from "@claudemesh/client/broker";
import { trustInMemory } from "@claudemesh/client/broker-trust";
import type { DaemonClient } from "@claudemesh/client/daemon";
import { readMeshConfig } from "@claudemesh/client/home";
import { generateMemberKeys, identityOf } from "@claudemesh/client/keys";
import { announceFeatures } from "@claudemesh/protocol/features";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { describe, expect, onTestFinished, test } from "vitest";
import { bodyOf, startBreachingProxy } from "./support/breaching-proxy.ts";
import { makeTemporaryFolder, readAdminToken, startTestBroker } from "./support/broker-harness.ts";
import { brokerOf, MemberHome, soon, untilOnline } from "./support/member-home.ts";
import { createPeerKeys, peerKeysOf } from "./support/peer-keys.ts";
import { PortThief, type Victim } from "./support/port-thief.ts";
import { runCli } from "./support/process.ts";

const thiefKeys = createPeerKeys();

class World {
  readonly folder = makeTemporaryFolder();
  readonly member = new MemberHome();
  url = "";
  brokerKey = "";
  meshId = "";
  stopBroker: () => Promise<void> = async () => undefined;

  /** A mesh of one at a broker of its own, and a home for its member; `pinned`: the home knows the broker's key. */
  static async open({ pinned = true } = {}): Promise<World> {
    const world = new World();
    const broker = await world.startBroker();
    const { url, keys } = world;
    const order = { broker: url, adminToken: readAdminToken(broker), name: "acme", ownerName: "alice", keys };
    const { mesh_id: id, broker_key } = await createMesh(order);
    world.meshId = id;
    const config = { id, broker: url, member_name: "alice" };
    world.member.enter(pinned ? { ...config, broker_key } : config);
    return world;
  }

  get keys() {
    return this.member.keys;
  }

  get knownKey(): string | undefined {
    return readMeshConfig(this.member.paths).broker_key;
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

  startDaemon(): Promise<DaemonClient> {
    return this.member.startDaemon();
  }

  /** Another program takes the port that the broker had. */
  async takePort(behave: (victim: Victim) => unknown, keys = thiefKeys): Promise<PortThief> {
    await this.stopBroker();
    const thief = await PortThief.start(Number(new URL(this.url).port), keys, behave);
    onTestFinished(() => thief.stop());
    return thief;
  }

  events(name: string) {
    return this.member.events(name);
  }
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
    expect(world.knownKey).toBe(world.brokerKey);
  });
});

describe("a program that has taken the broker's port and its key", () => {
  test("is the broker: it reads what goes to topics, keeps it, and shows what it likes, and sealed messages stay closed to it", async () => {
    const world = await World.open();
    const client = await world.startDaemon();
    await untilOnline(client);
    const stolen = peerKeysOf(readFileSync(join(world.folder, "broker.db.broker-key"), "utf8").trim());
    const thief = await world.takePort(async (victim) => {
      await victim.prove(features);
      await victim.welcome();
      victim.send(push);
      await victim.answerAll();
    }, stolen);
    await untilOnline(client);
    await client.send({ to: "#news", message: "in clear", client_message_id: "open" });
    await client.send({ to: "@self", message: "the launch code", client_message_id: "closed" });
    const sent = () => thief.victims.flatMap(({ heard }) => heard.filter(({ type }) => type === "send"));
    await expect.poll(() => sent().length, soon).toBe(2);
    expect(sent()).toEqual([
      expect.objectContaining({ client_message_id: "open", body: "in clear" }),
      expect.objectContaining({ client_message_id: "closed", envelope_version: "3", body_base64: expect.any(String) }),
    ]);
    expect(JSON.stringify(sent())).not.toContain("launch code");
    await expect.poll(async () => (await client.message("open")).body, soon).toMatchObject({ state: "stored" });
    await world.member.untilArrived({ body: "planted", topic: "news" });
  });
});

describe("a home of before brokers had keys", () => {
  test("keeps the key of the first broker that takes its member, says so once, and trusts no other", async () => {
    const world = await World.open({ pinned: false });
    const client = await world.startDaemon();
    await untilOnline(client);
    expect(world.knownKey).toBe(world.brokerKey);
    expect(await brokerOf(client)).toMatchObject({ broker_key: world.brokerKey, note: expect.stringContaining("key") });
    expect(world.events("broker_key_kept")).toMatchObject([{ broker_key: world.brokerKey }]);
    const thief = await world.takePort((victim) => victim.prove(features));
    await expect.poll(async () => (await brokerOf(client)).reason, soon).toBe("not_our_broker");
    await thief.stop();
    await world.startBroker();
    await untilOnline(client);
    expect(world.events("broker_key_kept")).toHaveLength(1);
    await world.member.daemon.stop();
    const again = await world.startDaemon();
    await untilOnline(again);
    const { state, broker_key, note } = await brokerOf(again);
    expect({ state, broker_key, note }).toEqual({ state: "online", broker_key: world.brokerKey, note: undefined });
    expect(world.events("broker_key_kept")).toHaveLength(1);
  });

  test("says so to its user, in the status of the daemon that met the broker first, or where a command did", async () => {
    const world = await World.open({ pinned: false });
    const { home } = world.member.paths;
    const asked = () => runCli(["mesh", "members"], { home });
    const met = await asked();
    expect(met).toMatchObject({ code: 0, stderr: expect.stringContaining(world.brokerKey) });
    expect(met.stderr).toContain("From now on no other one is trusted");
    expect(world.knownKey).toBe(world.brokerKey);
    expect((await asked()).stderr).not.toContain(world.brokerKey);

    const other = await World.open({ pinned: false });
    await untilOnline(await other.startDaemon());
    const status = await runCli(["daemon", "status"], { home: other.member.paths.home });
    expect(status.stdout).toContain("trusts this one from now on; compare it with an owner's");
  });

  test("keeps the key of a thief that is there first, says so, and then stays away from its own broker until it is given the key", async () => {
    const world = await World.open({ pinned: false });
    const thief = await world.takePort(async (victim) => {
      await victim.prove(features);
      await victim.welcome();
      await victim.answerAll();
    });
    const client = await world.startDaemon();
    await untilOnline(client);
    expect(world.knownKey).toBe(thiefKeys.pubkey);
    expect(world.events("broker_key_kept")).toMatchObject([{ broker_key: thiefKeys.pubkey }]);
    await thief.stop();
    await world.startBroker();
    await expect
      .poll(() => brokerOf(client), soon)
      .toMatchObject({ reason: "not_our_broker", expected_key: thiefKeys.pubkey, seen_key: world.brokerKey });
    const trusted = await runCli(["mesh", "trust-broker", "--key", world.brokerKey], { home: world.member.paths.home });
    expect(trusted.code).toBe(0);
    await untilOnline(client);
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
    expect(world.knownKey).toBeUndefined();
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
    expect(world.knownKey).toBeUndefined();
    await thief.stop();
    await world.startBroker();
    await untilOnline(client);
    expect(world.knownKey).toBe(world.brokerKey);
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

describe("a relay that passes everything on without TLS", () => {
  test("adds a message to a topic in the member's name, since sends carry no signature", async () => {
    const world = await World.open();
    const relay = await startBreachingProxy(() => world.url, {
      up: (frame, _back, on) => {
        const destination = { kind: "topic", ref: "news" };
        if (frame.type === "topic.list") {
          on({ type: "send", id: 9_000, client_message_id: "added", destination, body: "alice never said this" });
        }
        return frame;
      },
    });
    onTestFinished(() => relay.stop());
    const agent = { identity: identityOf(world.keys, world.meshId), agent: "test/1" };
    const trust = trustInMemory(world.brokerKey);
    await withBroker({ ...agent, broker: relay.url, trust }, async (call) => {
      await call("topic.create", { name: "news" });
      await call("topic.list", {});
      await expect
        .poll(() => call("history", { after: 0 }), soon)
        .toMatchObject({ items: [{ client_message_id: "added", sender_pubkey: world.member.pubkey }] });
    });
  });

  test("reads the secret of an invite that is used through it, because HTTP ties no answer to the proof", async () => {
    const world = await World.open();
    const seen: unknown[] = [];
    const relay = await startBreachingProxy(() => world.url, {
      http: (request, pass) => {
        seen.push([request.path, bodyOf(request).secret]);
        return pass(request);
      },
    });
    onTestFinished(() => relay.stop());
    const agent = { broker: world.url, identity: identityOf(world.keys, world.meshId), agent: "test/1" };
    const made = (await withBroker(agent, (call) => call("invite.create", {}))) as { invite: string };
    const invite = decodeInvite(made.invite);
    await joinMesh({ invite: { ...invite, broker: relay.url }, name: "bob", keys: generateMemberKeys() });
    expect(seen).toEqual([
      ["/v1/broker/prove", undefined],
      [`/v1/meshes/${world.meshId}/join`, invite.secret],
    ]);
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

describe("a program that has taken the loopback port of a daemon that died", () => {
  test("is not shown the local token by the doctor, which asks the daemon's socket first", async () => {
    const world = await World.open();
    const { home, httpPort, localToken } = world.member.paths;
    let connections = 0;
    const thief = createServer((socket) => {
      connections++;
      socket.destroy();
    });
    await new Promise<void>((resolve) => thief.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void thief.close());
    writeFileSync(httpPort, `${(thief.address() as AddressInfo).port}\n`, { mode: 0o600 });
    writeFileSync(localToken, `${"0a".repeat(32)}\n`, { mode: 0o600 });
    const { stdout } = await runCli(["doctor"], { home });
    expect(stdout).toContain("daemon");
    expect(connections).toBe(0);
  });
});
