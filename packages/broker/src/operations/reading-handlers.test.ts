// Mentions, search and the state of a message over the wire, against a real broker, from those who may see and those
// who may not.
import { describe, expect, test, vi } from "vitest";
import { joinTestMesh, startTestPair, type TestMember } from "../../../../tests/support/broker-harness.ts";

async function start(): Promise<Record<"alice" | "bob" | "carol", TestMember>> {
  const { alice, bob } = await startTestPair();
  // Text that the broker can read, so that it can find it.
  await alice.set("dm_policy", "any");
  return { alice, bob, carol: await joinTestMesh(alice, "carol") };
}

async function post(sender: TestMember, id: string, destination: object, rest: object = {}): Promise<string> {
  const message = { client_message_id: id, destination, body: `body of ${id}`, ...rest };
  const { status, body } = await sender.call("POST", "/messages", message);
  expect(status).toBe(201);
  return String(body.broker_message_id);
}

const clientIds = (body: Readonly<Record<string, unknown>>) =>
  (body.items as { client_message_id: string }[]).map((item) => item.client_message_id);

describe("mentions", () => {
  test("are one's own unless another is asked for, and only what the reader may see", async () => {
    const { alice, bob, carol } = await start();
    const mention = (...members: TestMember[]) => ({ meta: { mentions: members.map((m) => m.pubkey).toSorted() } });
    await post(alice, "m1", { kind: "dm", ref: bob.pubkey }, mention(bob, carol));
    await post(alice, "m2", { kind: "dm", ref: bob.pubkey }, mention(bob));
    const own = await bob.call("GET", "/mentions?limit=1");
    expect(own).toMatchObject({ status: 200, body: { items: [{ client_message_id: "m1" }], next_after: 1 } });
    expect(clientIds((await bob.call("GET", "/mentions?after=1")).body)).toEqual(["m2"]);
    expect(clientIds((await bob.call("GET", `/mentions?of=${carol.pubkey}`)).body)).toEqual(["m1"]);
    expect((await carol.call("GET", "/mentions")).body).toEqual({ items: [], next_after: null });
    expect((await carol.call("GET", `/mentions?of=${bob.pubkey}`)).body).toEqual({ items: [], next_after: null });
    expect(await bob.call("GET", "/mentions?of=bob")).toMatchObject({ status: 400, body: { field: "of" } });
  });
});

describe("search", () => {
  test("finds what the reader may see, soon after it was accepted, whatever the query looks like", async () => {
    const { alice, bob, carol } = await start();
    await post(alice, "m1", { kind: "dm", ref: bob.pubkey }, { body: "The build is green" });
    await post(alice, "m2", { kind: "dm", ref: carol.pubkey }, { body: "nothing to see" });
    const search = async (member: TestMember, q: string) =>
      clientIds((await member.call("GET", `/search?q=${encodeURIComponent(q)}`)).body);
    await vi.waitFor(async () => expect(await search(bob, "build")).toEqual(["m1"]), 10_000);
    expect(await search(carol, "build")).toEqual([]);
    expect(await search(bob, '"green" is')).toEqual(["m1"]);
    expect(await search(bob, '"build OR (')).toEqual([]);
    const peer = await bob.connect("client");
    expect(clientIds((await peer.request("search", { q: "GREEN", limit: 1 })).body)).toEqual(["m1"]);
    expect(await bob.call("GET", "/search")).toMatchObject({ status: 400, body: { field: "q" } });
    expect(await bob.call("GET", "/search?q=")).toMatchObject({ status: 400, body: { field: "q" } });
  });
});

