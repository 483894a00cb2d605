import { createServer, type Server } from "node:net";
import { defaultReconnect } from "@claudemesh/protocol/messages/backoff";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FakeBroker, Queue, workingFeatures } from "../testing/fake-broker.ts";
import { LinkTestbed, patiently, testIdentity, testMeshId } from "../testing/link-testbed.ts";

let bed: LinkTestbed;

beforeEach(async () => {
  bed = await LinkTestbed.start();
});

afterEach(() => bed.stop());

describe("connecting", () => {
  it("asks for the proof, signs the hello and is online once the hello is answered with 200", async () => {
    const { link, reach } = bed.open();
    expect(link.status()).toEqual({ state: "connecting" });
    const peer = await bed.broker.peers.next();
    const hello = await peer.welcome();
    const online = await reach("online");
    expect(hello).toMatchObject({ type: "hello", id: 1, kind: "daemon", mesh_id: testMeshId, agent: "link-test/1" });
    expect(online.hello.member).toEqual({ pubkey: testIdentity.publicKey, name: "alice", role: "owner" });
    expect(online.features).toEqual({
      dedupe: { mode: "retention_scoped", dedupe_retention_days: 365 },
      inlineBytes: 65_536,
      connectionPolicy: "prefer_newest",
    });
    expect(link.status()).toEqual(online);
  });

  it("reports no status before openLink returns", () => {
    const onStatus = vi.fn();
    bed.open({ onStatus });
    expect(onStatus).not.toHaveBeenCalled();
  });

  it("refuses an address that is no broker's", () => {
    expect(() => bed.open({ url: "ftp://example.org" })).toThrow(expect.objectContaining({ code: "invalid_request" }));
  });

  it("sends nothing before the hello is answered", async () => {
    const { link, reach } = bed.open();
    const peer = await bed.broker.peers.next();
    expect(await link.request("history", {}, patiently)).toEqual({ type: "not_sent" });
    await peer.prove();
    const hello = await peer.frames.next();
    expect(await link.request("history", {}, patiently)).toEqual({ type: "not_sent" });
    peer.reply(hello, 200, peer.welcomeBody(hello));
    await reach("online");
    const answered = link.request("members.list", {}, patiently);
    expect(await peer.frames.next()).toEqual({ type: "members.list", id: 2 });
    peer.socket.close();
    expect(await answered).toEqual({ type: "connection_lost" });
  });

  it("is offline as unauthorized after a hello answered with 401, and tries again", async () => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    await peer.prove();
    peer.reply(await peer.frames.next(), 401, { error: "unauthorized", message: "no", retryable: false });
    expect(await reach("offline")).toMatchObject({ reason: "unauthorized" });
    await bed.broker.welcomeNext();
    await reach("online");
  });

  it.each([
    [503, { error: "stopping", message: "bye", retryable: true }, "broker_stopping"],
    [500, { error: "internal", message: "broken", retryable: true }, "unreachable"],
    [400, { error: "invalid_request", message: "what?", retryable: false }, "protocol_error"],
  ])("is offline after a hello answered with %i, and tries again", async (status, body, reason) => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    await peer.prove();
    peer.reply(await peer.frames.next(), status, body);
    expect(await reach("offline")).toMatchObject({ reason });
    await bed.broker.welcomeNext();
    await reach("online");
  });

  it("is offline as unreachable when no broker listens, and online once one does", async () => {
    const { port } = bed.broker;
    await bed.broker.stop();
    const { reach } = bed.open({ url: `http://127.0.0.1:${port}` });
    expect(await reach("offline")).toMatchObject({ reason: "unreachable" });
    bed.broker = await FakeBroker.start(port);
    await bed.broker.welcomeNext();
    await reach("online");
  });

  it("gives up on a server that accepts and says nothing", async () => {
    const mute: Server = createServer((socket) => socket.resume());
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    const { port } = mute.address() as { port: number };
    const { link, reach } = bed.open({ url: `ws://127.0.0.1:${port}`, connectTimeoutMs: 30 });
    expect(await reach("offline")).toMatchObject({ reason: "unreachable" });
    await link.close();
    await new Promise((resolve) => mute.close(resolve));
  });

  it("gives up on a broker that sends no proof, and on one that does not answer the hello", async () => {
    const { reach } = bed.open({ connectTimeoutMs: 50 });
    await bed.broker.peers.next();
    expect(await reach("offline")).toMatchObject({ reason: "unreachable" });
    const peer = await bed.broker.peers.next();
    await peer.prove();
    expect(await reach("offline")).toMatchObject({ reason: "unreachable" });
    await peer.closeCode;
  });

  it("waits longer after each failure in a row", async () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    try {
      const { reach } = bed.open({ backoff: { minMs: 1, maxMs: 900 }, random: () => 0.999_999 });
      for (let failures = 1; failures <= 4; failures++) {
        const peer = await bed.broker.welcomeNext();
        await reach("online");
        peer.socket.terminate();
        await reach("offline");
      }
      const delaysMs = setTimer.mock.calls.map(([, delayMs]) => delayMs ?? 0).filter((ms) => ms > 0 && ms < 900);
      expect(delaysMs).toEqual([2, 4, 8, 16]);
    } finally {
      setTimer.mockRestore();
    }
  });

  it("waits five seconds at most where nothing else is set, however long the row", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const { link, statuses } = bed.open({
        url: "ws://127.0.0.1:1",
        backoff: defaultReconnect,
        random: () => 0.999_999,
      });
      for (let failures = 1; failures <= 12; failures++) {
        await statuses.nextWhere(({ state }) => state === "offline");
        vi.advanceTimersByTime(5_000);
        expect(link.status()).toEqual({ state: "connecting" });
      }
    } finally {
      vi.useRealTimers();
    }
  });

  it("starts the row of failures anew after a connection that held", async () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    try {
      const backoff = { minMs: 1, maxMs: 900 };
      const { reach } = bed.open({ backoff, random: () => 0.999_999 }, { pingIdleMs: 15_000, steadyMs: 0 });
      for (let failures = 1; failures <= 3; failures++) {
        const peer = await bed.broker.welcomeNext();
        await reach("online");
        peer.socket.terminate();
        await reach("offline");
      }
      const delaysMs = setTimer.mock.calls.map(([, delayMs]) => delayMs ?? 0).filter((ms) => ms > 0 && ms < 900);
      expect(delaysMs).toEqual([2, 2, 2]);
    } finally {
      setTimer.mockRestore();
    }
  });
});

