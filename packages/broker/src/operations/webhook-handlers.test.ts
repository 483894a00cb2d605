// Webhooks as an owner uses them, with a real receiver on the other side.
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  createTestMesh,
  joinTestMesh,
  startTestBroker,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import { isSigned, WebhookReceiver } from "../../../../tests/support/webhook-receiver.ts";

let receiver: WebhookReceiver;
beforeEach(async () => {
  receiver = await WebhookReceiver.start();
});
afterEach(() => receiver.stop());

const secret = "a-secret-of-the-receiver";
const quick = {
  "webhook-allow-private": "true",
  "webhook-backoff-min-ms": "10",
  "webhook-backoff-max-ms": "20",
  "webhook-attempts": "3",
};

async function startMesh(flags: Record<string, string> = quick): Promise<TestMember> {
  const owner = await createTestMesh(await startTestBroker({ flags }));
  await owner.call("POST", "/topics", { name: "builds" });
  return owner;
}
const create = (owner: TestMember, more: object = {}) =>
  owner.call("POST", "/webhooks", { id: "ci", url: receiver.url, secret, ...more });
const post = (member: TestMember, id: string, topic = "builds") =>
  member.call("POST", "/messages", {
    client_message_id: id,
    destination: { kind: "topic", ref: topic },
    body: `about ${id}`,
    meta: { run: 1 },
  });
const deliveriesOf = async (owner: TestMember, query = "") =>
  (await owner.call("GET", `/webhooks/ci/deliveries${query}`)).body.items as Record<string, unknown>[];
const settled = (owner: TestMember, state: string, count = 1) =>
  vi.waitFor(async () => expect(await deliveriesOf(owner, `?state=${state}`)).toHaveLength(count), 10_000);

describe("creating a webhook", () => {
  test("is 201 with the secret, then 200 without it, and 409 for anything else", async () => {
    const owner = await startMesh();
    const first = await create(owner, { topics: ["builds", "alerts"] });
    expect(first.status).toBe(201);
    const body = { id: "ci", url: receiver.url, topics: ["alerts", "builds"], created_at: expect.any(Number) };
    expect(first.body).toEqual({ ...body, secret });
    const again = await create(owner, { topics: ["alerts", "builds"] });
    expect([again.status, again.body]).toEqual([200, { ...body, created_at: first.body.created_at }]);
    for (const other of [{ topics: ["alerts"] }, {}, { topics: ["alerts", "builds"], secret: `${secret}!` }]) {
      const refused = await create(owner, other);
      expect([refused.status, refused.body.error]).toEqual([409, "exists_with_other_content"]);
    }
  });

  test("makes a secret where none is given, and shows it once", async () => {
    const owner = await startMesh();
    const first = await create(owner, { secret: undefined });
    expect(first.body.secret).toMatch(/^cmw_[A-Za-z0-9_-]{43}$/);
    const again = await create(owner, { secret: undefined });
    expect([again.status, again.body.secret]).toEqual([200, undefined]);
    const listed = await owner.call("GET", "/webhooks");
    expect(JSON.stringify(listed.body)).not.toContain(String(first.body.secret));
    await post(owner, "m1");
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), 10_000);
    expect(receiver.received.every((hook) => isSigned(hook, String(first.body.secret)))).toBe(true);
  });

  test("is for owners, like everything about webhooks", async () => {
    const owner = await startMesh();
    const member = await joinTestMesh(owner, "bob");
    await create(owner);
    const calls = [
      create(member),
      member.call("GET", "/webhooks"),
      member.call("GET", "/webhooks/ci/deliveries"),
      member.call("POST", "/webhooks/ci/replay", {}),
      member.call("DELETE", "/webhooks/ci"),
    ];
    expect((await Promise.all(calls)).map(({ status, body }) => [status, body.error])).toEqual(
      calls.map(() => [403, "forbidden"]),
    );
  });

  const unsound: [object, string][] = [
    [{ url: "ftp://example.org/" }, "invalid_request"],
    [{ url: "not a url" }, "invalid_request"],
    [{ url: "https://user:pw@example.org/" }, "invalid_request"],
    [{ url: "https://example.org/#x" }, "invalid_request"],
    [{ url: `https://example.org/${"x".repeat(2_048)}` }, "invalid_request"],
    [{ id: "no spaces" }, "invalid_name"],
    [{ topics: ["#builds"] }, "invalid_name"],
    [{ topics: [] }, "invalid_request"],
    [{ topics: ["a", "a"] }, "invalid_request"],
    [{ secret: "short" }, "invalid_request"],
    [{ webhook: "x" }, "unknown_field"],
    [{ events: ["message"] }, "unknown_field"],
  ];
  test("refuses what cannot be meant, and says which field it is", async () => {
    const owner = await startMesh();
    for (const [more, code] of unsound) {
      const { status, body } = await create(owner, more);
      expect([status, body.error], JSON.stringify(more)).toEqual([400, code]);
      expect(body.field, JSON.stringify(more)).toBeDefined();
    }
  });

  test("a private address is refused unless the broker allows it, and a retry of what exists never is", async () => {
    const { "webhook-allow-private": _allow, ...strict } = quick;
    const owner = await startMesh(strict);
    for (const url of [receiver.url, "http://localhost/", "http://[::1]/", "http://169.254.169.254/"]) {
      const { status, body } = await create(owner, { url });
      expect([status, body.error]).toEqual([400, "webhook_address_refused"]);
    }
    expect((await create(owner, { url: "https://hooks.example.org/x" })).status).toBe(201);
  });

  test("stops at 100 for one mesh", async () => {
    const owner = await startMesh();
    const all = Array.from({ length: 101 }, (_, n) => create(owner, { id: `hook-${n}` }));
    const statuses = (await Promise.all(all)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(100);
    expect(statuses.filter((status) => status === 409)).toHaveLength(1);
  });
});

