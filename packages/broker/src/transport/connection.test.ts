// A socket's life against a real broker once its hello is answered: what frames are answered, and what ends the
// connection. The hello and pushing have their own tests.
import { once } from "node:events";
import { limits } from "@claudemesh/protocol/messages/limits";
import { operations } from "@claudemesh/protocol/wire/operations";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  createTestMesh,
  joinTestMesh,
  startTestBroker,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import { RawPeer } from "../../../../tests/support/raw-peer.ts";

afterEach(() => {
  vi.useRealTimers();
});

type Asked = [type: keyof typeof operations, input: object, status: number, body: object];

/** With a session that no client has. */
function askedOfSpaces(): Asked[] {
  const space = "plan";
  const session = { space, sessionId: "none", sessionToken: "none" };
  const commit = { localSeq: 1, reads: { confirmed: [], pending: [] }, operations: [{ op: "delete", id: "a:1" }] };
  const unknown = { error: "session_not_found" };
  return [
    ["space.create", { name: space }, 201, { name: space, seq: 0 }],
    ["space.list", {}, 200, { items: [{ name: space }], nextCursor: null }],
    ["space.policy", { space, signedWrites: "optional" }, 200, { signedWrites: "optional" }],
    ["space.open", { space, openId: "o1" }, 200, { seq: 0, lastLocalSeq: 0, resumed: false }],
    ["space.commit", { ...session, commit }, 404, unknown],
    ["space.verdict", { space, sessionId: "none", localSeq: 1 }, 404, unknown],
    ["space.watch", { ...session, ids: ["a:1"] }, 404, unknown],
    ["space.entity", { space, entityId: "a:1" }, 404, { error: "entity_not_found" }],
    ["space.query", { space, prefix: "" }, 200, { seq: 0, items: [], nextCursor: null }],
    ["space.log", { space }, 200, { items: [], nextAfter: null }],
    ["space.invocation", { space, ref: "x" }, 404, { error: "not_found" }],
    ["space.branch.create", { ...session, localSeq: 1, name: "draft" }, 404, unknown],
    ["space.branch.delete", { ...session, localSeq: 1, name: "draft" }, 404, unknown],
    ["space.branches", { space }, 200, { items: [{ name: "" }], nextCursor: null }],
    ["space.merge.propose", { space, source: "draft", target: "" }, 404, { error: "branch_not_found" }],
    ["space.diff", { space, source: "draft", target: "" }, 404, { error: "branch_not_found" }],
  ];
}