describe("negotiation", () => {
  const dedupe = workingFeatures.client_message_id_dedupe;
  it.each([
    ["feature_unavailable", 4010, { ...workingFeatures, client_message_id_dedupe: undefined }],
    ["feature_unavailable", 4010, { ...workingFeatures, max_payload: null }],
    ["feature_param_invalid", 4011, { ...workingFeatures, client_message_id_dedupe: { ...dedupe, mode: "sometimes" } }],
    [
      "feature_param_below_floor",
      4012,
      { ...workingFeatures, client_message_id_dedupe: { ...dedupe, dedupe_retention_days: 3 } },
    ],
  ])("stops with %s and close code %i, and stays away", async (reason, code, features) => {
    const { link, reach } = bed.open();
    const peer = await bed.broker.peers.next();
    await peer.prove(features);
    const stopped = await reach("stopped");
    expect(stopped).toMatchObject({ reason, negotiation: { failure: { code: reason } } });
    expect(await peer.closeCode).toBe(code);
    expect(await peer.closeReason).toBe(stopped.detail);
    await bed.passSomeTime();
    expect(bed.broker.connections).toBe(1 + 5);
    expect(link.status()).toEqual(stopped);
    expect(await link.request("history", {}, patiently)).toEqual({ type: "not_sent" });
  });

  it("takes a broker that announces unknown features and parameters", async () => {
    const { reach } = bed.open({ kind: "client" });
    const peer = await bed.broker.peers.next();
    await peer.prove({ ...workingFeatures, teleport: { version: 9 }, later: true });
    const hello = await peer.frames.next();
    expect(hello.kind).toBe("client");
    peer.reply(hello, 200, peer.welcomeBody(hello));
    await reach("online");
  });

  it("takes the default for an optional parameter that makes no sense, and says so", async () => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    const policy = { ...workingFeatures.concurrent_connection_policy, default_policy: "prefer_loudest" };
    await peer.prove({ ...workingFeatures, concurrent_connection_policy: policy });
    const hello = await peer.frames.next();
    peer.reply(hello, 200, peer.welcomeBody(hello));
    expect(await reach("online")).toMatchObject({
      features: { connectionPolicy: "prefer_newest" },
      defaulted: ["concurrent_connection_policy: default_policy is unknown; prefer_newest is assumed"],
    });
  });

  it("is offline when the broker speaks another protocol, which proves nothing", async () => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    await peer.prove(workingFeatures, { change: { protocol: 3 } });
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker" });
    expect(await peer.closeCode).toBe(4002);
  });
});

describe("liveness", () => {
  it("ends a half-open connection and comes back", async () => {
    const { link, peer, reach } = await bed.openOnline({}, { pingIdleMs: 25, steadyMs: 5_000 });
    peer.socket.pause();
    const open = link.request("send", {}, patiently);
    expect(await reach("offline")).toMatchObject({ reason: "lost" });
    expect(await open).toEqual({ type: "connection_lost" });
    await bed.broker.welcomeNext();
    await reach("online");
  });

  it("keeps an idle connection whose broker answers pings", async () => {
    const { link, peer } = await bed.openOnline({}, { pingIdleMs: 200, steadyMs: 5_000 });
    for (let pings = 0; pings < 4; pings++) await peer.pings.next();
    expect(link.status().state).toBe("online");
    expect(bed.broker.connections).toBe(1);
  });
});

describe("close", () => {
  it("ends open requests as connection_lost and stops the link", async () => {
    const { link, peer, reach } = await bed.openOnline();
    const open = link.request("send", {}, patiently);
    await peer.frames.next();
    await link.close();
    expect(await open).toEqual({ type: "connection_lost" });
    expect(await reach("stopped")).toMatchObject({ reason: "closed" });
    expect(await peer.closeCode).toBe(1000);
    expect(await link.request("send", {}, patiently)).toEqual({ type: "not_sent" });
    await link.close();
  });

  it("does not wait for a broker that never answers the close", async () => {
    const { link, peer } = await bed.openOnline();
    peer.socket.pause();
    await link.close();
    expect(link.status()).toMatchObject({ state: "stopped", reason: "closed" });
  });

  it("works before the connection stands", async () => {
    const { link } = bed.open();
    await link.close();
    expect(link.status()).toMatchObject({ state: "stopped", reason: "closed" });
  });

  it("works between two tries, and from within onStatus", async () => {
    const opened = bed.open({
      onStatus: (status) => {
        if (status.state === "offline") closed.push(opened.link.close());
      },
    });
    const closed = new Queue<Promise<void>>();
    const peer = await bed.broker.welcomeNext();
    peer.socket.terminate();
    await await closed.next();
    expect(opened.link.status()).toMatchObject({ state: "stopped", reason: "closed" });
    await bed.passSomeTime();
    expect(bed.broker.connections).toBe(1 + 5);
  });
});
