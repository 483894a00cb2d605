// Who a link believes: the broker that proves the key which is known, or the first one where none is.
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { generateMemberKeys } from "../keys/member-keys.ts";
import { type FakePeer, fakeBrokerKey, workingFeatures } from "../testing/fake-broker.ts";
import { LinkTestbed } from "../testing/link-testbed.ts";
import { trustInMemory } from "./broker-trust.ts";

let bed: LinkTestbed;

beforeEach(async () => {
  bed = await LinkTestbed.start();
});

afterEach(() => bed.stop());

const strangerKeys = generateMemberKeys();
const dedupe = workingFeatures.client_message_id_dedupe;

describe("a link that knows its broker's key", () => {
  const strangers: [string, (peer: FakePeer) => Promise<unknown>][] = [
    ["another key", (peer) => peer.prove(workingFeatures, { keys: strangerKeys })],
    [
      "the key, signed by another one",
      (peer) => peer.prove(workingFeatures, { keys: strangerKeys, change: { broker_key: fakeBrokerKey } }),
    ],
    ["a signature over another nonce", (peer) => peer.prove(workingFeatures, { change: { nonce: "0f".repeat(32) } })],
    [
      "features that were changed on the way",
      (peer) =>
        peer.prove(workingFeatures, {
          change: {
            features: { ...workingFeatures, client_message_id_dedupe: { ...dedupe, dedupe_retention_days: 3 } },
          },
        }),
    ],
    ["features without those it signed", (peer) => peer.prove(workingFeatures, { change: { features: {} } })],
    ["a signature that is none", (peer) => peer.prove(workingFeatures, { change: { signature: "0".repeat(128) } })],
  ];
  it.each(strangers)("is offline where %s is shown, says nothing of its member, and comes back", async (_, show) => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    await show(peer);
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker" });
    await peer.closeCode;
    expect(peer.received).toBe(1);
    await bed.broker.welcomeNext();
    expect(await reach("online")).toMatchObject({ brokerKey: fakeBrokerKey, isFirstKey: false });
  });

  it("says which key it expected and which it saw", async () => {
    const { reach } = bed.open();
    await (await bed.broker.peers.next()).prove(workingFeatures, { keys: strangerKeys });
    const keys = { expected: fakeBrokerKey, seen: strangerKeys.ed25519.public_key };
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker", keys });
  });

  it("takes a proof of an earlier connection for nothing", async () => {
    const { reach } = bed.open();
    const first = await bed.broker.peers.next();
    await first.prove();
    first.socket.terminate();
    await reach("offline");
    const second = await bed.broker.peers.next();
    second.send(first.sent[0] ?? {});
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker" });
  });

  it("follows a key that is changed on purpose at its next try", async () => {
    let trusted = fakeBrokerKey;
    const { reach } = bed.open({ trust: { key: () => trusted, keep: () => false } });
    const show = async () => (await bed.broker.peers.next()).prove(workingFeatures, { keys: strangerKeys });
    await show();
    await reach("offline");
    trusted = strangerKeys.ed25519.public_key;
    const peer = await bed.broker.peers.next();
    await peer.prove(workingFeatures, { keys: strangerKeys });
    const hello = await peer.frames.next();
    peer.reply(hello, 200, peer.welcomeBody(hello));
    expect(await reach("online")).toMatchObject({ brokerKey: trusted });
  });

  it("does not go back to a broker that speaks first", async () => {
    const { reach } = bed.open();
    const peer = await bed.broker.peers.next();
    peer.send({ type: "challenge", protocol: 1, nonce: "n", features: workingFeatures });
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker" });
    await peer.closeCode;
    expect(peer.received).toBeLessThanOrEqual(1);
  });
});

describe("a link that knows no key", () => {
  it("keeps the first one whose broker takes its member, and believes no other after that", async () => {
    const { reach } = bed.open({ trust: trustInMemory() });
    const peer = await bed.broker.welcomeNext();
    expect(await reach("online")).toMatchObject({ brokerKey: fakeBrokerKey, isFirstKey: true });
    peer.socket.terminate();
    await reach("offline");
    await (await bed.broker.peers.next()).prove(workingFeatures, { keys: strangerKeys });
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker" });
  });

  it("keeps none whose broker refuses its member", async () => {
    const trust = trustInMemory();
    const { reach } = bed.open({ trust });
    const peer = await bed.broker.peers.next();
    await peer.prove(workingFeatures, { keys: strangerKeys });
    peer.reply(await peer.frames.next(), 401, { error: "unauthorized", message: "no", retryable: false });
    await reach("offline");
    expect(trust.key()).toBeUndefined();
  });

  it.each([4003, 4004, 4005])("is not ended by close code %i before its member was taken", async (code) => {
    const { reach } = bed.open({ trust: trustInMemory() });
    const peer = await bed.broker.peers.next();
    await peer.prove();
    await peer.frames.next();
    peer.socket.close(code);
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker" });
    await bed.broker.welcomeNext();
    await reach("online");
  });

  it("is not ended by features, and waits for a broker that speaks first to be upgraded", async () => {
    const { reach } = bed.open({ trust: trustInMemory() });
    await (await bed.broker.peers.next()).prove({});
    expect(await reach("offline")).toMatchObject({ reason: "protocol_error" });
    const old = await bed.broker.peers.next();
    old.send({ type: "challenge", protocol: 1, nonce: "n", features: {} });
    const tooOld = await reach("offline");
    expect(tooOld).toMatchObject({ reason: "broker_too_old", detail: expect.stringContaining("upgrade the broker") });
  });

  it("believes none where another key was kept while it said hello", async () => {
    const { reach } = bed.open({ trust: { key: () => undefined, keep: () => false } });
    const peer = await bed.broker.peers.next();
    await peer.prove();
    const hello = await peer.frames.next();
    peer.reply(hello, 200, peer.welcomeBody(hello));
    expect(await reach("offline")).toMatchObject({ reason: "not_our_broker" });
  });
});