describe("a message to a topic", () => {
  test("reaches the receiver once, signed, under the message's id, as any subscriber would get it", async () => {
    const owner = await startMesh();
    await create(owner);
    const accepted = await post(owner, "m1");
    await settled(owner, "delivered");
    expect(receiver.received).toHaveLength(1);
    const [hook] = receiver.received;
    if (hook === undefined) throw new Error("nothing came");
    expect(isSigned(hook, secret)).toBe(true);
    expect(isSigned({ ...hook, body: `${hook.body} ` }, secret)).toBe(false);
    expect(isSigned(hook, `${secret}x`)).toBe(false);
    expect(hook.headers).toMatchObject({
      "content-type": "application/json",
      "x-claudemesh-webhook": "ci",
      "x-claudemesh-message-id": accepted.body.broker_message_id,
      "x-claudemesh-attempt": "1",
    });
    expect(hook.content).toEqual({
      type: "message",
      mesh: "acme",
      mesh_id: owner.meshId,
      webhook: "ci",
      message: {
        history_id: accepted.body.history_id,
        broker_message_id: accepted.body.broker_message_id,
        client_message_id: "m1",
        destination: { kind: "topic", ref: "builds" },
        sender_pubkey: owner.pubkey,
        envelope_version: "1",
        body: "about m1",
        meta: { run: 1 },
        priority: "next",
        reply_to_id: null,
        accepted_at: expect.any(Number),
      },
    });
  });

  test("of other topics, direct messages and queues reaches no webhook", async () => {
    const owner = await startMesh();
    await owner.call("POST", "/topics", { name: "alerts" });
    await owner.call("POST", "/queues", { id: "jobs" });
    await create(owner, { topics: ["alerts"] });
    await post(owner, "m1", "builds");
    await owner.send("m2", owner);
    await owner.call("POST", "/messages", {
      client_message_id: "m3",
      destination: { kind: "queue", ref: "jobs" },
      body: "x",
    });
    await post(owner, "m4", "alerts");
    await settled(owner, "delivered");
    expect(receiver.messages).toEqual(["m4"]);
  });

  test("that a receiver refuses is tried again with the same id and body, until it takes it", async () => {
    const owner = await startMesh();
    receiver.answerWith((n) => (n < 3 ? 500 : 200));
    await create(owner);
    await post(owner, "m1");
    await settled(owner, "delivered");
    expect(receiver.received).toHaveLength(3);
    expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
    expect(new Set(receiver.received.map(({ headers }) => headers["x-claudemesh-message-id"])).size).toBe(1);
    expect(receiver.received.map(({ headers }) => headers["x-claudemesh-attempt"])).toEqual(["1", "2", "3"]);
    expect(receiver.received.every((hook) => isSigned(hook, secret))).toBe(true);
    expect(await deliveriesOf(owner)).toMatchObject([{ state: "delivered", attempts: 3, last_status: 200 }]);
  });

  test("that is refused too often is parked with its reason, listed, and replayed on demand", async () => {
    const owner = await startMesh();
    receiver.answerWith(() => (_request, response) => {
      response.writeHead(302, { location: "/elsewhere" }).end();
    });
    await create(owner);
    const accepted = await post(owner, "m1");
    await settled(owner, "parked");
    expect(receiver.received).toHaveLength(3);
    expect(new Set(receiver.received.map(({ path }) => path))).toEqual(new Set(["/hook"]));
    expect(await deliveriesOf(owner)).toEqual([
      {
        history_id: accepted.body.history_id,
        broker_message_id: accepted.body.broker_message_id,
        state: "parked",
        attempts: 3,
        next_attempt_at: null,
        last_attempt_at: expect.any(Number),
        last_status: 302,
        last_error: "answered 302; redirects are not followed",
        settled_at: expect.any(Number),
      },
    ]);
    expect((await owner.call("GET", "/webhooks")).body.items).toMatchObject([{ id: "ci", pending: 0, parked: 1 }]);
    const metrics = await (await fetch(`${owner.url}/metrics`)).text();
    expect(metrics).toContain('cm_broker_webhook_attempts_total{outcome="pending"} 2');
    expect(metrics).toContain('cm_broker_webhook_attempts_total{outcome="parked"} 1');
    expect(metrics).toContain('cm_broker_webhook_deliveries{state="parked"} 1');

    receiver.answerWith(() => 200);
    const replay = await owner.call("POST", "/webhooks/ci/replay", {});
    expect(replay.body).toEqual({ id: "ci", replayed: 1, from_history_id: null });
    await settled(owner, "delivered");
    const ids = receiver.received.map(({ headers }) => headers["x-claudemesh-message-id"]);
    expect(new Set(ids)).toEqual(new Set([accepted.body.broker_message_id]));
  });

  test("that waits for its next try is tried at once when an owner asks for it, by its id or with all that waits", async () => {
    const patient = { ...quick, "webhook-backoff-min-ms": "3600000", "webhook-backoff-max-ms": "3600000" };
    const owner = await startMesh(patient);
    receiver.answerWith(() => 500);
    await create(owner);
    const first = await post(owner, "m1");
    await post(owner, "m2");
    const refused = { state: "pending", attempts: 1, last_status: 500 };
    await vi.waitFor(async () => expect(await deliveriesOf(owner)).toMatchObject([refused, refused]), 10_000);
    receiver.answerWith(() => 200);
    const replay = (body: object) => owner.call("POST", "/webhooks/ci/replay", body);
    const ids = [first.body.history_id, 999];
    expect((await replay({ history_ids: ids })).body).toMatchObject({ replayed: 1 });
    await settled(owner, "delivered");
    expect((await replay({})).body).toMatchObject({ replayed: 1 });
    await settled(owner, "delivered", 2);
    expect((await replay({})).body).toMatchObject({ replayed: 0 });
  });

  test("comes again when history is gone through from an earlier id, over the WebSocket too", async () => {
    const owner = await startMesh();
    const early = await post(owner, "early");
    await create(owner);
    await post(owner, "late");
    await settled(owner, "delivered");
    const peer = await owner.connect("client");
    const replay = { webhook: "ci", from_history_id: early.body.history_id };
    expect(await peer.request("webhook.replay", replay)).toMatchObject({ status: 200 });
    await settled(owner, "delivered", 2);
    await vi.waitFor(() => expect(receiver.received).toHaveLength(3), 10_000);
    expect(receiver.messages.toSorted()).toEqual(["early", "late", "late"]);
    expect(await peer.request("webhook.deliveries", { webhook: "ci" })).toMatchObject({
      status: 200,
      body: { items: [{ state: "delivered" }, { state: "delivered" }], next_after: null },
    });
    expect(await peer.request("webhook.list")).toMatchObject({ body: { items: [{ id: "ci" }], next_cursor: null } });
    expect(await peer.request("webhook.replay", { ...replay, history_ids: [1] })).toMatchObject({ status: 400 });
  });

  test("reaches no webhook that was deleted, whose id is then free", async () => {
    const owner = await startMesh();
    receiver.answerWith(() => 500);
    await create(owner);
    await post(owner, "m1");
    for (let again = 0; again < 2; again++) {
      expect((await owner.call("DELETE", "/webhooks/ci")).body).toEqual({ id: "ci", deleted: true });
    }
    expect((await owner.call("GET", "/webhooks/ci/deliveries")).status).toBe(404);
    expect((await owner.call("POST", "/webhooks/ci/replay", {})).status).toBe(404);
    receiver.answerWith(() => 200);
    const before = receiver.received.length;
    expect((await create(owner, { secret: `${secret}-2` })).status).toBe(201);
    await post(owner, "m2");
    await settled(owner, "delivered");
    expect(receiver.messages.slice(before)).toEqual(["m2"]);
  });
});