describe("a frame", () => {
  test("that is no JSON object with an id ends the connection with 4002 and says why", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const noId = "a request needs a positive integer id";
    const attempts: [text: string, reason: string][] = [
      ["{", "invalid_json"],
      ["", "invalid_json"],
      ["[]", "invalid_request"],
      ["null", "invalid_request"],
      ['{"type":"history","id":2,"id":3}', "duplicate_key"],
      ['{"type":"history","id":2,"topic":"\\ud800"}', "lone_surrogate"],
      [`{"type":"send","id":2,"meta":${"[".repeat(99)}${"]".repeat(99)}}`, "too_deep"],
      ['{"type":"history"}', noId],
      ['{"type":"history","id":"2"}', noId],
      ['{"type":"history","id":0}', noId],
      ['{"type":"history","id":2.5}', noId],
    ];
    for (const [text, reason] of attempts) {
      const peer = await alice.connect("client");
      peer.sendText(text);
      expect(await peer.closed).toEqual({ code: 4002, reason });
    }
  });

  test("that is binary ends the connection with 1003, one that is not UTF-8 with 1007", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const binary = await alice.connect("client");
    binary.socket.send(Buffer.from('{"type":"topic.list","id":2}'), { binary: true });
    expect(await binary.closed).toEqual({ code: 1003, reason: "a frame is text" });
    const garbled = await alice.connect("client");
    garbled.socket.send(Buffer.from([0x7b, 0xff, 0x7d]), { binary: false });
    expect(await garbled.closed).toEqual({ code: 1007, reason: "invalid_utf8" });
    const parting = await alice.connect("client");
    // A close frame with the code 1000 and the reason 0xff, masked with zeros.
    parting.stream.write(Buffer.from([0x88, 0x83, 0, 0, 0, 0, 0x03, 0xe8, 0xff]));
    expect(await parting.closed).toEqual({ code: 1007, reason: "invalid_utf8" });
  });

  const brokenFrames: [what: string, bytes: number[]][] = [
    ["is not masked", [0x81, 0x02, 0x7b, 0x7d]],
    ["has reserved bits", [0xf1, 0x80, 0, 0, 0, 0]],
    ["has an opcode that does not exist", [0x83, 0x80, 0, 0, 0, 0]],
    ["continues nothing", [0x80, 0x80, 0, 0, 0, 0]],
    ["is a ping in parts", [0x09, 0x80, 0, 0, 0, 0]],
  ];
  test.for(brokenFrames)(
    "that %s breaks the WebSocket protocol and ends the connection with 1002",
    async ([, bytes]) => {
      const broker = await startTestBroker();
      const peer = await RawPeer.dial(broker.url);
      peer.stream.write(Buffer.from(bytes));
      expect(await peer.closed).toEqual({ code: 1002, reason: "the frame breaks the rules of WebSocket" });
      expect((await fetch(`${broker.url}/healthz`)).status).toBe(200);
    },
  );

  test("that ended the connection is the last one read", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    peer.sendText("nonsense");
    peer.sendText(JSON.stringify({ ...sendTo(alice, "m1"), type: "send", id: 2 }));
    expect((await peer.closed).code).toBe(4002);
    expect((await alice.call("GET", "/history")).body.items).toEqual([]);
  });

  test("beyond the size of a frame ends the connection with 1009", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    peer.sendText(JSON.stringify({ type: "send", id: 2, body: "x".repeat(limits.frameBytes) }));
    expect((await peer.closed).code).toBe(1009);
    const babbler = await alice.connect("client");
    babbler.sendText("x".repeat(limits.frameBytes + 1));
    expect(await babbler.closed).toEqual({ code: 1009, reason: "the frame is too large" });
    const giant = await alice.connect("client");
    giant.sendText(" ".repeat(limits.largeFrameBytes + 1));
    expect(await giant.closed).toEqual({ code: 1009, reason: "the frame is too large" });
  });

  test("of an unknown type, or with fields it should not have, is refused and the connection goes on", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    for (const type of ["subscribe", "", "constructor", "__proto__", "toString"]) {
      expect(await peer.request(type)).toMatchObject({
        status: 400,
        body: { error: "invalid_request", field: "type" },
      });
    }
    const typeless = peer.next((frame) => frame.id === 900);
    peer.sendText('{"id":900}');
    expect(await typeless).toMatchObject({ status: 400, body: { field: "type" } });
    expect(await peer.request("history", { extra: 1 })).toMatchObject({
      status: 400,
      body: { error: "unknown_field", field: "extra" },
    });
    const prototype = peer.next((frame) => frame.id === 901);
    peer.sendText('{"type":"topic.list","id":901,"__proto__":{"limit":1}}');
    expect(await prototype).toMatchObject({ status: 400, body: { error: "unknown_field", field: "__proto__" } });
    expect((await peer.request("topic.list")).status).toBe(200);
  });

  test("asks for any operation, with the answer that HTTP gives", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    const fingerprint = "ab".repeat(32);
    const uuid = "0".repeat(36);
    const effect = { operation: "register", target: "t", artifact_hash: fingerprint, run_id: "r" };
    const spent = { approval_id: "a", authorization_nonce: "n", attempt_id: "x" };
    const envelope = { approval_id: "a", ...effect, purpose: "register", not_before: 1, not_after: 2 };
    const request = { protocol_version: "1", logical_request_key: "k", ...spent, ...effect };
    const asked: Asked[] = [
      ["topic.create", { name: "news" }, 201, { name: "news", post_policy: "members" }],
      ["topic.subscribe", { name: "news" }, 200, { name: "news", subscribed: true }],
      ["topic.list", { limit: 1 }, 200, { next_cursor: "news" }],
      ["topic.unsubscribe", { name: "news" }, 200, { subscribed: false }],
      ["mesh.set", { key: "max_queues", value: 7 }, 200, { key: "max_queues", value: 7 }],
      [
        "mesh.settings",
        {},
        200,
        { items: [{ key: "dm_policy", value: "sealed", set_by: null }, {}, { value: 7 }, {}, {}, {}, {}, {}] },
      ],
      ["send", sendTo(alice, "m1"), 201, { history_id: 1, duplicate: false }],
      ["send", sendTo(alice, "m1"), 200, { history_id: 1, duplicate: true }],
      ["destination.state", { kind: "topic", ref: "news" }, 200, { kind: "topic", ref: "news", refusal: null }],
      ["fate", { client_message_id: "m2", fingerprint }, 200, { fate: "none" }],
      ["fence", { client_message_id: "m2", fingerprint }, 200, { fate: "fenced" }],
      ["send", sendTo(alice, "m2"), 409, { error: "fenced" }],
      ["history", {}, 200, { items: [{ client_message_id: "m1" }], next_after: null }],
      ["ack", { history_ids: [1] }, 200, {}],
      ["members.list", {}, 200, { items: [{ name: "alice", role: "owner" }] }],
      ["mesh.health", {}, 200, { store: "ok", limiter: "ok", nightly_check: null }],
      ["queue.list", {}, 200, { items: [], next_cursor: null }],
      ["once.list", { state: "uncertain" }, 200, { items: [], next_cursor: null }],
      ["invite.create", { expires_in_s: 60 }, 201, { invite: expect.stringMatching(/^cmi1\./) }],
      ["invite.list", {}, 200, { items: [{ state: "live", created_by: alice.pubkey }] }],
      ["invite.revoke", { invite_id: uuid }, 404, { error: "not_found" }],
      ["token.create", { label: "x" }, 201, { token: expect.stringMatching(/^cmt_/) }],
      ["token.list", {}, 200, { items: [{ label: "x", revoked_at: null }] }],
      ["token.revoke", { token_id: "0".repeat(36) }, 404, { error: "not_found" }],
      ["queue.create", { queue: "jobs" }, 201, { id: "jobs", max_deliveries: 5 }],
      ["queue.lease", { queue: "jobs", lease_request_id: "r1", max: 1, lease_s: 60 }, 200, { items: [] }],
      ["queue.ack", { queue: "jobs", lease_token: uuid, broker_message_ids: [uuid] }, 409, { error: "lease_lost" }],
      ["queue.nack", { queue: "jobs", lease_token: uuid, broker_message_ids: [uuid] }, 409, { lost: [uuid] }],
      ["queue.parked", { queue: "jobs" }, 200, { items: [], next_after: null }],
      ["queue.revive", { queue: "jobs", broker_message_ids: [uuid] }, 404, { error: "not_found" }],
      ["message.state", { broker_message_id: uuid }, 404, { error: "not_found" }],
      ["mentions", {}, 200, { items: [], next_after: null }],
      ["search", { q: "nothing" }, 200, { items: [], next_after: null }],
      ["peers.list", {}, 200, { items: [], next_cursor: null }],
      ["profile.set", { summary: "here" }, 200, { summary: "here", visible: true }],
      ["webhook.create", { webhook: "ci", url: "https://ci.example.org/" }, 201, { id: "ci", topics: null }],
      ["webhook.list", {}, 200, { items: [{ id: "ci", pending: 0, parked: 0 }], next_cursor: null }],
      ["webhook.deliveries", { webhook: "ci" }, 200, { items: [], next_after: null }],
      ["webhook.replay", { webhook: "ci" }, 200, { id: "ci", replayed: 0 }],
      ["webhook.delete", { webhook: "ci" }, 200, { id: "ci", deleted: true }],
      ["once.claim", { key: "k", claim_id: "c", inputs_fingerprint: fingerprint, lease_s: 60 }, 201, { epoch: 1 }],
      ["once.renew", { key: "k", epoch: 1 }, 200, { epoch: 1 }],
      ["once.resolve", { key: "k", epoch: 1, outcome: "done" }, 409, { error: "running" }],
      ["once.record", { key: "k", epoch: 1, result: [1] }, 200, { epoch: 1, outcome: "done" }],
      ["once.get", { key: "k" }, 200, { state: "done", result: [1] }],
      ["registrar.approve", { ...envelope, signature: "0".repeat(128) }, 403, { field: "signature" }],
      ["registrar.approvals", {}, 200, { items: [], next_cursor: null }],
      ["registrar.revoke", { approval_id: "a" }, 404, { error: "not_found" }],
      ["registrar.register", request, 403, { error: "nonce_unbound", code: "NONCE_UNBOUND" }],
      ["registrar.resolve", { logical_request_key: "k" }, 200, { state: "unknown" }],
      ["registrar.attempts", { logical_request_key: "k" }, 200, { items: [], recorded: 0 }],
      ["registrar.compensate", { logical_request_key: "k", ...spent }, 404, { error: "not_found" }],
      ["registrar.registrations", {}, 200, { items: [], next_cursor: null }],
      ["registrar.audit", {}, 200, { next_cursor: null }],
      ["member.role", { pubkey: alice.pubkey, role: "owner" }, 200, { pubkey: alice.pubkey, role: "owner" }],
      ["member.revoke", { pubkey: alice.pubkey }, 409, { error: "last_owner" }],
      ["topic.delete", { name: "news" }, 200, { name: "news", deleted: true }],
      ...askedOfSpaces(),
    ];
    for (const [type, input, status, body] of asked)
      expect(await peer.request(type, input)).toMatchObject({ status, body });
    expect(new Set(asked.map(([type]) => type)).size).toBe(Object.keys(operations).length);
  });

  test("that is rate-limited says when to come back in its body", async () => {
    const broker = await startTestBroker({ flags: { "rate-limit": "1/99999s" } });
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    expect((await peer.request("send", sendTo(alice, "m1"))).status).toBe(201);
    const limited = await peer.request("send", sendTo(alice, "m2"));
    expect(limited).toMatchObject({ status: 429, body: { error: "rate_limited", retry_after_s: expect.any(Number) } });
  });

  test("may be sent before the last one is answered, and sends keep their order", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    const replies = await Promise.all(
      Array.from({ length: 500 }, (_, id) => peer.request("send", sendTo(alice, `m${id}`))),
    );
    expect(replies.map(({ status, body }) => [status, body.client_message_id, body.history_id])).toEqual(
      Array.from({ length: 500 }, (_, id) => [201, `m${id}`, id + 1]),
    );
  });
});