describe("the state of a message", () => {
  test("is shown to sender and recipient per delivery, to owners in counts, to others not at all", async () => {
    const { alice, bob, carol } = await start();
    const id = await post(bob, "m1", { kind: "dm", ref: carol.pubkey });
    const state = (member: TestMember) => member.call("GET", `/messages/${id}`);
    const accepted_at = expect.any(Number);
    expect((await state(bob)).body).toEqual({
      broker_message_id: id,
      client_message_id: "m1",
      history_id: 1,
      destination: { kind: "dm", ref: carol.pubkey },
      sender_pubkey: bob.pubkey,
      accepted_at,
      counts: { unsettled: 1, delivered: 0, expired: 0 },
      deliveries: [{ recipient_pubkey: carol.pubkey, state: "unsettled", settled_at: null }],
      next_cursor: null,
    });
    const daemon = await carol.connect();
    await daemon.ack((await daemon.nextPush()).history_id);
    expect((await state(carol)).body).toMatchObject({
      deliveries: [{ recipient_pubkey: carol.pubkey, state: "delivered", settled_at: expect.any(Number) }],
    });
    expect((await state(alice)).body).toEqual({
      broker_message_id: id,
      accepted_at,
      counts: { unsettled: 0, delivered: 1, expired: 0 },
    });
    const dave = await joinTestMesh(alice, "dave");
    expect(await state(dave)).toMatchObject({ status: 404, body: { error: "not_found" } });
  });

  test("of a queue's message is its state in the queue", async () => {
    const { alice, bob } = await start();
    await alice.call("POST", "/queues", { id: "jobs" });
    const id = await post(alice, "m1", { kind: "queue", ref: "jobs" });
    const state = async (member: TestMember) => (await member.call("GET", `/messages/${id}`)).body;
    expect(await state(alice)).toMatchObject({ queue: { state: "ready", deliveries: 0, settled_at: null } });
    expect(await state(bob)).toMatchObject({ error: "not_found" });
    const lease = { lease_request_id: "r1", max: 1, lease_s: 60 };
    const { lease_token } = (await bob.call("POST", "/queues/jobs/lease", lease)).body;
    expect(await state(bob)).toMatchObject({ queue: { state: "leased", deliveries: 1 }, counts: { unsettled: 1 } });
    await bob.call("POST", "/queues/jobs/ack", { lease_token, broker_message_ids: [id] });
    const acked = { state: "acked", deliveries: 1, settled_at: expect.any(Number) };
    expect(await state(alice)).toMatchObject({ queue: acked, counts: { delivered: 1 } });
    expect(await state(alice)).not.toHaveProperty("deliveries");
  });
});

describe("the state of a destination", () => {
  test("is shown to any member, over HTTP and in frames, and changes with topics, queues and members", async () => {
    const { alice, bob, carol } = await start();
    const state = (kind: string, ref: string) => bob.call("GET", `/destinations/${kind}/${ref}`);
    const missing = (kind: string, ref: string) => ({
      status: 200,
      body: { kind, ref, refusal: "destination_not_found", has_recipients: false },
    });
    expect(await state("topic", "news")).toMatchObject(missing("topic", "news"));
    expect(await state("queue", "jobs")).toMatchObject(missing("queue", "jobs"));
    await alice.call("POST", "/topics", { name: "news", post_policy: "subscribers" });
    await alice.call("POST", "/queues", { id: "jobs" });
    expect((await state("topic", "news")).body).toMatchObject({ refusal: "not_subscribed", has_recipients: false });
    expect((await state("queue", "jobs")).body).toMatchObject({ refusal: null, has_recipients: true });
    await bob.call("PUT", "/topics/news/subscription");
    const peer = await bob.connect();
    expect(await peer.request("destination.state", { kind: "topic", ref: "news" })).toEqual({
      status: 200,
      body: { kind: "topic", ref: "news", refusal: null, has_recipients: false },
    });
    expect((await state("dm", carol.pubkey)).body).toMatchObject({ refusal: null, has_recipients: true });
    await alice.call("DELETE", `/members/${carol.pubkey}`);
    await alice.call("DELETE", "/topics/news");
    for (const gone of [
      { kind: "dm", ref: carol.pubkey },
      { kind: "topic", ref: "news" },
    ]) {
      const push = await peer.next((frame) => frame.type === "destination_gone" && frame.kind === gone.kind);
      expect(push).toEqual({ type: "destination_gone", ...gone });
      expect(await state(gone.kind, gone.ref)).toMatchObject(missing(gone.kind, gone.ref));
    }
  });

  test("is no longer what a member's daemon remembers once the member has left a topic, and others hear nothing", async () => {
    const { alice, bob } = await start();
    await alice.call("POST", "/topics", { name: "news", post_policy: "subscribers" });
    const [own, other] = [await bob.connect(), await alice.connect()];
    await bob.call("PUT", "/topics/news/subscription");
    await bob.call("DELETE", "/topics/news/subscription");
    await bob.call("PUT", "/topics/news/subscription");
    expect(await own.next((frame) => frame.type === "destination_gone")).toEqual({
      type: "destination_gone",
      kind: "topic",
      ref: "news",
    });
    await alice.call("POST", "/topics", { name: "deleted" });
    await alice.call("DELETE", "/topics/deleted");
    const heard = await other.next((frame) => frame.type === "destination_gone");
    expect(heard, "the first that another daemon hears").toMatchObject({ ref: "deleted" });
  });

  test("is asked about kinds that there are, in at most 64 characters", async () => {
    const { bob } = await start();
    expect(await bob.call("GET", "/destinations/house/news")).toMatchObject({ status: 400, body: { field: "kind" } });
    expect(await bob.call("GET", `/destinations/topic/${"x".repeat(65)}`)).toMatchObject({ status: 400 });
  });
});
