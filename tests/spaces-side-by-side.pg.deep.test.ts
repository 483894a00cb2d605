// Spaces on brokers side by side, on one PostgreSQL database and one Redis: what one commits the other's watchers are told
// at once, a session taken through one is lost on the other, and what a kill interrupts is whole or not there.
import { connectSpaces } from "@claudemesh/client/space";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { joinTestMesh, type TestMember } from "./support/broker-harness.ts";
import type { BrokerProcess } from "./support/broker-process.ts";
import { Brokers, createMeshOn } from "./support/brokers.ts";
import type { RawPeer } from "./support/raw-peer.ts";
import { RestartableRedis } from "./support/restartable-redis.ts";
import { createTestDatabase } from "./support/services.ts";
import { describeSpaceCrashes } from "./support/space-crashes.ts";
import { startSwitchingProxy } from "./support/switching-proxy.ts";

const database = await createTestDatabase("spaces_side_by_side");
const redis = database === undefined ? undefined : await RestartableRedis.create();
afterAll(async () => {
  await database?.drop();
  await redis?.stop();
});

type Body = Readonly<Record<string, unknown>>;

describe.skipIf(redis === undefined)("brokers side by side", () => {
  const urls = { databaseUrl: database?.url ?? "", redisUrl: redis?.url ?? "" };
  // Long enough that nothing but a signal can wake a watcher, and short enough that looking makes up for one.
  const signalled = new Brokers({ ...urls, flags: ["--delivery-sweep-seconds", "86400"] });
  const looking = new Brokers({ ...urls, flags: ["--delivery-sweep-seconds", "1"] });
  let [a, b]: BrokerProcess[] = [];
  let meshes = 0;

  beforeAll(async () => {
    [a, b] = await Promise.all([signalled.add(), signalled.add()]);
  });
  afterAll(async () => {
    await Promise.all([signalled.end(), looking.end()]);
  });

  async function makeSpace(brokers = signalled, broker = a): Promise<{ alice: TestMember; bob: TestMember }> {
    if (broker === undefined) throw new Error("the brokers have not started");
    const alice = await createMeshOn(brokers, broker, `mesh-${++meshes}`);
    const bob = await joinTestMesh(alice, "bob");
    await Promise.all([alice.token(), bob.token()]);
    await alice.call("POST", "/spaces", { name: "plan" });
    return { alice, bob };
  }

  async function watchAt(member: TestMember, broker: BrokerProcess | undefined, openId: string) {
    member.url = broker?.url ?? "";
    const peer = await member.connect("client");
    const { body } = await peer.request("space.open", { space: "plan", openId });
    const held = { sessionId: String(body.sessionId), sessionToken: String(body.sessionToken) };
    expect(await peer.request("space.watch", { space: "plan", ...held, prefixes: [""] })).toMatchObject({
      status: 200,
    });
    return { peer, held };
  }

  async function openAt(member: TestMember, broker: BrokerProcess | undefined, openId: string, more: object = {}) {
    member.url = broker?.url ?? "";
    return (await member.call("POST", "/spaces/plan/sessions", { openId, ...more })).body;
  }

  const commit = (member: TestMember, { sessionId, sessionToken }: Body, localSeq: number) =>
    member.call("POST", "/spaces/plan/commits", {
      sessionId,
      sessionToken,
      commit: {
        localSeq,
        reads: { confirmed: [], pending: [] },
        operations: [{ op: "set", id: "task:1", value: { value: localSeq } }],
      },
    });

  /** Reads frames until one reaches the seq; their seqs grow. */
  async function syncedUpTo(peer: RawPeer, seq: number): Promise<Body> {
    let last = -1;
    for (;;) {
      const frame = await peer.next(({ type }) => type === "sync");
      expect(Number(frame.toSeq)).toBeGreaterThan(last);
      last = Number(frame.toSeq);
      if (last >= seq) return frame;
    }
  }

  test("a watcher on one broker gets what the other one commits, in order, without looking for it", async () => {
    const { alice, bob } = await makeSpace();
    const { peer } = await watchAt(bob, b, "watch");
    const session = await openAt(alice, a, "write");
    for (let n = 1; n <= 30; n += 1) await commit(alice, session, n);
    expect(await syncedUpTo(peer, 30)).toMatchObject({ upserts: [{ id: "task:1", seq: 30, document: { value: 30 } }] });
  });

  test("a session opened through one broker is revoked on the other, which accepts nothing with the old token", async () => {
    const { bob } = await makeSpace();
    const { peer, held } = await watchAt(bob, a, "first");
    const taken = await openAt(bob, b, "second", held);
    expect(taken).toMatchObject({ sessionId: held.sessionId, resumed: true });
    expect(await peer.next(({ type }) => type === "session.revoked")).toMatchObject({ sessionId: held.sessionId });
    bob.url = a?.url ?? "";
    expect(await commit(bob, held, 1)).toMatchObject({ status: 403, body: { name: "SessionRevokedError" } });
    expect(await commit(bob, taken, 1)).toMatchObject({ status: 200, body: { seq: 1 } });
  });

  test("commits of one space through both brokers have each its own seq, and watchers on both get all of them", async () => {
    const { alice, bob } = await makeSpace();
    const watchers = [await watchAt(alice, a, "wa"), await watchAt(bob, b, "wb")];
    const sessions = [await openAt(alice, a, "ca"), await openAt(bob, b, "cb")];
    const seqs: unknown[] = [];
    const write = async (member: TestMember, session: Body | undefined) => {
      for (let n = 1; n <= 20; n += 1) seqs.push((await commit(member, session ?? {}, n)).body.seq);
    };
    await Promise.all([write(alice, sessions[0]), write(bob, sessions[1])]);
    expect(seqs.toSorted((x, y) => Number(x) - Number(y))).toEqual(Array.from({ length: 40 }, (_, n) => n + 1));
    for (const { peer } of watchers) expect(await syncedUpTo(peer, 40)).toMatchObject({ upserts: [{ seq: 40 }] });
  });

  test("a replica that signs goes on at another broker in mid-stack, and every commit counts once (SPC-16)", async () => {
    const { alice } = await makeSpace();
    alice.url = a?.url ?? "";
    await alice.call("PUT", "/spaces/plan/policy", { signedWrites: "required" });
    const proxy = await startSwitchingProxy(a?.url ?? "");
    const sign = (bytes: Uint8Array) => Buffer.from(alice.keys.sign(bytes), "hex");
    const identity = { meshId: alice.meshId, publicKey: alice.pubkey, sign };
    const client = connectSpaces({ url: proxy.url, identity, agent: "test/1", signWrites: true });
    onTestFinished(async () => {
      await client.close();
      proxy.stop();
    });
    const space = await client.space("plan");
    await space.transact((tx) => tx.set("count:1", { value: { n: 0 } }));
    const add = () =>
      space.transact((tx) => {
        const n = tx.get<{ value: { n: number } }>("count:1")?.value.n ?? 0;
        tx.patch("count:1", [{ op: "replace", path: "/value/n", value: n + 1 }]);
      });
    const stacked: ReturnType<typeof add>[] = [];
    for (const next of [b, a, b]) {
      for (let n = 0; n < 10; n += 1) stacked.push(add());
      await stacked.at(-8);
      proxy.switchTo(next?.url ?? "");
      for (let n = 0; n < 10; n += 1) stacked.push(add());
    }
    const results = await Promise.all(stacked);
    expect(new Set(results.map(({ seq }) => seq)).size).toBe(60);
    await space.createBranch("draft");
    await space.deleteBranch("draft");
    alice.url = b?.url ?? "";
    const { body: entity } = await alice.call("GET", "/spaces/plan/entities/count:1");
    expect(entity).toMatchObject({ document: { value: { n: 60 } } });
    const { body: log } = await alice.call("GET", "/spaces/plan/log?limit=100");
    const items = log.items as readonly { readonly invocationRef: string | null }[];
    expect(items).toHaveLength(63);
    expect(items.every(({ invocationRef }) => invocationRef !== null)).toBe(true);
  });

  test("commits that no signal announced are found by looking, while Redis is away", async () => {
    const [c, d] = await Promise.all([looking.add(), looking.add()]);
    const { alice, bob } = await makeSpace(looking, c);
    const { peer, held } = await watchAt(bob, d, "watch");
    const session = await openAt(alice, c, "write");
    await redis?.stop();
    try {
      await commit(alice, session, 1);
      expect(await syncedUpTo(peer, 1)).toMatchObject({ upserts: [{ seq: 1 }] });
      await openAt(bob, c, "second", held);
      await commit(alice, session, 2);
      expect(await peer.next(({ type }) => type === "session.revoked")).toMatchObject({ sessionId: held.sessionId });
    } finally {
      await redis?.start();
    }
  });

  describeSpaceCrashes(async () => {
    const brokers = new Brokers(urls);
    onTestFinished(() => brokers.end());
    const broker = await brokers.add();
    return {
      broker,
      adminToken: () => brokers.adminToken,
      createMesh: () => createMeshOn(brokers, broker, `crash-${++meshes}`),
    };
  });
});