describe("several connections of one member", () => {
  const allDaemons = async (policy: string) => {
    const broker = await startTestBroker({ flags: { "connection-policy": policy } });
    const alice = await createTestMesh(broker);
    return { alice, first: await alice.connect("daemon") };
  };

  test("prefer_newest: the older daemon gets 4003 and the newer one stays", async () => {
    const { alice, first } = await allDaemons("prefer_newest");
    const second = await alice.connect("daemon");
    expect(await first.closed).toEqual({ code: 4003, reason: "replaced_by_newer" });
    await alice.send("m1", alice);
    expect((await second.nextPush()).client_message_id).toBe("m1");
  });

  test("prefer_oldest: the newer daemon gets 4004, until the older one is gone", async () => {
    const { alice, first } = await allDaemons("prefer_oldest");
    const second = await RawPeer.dial(alice.url, alice.meshId);
    second.sendText(JSON.stringify({ type: "hello", id: 1, ...second.helloOf(alice, "daemon") }));
    expect(await second.closed).toEqual({ code: 4004, reason: "older_connection_kept" });
    await alice.send("m1", alice);
    expect((await first.nextPush()).client_message_id).toBe("m1");
    first.socket.close();
    await first.closed;
    const comeAgain = async () => (await alice.connect("daemon")).nextPush().then((push) => push.client_message_id);
    // The broker may learn of the end a moment later than we do.
    await expect.poll(() => comeAgain().catch(() => "refused")).toBe("m1");
  });

  test("allow_concurrent: every daemon stays and is pushed to", async () => {
    const { alice, first } = await allDaemons("allow_concurrent");
    const second = await alice.connect("daemon");
    await alice.send("m1", alice);
    for (const peer of [first, second]) expect((await peer.nextPush()).client_message_id).toBe("m1");
  });

  test("clients come and go beside a daemon, whatever the policy, and get no pushes", async () => {
    const { alice, first } = await allDaemons("prefer_oldest");
    const clients = [await alice.connect("client"), await alice.connect("client")];
    await alice.send("m1", alice);
    expect((await first.nextPush()).client_message_id).toBe("m1");
    for (const client of clients) {
      expect((await client.request("history")).body.items).toHaveLength(1);
      expect(client.arrived).toEqual([]);
    }
  });

  test("daemons of other members, and of the same key in another mesh, are others", async () => {
    const { alice, first } = await allDaemons("prefer_newest");
    const bob = await joinTestMesh(alice, "bob");
    await bob.connect("daemon");
    expect((await first.request("topic.list")).status).toBe(200);
  });
});

