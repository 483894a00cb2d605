import type { Socket } from "node:net";
import { limits } from "@claudemesh/protocol/messages/limits";
import { operationBytes } from "@claudemesh/protocol/wire/signing";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isSignedBy } from "../keys/verify-signature.ts";
import { type FakePeer, Queue } from "../testing/fake-broker.ts";
import { LinkTestbed, patiently, testIdentity } from "../testing/link-testbed.ts";

let bed: LinkTestbed;

beforeEach(async () => {
  bed = await LinkTestbed.start();
});

afterEach(() => bed.stop());

describe("requests", () => {
  it("counts ids up, writes frames in the order of the calls and matches replies by id", async () => {
    const { link, peer } = await bed.openOnline();
    const answers = ["a", "b", "c"].map((name) => link.request("topic.subscribe", { name }, patiently));
    const frames = [await peer.frames.next(), await peer.frames.next(), await peer.frames.next()];
    expect(frames.map(({ id, name }) => [id, name])).toEqual([
      [2, "a"],
      [3, "b"],
      [4, "c"],
    ]);
    for (const frame of frames.toReversed()) peer.reply(frame, 200, { name: frame.name, later: "unknown field" });
    const bodies = (await Promise.all(answers)).map((outcome) => outcome.type === "answered" && outcome.body);
    expect(bodies).toMatchObject([{ name: "a" }, { name: "b" }, { name: "c" }]);
  });

  it("gathers the frames of one turn and writes them at its end", async () => {
    const { link, peer } = await bed.openOnline();
    const answers = ["a", "b", "c"].map((name) => {
      const before = link.bufferedBytes();
      const answer = link.request("topic.subscribe", { name }, patiently);
      expect(link.bufferedBytes()).toBeGreaterThan(before);
      return answer;
    });
    await new Promise((resolve) => process.nextTick(resolve));
    expect(link.bufferedBytes()).toBe(0);
    for (const _ of answers) peer.reply(await peer.frames.next(), 200, {});
    expect(await Promise.all(answers)).toHaveLength(3);
  });

  it("hands refusals over as answers", async () => {
    const { link, peer } = await bed.openOnline();
    const answer = link.request("topic.create", { name: "x" }, patiently);
    const body = { error: "from_the_future", message: "?", retryable: false };
    peer.reply(await peer.frames.next(), 418, body);
    expect(await answer).toEqual({ type: "answered", status: 418, body });
  });

  it("lets no input overwrite a frame's type and id", async () => {
    const { link, peer } = await bed.openOnline();
    const answer = link.request("history", { type: "hello", id: 1, after: 3 }, patiently);
    const frame = await peer.frames.next();
    expect(frame).toEqual({ type: "history", id: 2, after: 3 });
    peer.reply(frame, 200, {});
    await answer;
  });

  it("signs what its member has to sign: the connection, the operation, the id and the content as it is read", async () => {
    const { link, peer } = await bed.openOnline();
    const answer = link.request("token.create", { label: "ci", later: undefined }, patiently);
    const { signature, ...frame } = await peer.frames.next();
    expect(frame).toEqual({ type: "token.create", id: 2, label: "ci" });
    const signed = operationBytes({ ...peer.session, operation: "token.create", id: 2, input: { label: "ci" } });
    expect(isSignedBy(testIdentity.publicKey, signed, String(signature))).toBe(true);
    peer.reply({ id: 2 }, 201, {});
    await answer;
    const plain = link.request("topic.create", { name: "x" }, patiently);
    const next = await peer.frames.next();
    expect(next).toEqual({ type: "topic.create", id: 3, name: "x" });
    peer.reply(next, 201, {});
    await plain;
  });

  it("ignores replies to requests that are over", async () => {
    const { link, peer } = await bed.openOnline();
    peer.reply({ id: 999 }, 200, {});
    const answer = link.request("history", {}, patiently);
    const frame = await peer.frames.next();
    peer.reply(frame, 200, "first");
    peer.reply(frame, 200, "second");
    expect(await answer).toMatchObject({ body: "first" });
    expect(link.status().state).toBe("online");
  });

  it("times out, and tells of a late answer once", async () => {
    const { link, peer } = await bed.openOnline();
    const lateAnswers = new Queue<unknown>();
    const onLateAnswer = (answer: unknown) => lateAnswers.push(answer);
    expect(await link.request("send", { body: "x" }, { timeoutMs: 5, onLateAnswer })).toEqual({ type: "timed_out" });
    const frame = await peer.frames.next();
    peer.reply(frame, 201, { history_id: 7 });
    peer.reply(frame, 200, { history_id: 7 });
    expect(await lateAnswers.next()).toEqual({ status: 201, body: { history_id: 7 } });
    const after = link.request("history", {}, patiently);
    peer.reply(await peer.frames.next(), 200, {});
    await after;
    const sentinel = "nothing came in between";
    lateAnswers.push(sentinel);
    expect(await lateAnswers.next()).toBe(sentinel);
  });

  it("takes no answer for late that comes on another connection", async () => {
    const { link, peer, reach } = await bed.openOnline();
    const onLateAnswer = vi.fn();
    await link.request("send", {}, { timeoutMs: 5, onLateAnswer });
    const frame = await peer.frames.next();
    peer.socket.terminate();
    const next = await bed.broker.welcomeNext();
    await reach("online");
    next.reply(frame, 201, {});
    const after = link.request("history", {}, patiently);
    next.reply(await next.frames.next(), 200, {});
    await after;
    expect(onLateAnswer).not.toHaveBeenCalled();
  });

  it("ends all open requests as connection_lost when the connection breaks, and comes back", async () => {
    const { link, peer, reach } = await bed.openOnline();
    const open = [link.request("send", {}, patiently), link.request("fate", {}, patiently)];
    await peer.frames.next();
    peer.socket.terminate();
    expect(await Promise.all(open)).toEqual([{ type: "connection_lost" }, { type: "connection_lost" }]);
    expect(await reach("offline")).toMatchObject({ reason: "lost" });
    expect(await link.request("send", {}, patiently)).toEqual({ type: "not_sent" });
    await bed.broker.welcomeNext();
    await reach("online");
  });

  it("delivers what the broker answered before it closed", async () => {
    const { link, peer } = await bed.openOnline();
    const answer = link.request("send", {}, patiently);
    peer.reply(await peer.frames.next(), 201, { history_id: 1 });
    peer.socket.close(1012);
    expect(await answer).toMatchObject({ type: "answered", status: 201 });
  });

  it("refuses a frame that no broker would read, and keeps the connection for the others", async () => {
    const { link, peer } = await bed.openOnline();
    const tooLarge = await link.request("send", { body: "x".repeat(limits.frameBytes) }, patiently);
    expect(tooLarge).toMatchObject({ type: "answered", status: 413, body: { error: "payload_too_large" } });
    const answer = link.request("history", {}, patiently);
    peer.reply(await peer.frames.next(), 200, {});
    expect(await answer).toMatchObject({ status: 200 });
  });

  it("says how many bytes the socket has not taken yet", async () => {
    const { link, peer } = await bed.openOnline();
    expect(link.bufferedBytes()).toBe(0);
    peer.socket.pause();
    const body = "x".repeat(1_000_000);
    const open = Array.from({ length: 24 }, () => link.request("send", { body }, patiently));
    expect(link.bufferedBytes()).toBeGreaterThan(1_000_000);
    await link.close();
    expect(new Set((await Promise.all(open)).map(({ type }) => type))).toEqual(new Set(["connection_lost"]));
  });
});

