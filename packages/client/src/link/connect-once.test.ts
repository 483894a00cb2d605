import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { generateMemberKeys } from "../keys/member-keys.ts";
import { FakeBroker, fakeBrokerKey, workingFeatures } from "../testing/fake-broker.ts";
import { patiently, testIdentity } from "../testing/link-testbed.ts";
import { trustInMemory } from "./broker-trust.ts";
import { connectOnce } from "./link.ts";

let broker: FakeBroker;

beforeEach(async () => {
  broker = await FakeBroker.start();
});

afterEach(() => broker.stop());

const connect = () =>
  connectOnce({
    url: broker.url,
    identity: testIdentity,
    kind: "client",
    agent: "connect-once-test/1",
    connectTimeoutMs: 5_000,
    trust: trustInMemory(fakeBrokerKey),
    onPush: () => undefined,
  });

describe("connectOnce", () => {
  it("gives a link that is online", async () => {
    const [link, peer] = await Promise.all([connect(), broker.welcomeNext()]);
    expect(link.status().state).toBe("online");
    const answer = link.request("members.list", {}, patiently);
    peer.reply(await peer.frames.next(), 200, { items: [] });
    expect(await answer).toMatchObject({ type: "answered", status: 200 });
    await link.close();
    expect(link.status()).toMatchObject({ state: "stopped", reason: "closed" });
    expect(await peer.closeCode).toBe(1000);
  });

  it("tries nothing again when the connection ends", async () => {
    const [link, peer] = await Promise.all([connect(), broker.welcomeNext()]);
    const open = link.request("history", {}, patiently);
    await peer.frames.next();
    peer.socket.close(1012);
    expect(await open).toEqual({ type: "connection_lost" });
    expect(link.status()).toMatchObject({ state: "offline", reason: "broker_stopping" });
    expect(await link.request("history", {}, patiently)).toEqual({ type: "not_sent" });
    await link.close();
    expect(broker.connections).toBe(1);
  });

  it("rejects with unauthorized when the broker refuses the member", async () => {
    const link = connect();
    const peer = await broker.peers.next();
    await peer.prove();
    peer.reply(await peer.frames.next(), 401, { error: "unauthorized", message: "unknown member", retryable: false });
    await expect(link).rejects.toMatchObject({ name: "MeshError", code: "unauthorized" });
  });

  it("rejects with membership_ended and the next step when the member was removed from the mesh", async () => {
    const link = connect();
    const peer = await broker.peers.next();
    await peer.prove();
    const body = { error: "unauthorized", message: "no", retryable: false, membership: "ended" };
    peer.reply(await peer.frames.next(), 401, body);
    await expect(link).rejects.toMatchObject({
      code: "membership_ended",
      message: expect.stringContaining("claudemesh daemon remint"),
    });
  });

  it("rejects with broker_unreachable when no broker listens", async () => {
    await broker.stop();
    await expect(connect()).rejects.toMatchObject({ name: "MeshError", code: "broker_unreachable" });
    broker = await FakeBroker.start();
  });

  it("rejects with broker_unreachable and the reason when the features don't fit", async () => {
    const link = connect();
    const peer = await broker.peers.next();
    await peer.prove({ ...workingFeatures, max_payload: { version: 7 } });
    await expect(link).rejects.toMatchObject({
      code: "broker_unreachable",
      details: { broker: broker.url, reason: "feature_param_invalid" },
    });
  });

  it("rejects with not_our_broker and both keys where another key is proven, and has said nothing of the member", async () => {
    const link = connect();
    const peer = await broker.peers.next();
    const keys = generateMemberKeys();
    await peer.prove(workingFeatures, { keys });
    await expect(link).rejects.toMatchObject({
      code: "not_our_broker",
      details: { broker: broker.url, expected_key: fakeBrokerKey, seen_key: keys.ed25519.public_key },
    });
    await peer.closeCode;
    expect(peer.received).toBe(1);
  });

  it("rejects with invalid_request when the address is no broker's", async () => {
    const { url, ...rest } = { url: "mesh.example.org", identity: testIdentity, kind: "client", agent: "x" } as const;
    const link = connectOnce({ ...rest, url, onPush: () => undefined });
    await expect(link).rejects.toMatchObject({ code: "invalid_request" });
  });
});