describe("a peer that went silent", () => {
  test("is pinged, and cut off when it does not answer", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const [silent, answering] = [await alice.connect("client"), await alice.connect("client")];
    silent.socket.pause();
    for (let round = 0; round < 2; round++) {
      const pinged = once(answering.socket, "ping");
      vi.advanceTimersByTime(15_000);
      await pinged;
      // The broker has read the pong when it answers what was sent behind it.
      expect((await answering.request("topic.list")).status).toBe(200);
    }
    silent.socket.resume();
    expect((await silent.closed).code).toBe(1006);
    expect((await answering.request("topic.list")).status).toBe(200);
  });

  test("for longer than a peer is left without a ping has slept, and what it brings is not read (MSG-24)", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const slept = await alice.connect("daemon");
    vi.setSystemTime(Date.now() + 7 * 86_400_000);
    slept.request("send", sendTo(alice, "m1")).catch(() => undefined);
    expect((await slept.closed).code).toBe(1006);
    const back = await alice.connect("daemon");
    expect((await back.request("history")).body.items).toEqual([]);
    expect((await back.request("send", sendTo(alice, "m1"))).status).toBe(201);
  });
});

function sendTo(to: TestMember, clientMessageId: string, body = "hello") {
  const destination = { kind: "dm", ref: to.pubkey };
  return { client_message_id: clientMessageId, destination, envelope_version: "2", body };
}