const proof = {
  type: "proof",
  protocol: 2,
  nonce: "0a".repeat(32),
  broker_key: "0b".repeat(32),
  features: {},
  signature: "0c".repeat(64),
};

const message = {
  type: "message",
  history_id: 1,
  broker_message_id: "01890000-0000-7000-8000-000000000002",
  client_message_id: "m-1",
  destination: { kind: "dm", ref: testIdentity.publicKey },
  sender_pubkey: testIdentity.publicKey,
  envelope_version: "2",
  body_base64: "AAAA",
  meta: null,
  priority: "next",
  reply_to_id: null,
  accepted_at: 1_700_000_000_000,
};

describe("pushes", () => {
  it("come in the order of arrival, and those of unknown kinds are passed over", async () => {
    const { peer, pushes, link } = await bed.openOnline();
    peer.send({ ...message, history_id: 1, later: "an unknown field" });
    peer.send({ type: "weather", pubkey: "?" });
    peer.send({ ...message, history_id: 2, envelope_version: "9" });
    peer.send({ type: "member_revoked", pubkey: testIdentity.publicKey });
    peer.send({ type: "peer_join", pubkey: testIdentity.publicKey, name: "bob", status: "busy" });
    peer.send({ type: "peer_leave", pubkey: testIdentity.publicKey });
    peer.send({ ...message, history_id: 3 });
    expect(await pushes.next()).toMatchObject({ type: "message", history_id: 1, body_base64: "AAAA" });
    expect(await pushes.next()).toEqual({ type: "member_revoked", pubkey: testIdentity.publicKey });
    expect(await pushes.next()).toMatchObject({ type: "peer_join", name: "bob", status: "busy" });
    expect(await pushes.next()).toEqual({ type: "peer_leave", pubkey: testIdentity.publicKey });
    expect(await pushes.next()).toMatchObject({ type: "message", history_id: 3 });
    expect(link.status().state).toBe("online");
  });
});

describe("ends", () => {
  it.each([
    [4001, { state: "offline", reason: "unauthorized" }],
    [4002, { state: "offline", reason: "protocol_error" }],
    [1003, { state: "offline", reason: "protocol_error" }],
    [1007, { state: "offline", reason: "protocol_error" }],
    [1009, { state: "offline", reason: "protocol_error" }],
    [4005, { state: "offline", reason: "member_revoked" }],
    [1012, { state: "offline", reason: "broker_stopping" }],
    [1011, { state: "offline", reason: "lost" }],
    [1000, { state: "offline", reason: "lost" }],
  ])("close code %i takes the link down until the next try", async (code, expected) => {
    const { peer, reach, statuses } = await bed.openOnline();
    peer.socket.close(code, "why");
    expect(await statuses.next()).toMatchObject(expected);
    expect(await statuses.next()).toEqual({ state: "connecting" });
    await bed.broker.welcomeNext();
    await reach("online");
  });

  it.each([
    [4003, "replaced_by_newer"],
    [4004, "older_connection_kept"],
  ])("close code %i stops the link for good", async (code, reason) => {
    const { peer, link, statuses } = await bed.openOnline();
    const open = link.request("send", {}, patiently);
    await peer.frames.next();
    peer.socket.close(code);
    expect(await statuses.next()).toMatchObject({ state: "stopped", reason });
    expect(await open).toEqual({ type: "connection_lost" });
    await bed.passSomeTime();
    expect(bed.broker.connections).toBe(1 + 5);
    await link.close();
    expect(link.status()).toMatchObject({ state: "stopped", reason });
  });

  const malformed: [string, (peer: FakePeer) => void][] = [
    ["text that is not JSON", (peer) => peer.socket.send("{")],
    ["JSON that is no object", (peer) => peer.send([])],
    ["a frame without a type", (peer) => peer.send({ id: 1 })],
    ["a reply without an id", (peer) => peer.send({ type: "reply", status: 200 })],
    ["a reply without a status", (peer) => peer.send({ type: "reply", id: 2 })],
    ["a binary frame", (peer) => peer.socket.send(Buffer.from("{}"))],
    ["a challenge", (peer) => peer.send({ type: "challenge", protocol: 1, nonce: "n", features: {} })],
    ["a second proof", (peer) => peer.send({ ...proof })],
    ["a message without a body", (peer) => peer.send({ ...message, body_base64: undefined })],
    ["a message with two bodies", (peer) => peer.send({ ...message, body: "x" })],
    ["a message with a wrong history_id", (peer) => peer.send({ ...message, history_id: "1" })],
    ["a message without a destination", (peer) => peer.send({ ...message, destination: null })],
    ["a revocation without a member", (peer) => peer.send({ type: "member_revoked" })],
    ["a peer without a name", (peer) => peer.send({ type: "peer_join", pubkey: testIdentity.publicKey })],
    ["a leave without a member", (peer) => peer.send({ type: "peer_leave" })],
  ];
  it.each(malformed)("%s closes with protocol_error, and the link comes back", async (_, misbehave) => {
    const { peer, reach, pushes } = await bed.openOnline();
    misbehave(peer);
    expect(await reach("offline")).toMatchObject({ reason: "protocol_error" });
    expect(await peer.closeCode).toBe(4002);
    const next = await bed.broker.welcomeNext();
    await reach("online");
    next.send(message);
    expect(await pushes.next()).toMatchObject({ history_id: 1 });
  });

  const beforeHello: [string, (peer: FakePeer) => void][] = [
    ["a push", (peer) => peer.send(message)],
    ["a reply", (peer) => peer.reply({ id: 1 }, 200, {})],
    ["text that is not JSON", (peer) => peer.socket.send("{")],
    ["a proof without a nonce", (peer) => peer.send({ ...proof, nonce: undefined })],
    ["a proof without features", (peer) => peer.send({ ...proof, features: undefined })],
    ["a proof with a key in capitals", (peer) => peer.send({ ...proof, broker_key: "A0".repeat(32) })],
  ];
  it.each(beforeHello)("%s before the proof is not our broker, and the link comes back", async (_, misbehave) => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    misbehave(peer);
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker" });
    expect(await peer.closeCode).toBe(4002);
  });

  it("a welcome for another mesh or member is a protocol_error", async () => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    await peer.prove();
    const hello = await peer.frames.next();
    peer.reply(hello, 200, peer.welcomeBody({ ...hello, mesh_id: "01890000-0000-7000-8000-00000000000f" }));
    expect(await reach("offline")).toMatchObject({ reason: "protocol_error" });
  });

  const tooMuch: [string, (peer: FakePeer) => void][] = [
    ["a frame above 8 KiB", (peer) => peer.send({ type: "later", padding: "x".repeat(limits.helloFrameBytes) })],
    [
      "a frame that is announced as a large one and begun",
      ({ socket }) => {
        const raw = (socket as unknown as { _socket: Socket })._socket;
        raw.on("error", () => undefined);
        raw.write(Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 0xb0, 0, 0]));
        raw.write(Buffer.alloc(limits.helloBytes, "x"));
      },
    ],
    [
      "a great many pings",
      ({ socket }) => {
        for (let sent = 0; sent < limits.helloBytes / 125; sent++) socket.ping(Buffer.alloc(125));
      },
    ],
  ];
  it.each(tooMuch)("%s before the proof is not our broker", async (_, misbehave) => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    misbehave(peer);
    const detail = expect.stringContaining("the broker sent too much before it answered the hello");
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker", detail });
  });

  it("a large push right behind the hello's answer is none", async () => {
    const { reach, pushes } = bed.open();
    const peer = await bed.broker.peers.next();
    await peer.prove();
    const hello = await peer.frames.next();
    const raw = (peer.socket as unknown as { _socket: Socket })._socket;
    raw.cork();
    peer.reply(hello, 200, peer.welcomeBody(hello));
    peer.send({ ...message, body_base64: Buffer.alloc(2 * limits.helloBytes).toString("base64") });
    raw.uncork();
    await reach("online");
    expect(await pushes.next()).toMatchObject({ history_id: 1 });
  });

  it("a frame above the size limit is a protocol_error", async () => {
    const { peer, reach } = await bed.openOnline();
    peer.send({ type: "later", padding: "x".repeat(limits.largeFrameBytes) });
    expect(await reach("offline")).toMatchObject({ reason: "protocol_error" });
  });
});
