// A link, and a command's one connection, where several brokers serve one store.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { withBroker } from "../broker/broker-client.ts";
import { FakeBroker } from "../testing/fake-broker.ts";
import { LinkTestbed, testIdentity } from "../testing/link-testbed.ts";

let bed: LinkTestbed;
let other: FakeBroker;

beforeEach(async () => {
  bed = await LinkTestbed.start();
  other = await FakeBroker.start();
});

afterEach(async () => {
  await bed.stop();
  await other.stop();
});

const unreachable = "ws://127.0.0.1:1";

describe("a link to one of several brokers", () => {
  it("goes to the next one when its own is lost, and stays there", async () => {
    const { link, peer, reach } = await bed.openOnline({ brokers: [other.url] });
    expect(link.route?.()).toEqual({ current: bed.broker.url, others: [other.url], nextTryAtMs: undefined });
    peer.socket.terminate();
    expect(await reach("offline")).toMatchObject({ reason: "lost" });
    await other.welcomeNext();
    await reach("online");
    expect(link.route?.()).toMatchObject({ current: other.url, others: [bed.broker.url] });
    expect(bed.broker.connections).toBe(1);
  });

  it("asks the next within two seconds, whatever the backoff, also where one takes the connection and says nothing", async () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    try {
      const backoff = { minMs: 60_000, maxMs: 60_000 };
      const { reach } = bed.open({ brokers: [other.url], backoff, random: () => 0.999_999 });
      // It takes the connection and is silent.
      await bed.broker.peers.next();
      expect(await reach("offline")).toMatchObject({ reason: "unreachable" });
      await other.welcomeNext();
      await reach("online");
      const waitedMs = setTimer.mock.calls.map(([, delayMs]) => delayMs ?? 0).filter((ms) => ms > 100 && ms < 10_000);
      expect(waitedMs.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(4_000);
      expect(Math.max(...waitedMs)).toBeLessThan(2_000);
    } finally {
      setTimer.mockRestore();
    }
  });

  it("waits with backoff once all of them have failed, says until when, and tries at once when it is nudged", async () => {
    const backoff = { minMs: 3_600_000, maxMs: 3_600_000 };
    const { link, reach } = bed.open({ url: unreachable, brokers: ["ws://127.0.0.1:2"], backoff, random: () => 0 });
    await reach("offline");
    await reach("offline");
    const { nextTryAtMs = 0 } = link.route?.() ?? {};
    expect(nextTryAtMs).toBeGreaterThan(Date.now() + 3_000_000);
    link.reconnect?.();
    expect(link.status().state).toBe("connecting");
    await reach("offline");
  });

  it("waits once in every round, however long all were away, so that one that is back is found within one backoff", async () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    try {
      const [hopMs, waitMs] = [13, 37];
      const backoff = { minMs: waitMs, maxMs: waitMs };
      bed.open({ url: unreachable, brokers: ["ws://127.0.0.1:2", "ws://127.0.0.1:3"], backoff, random: () => 0.026 });
      const waits = () => setTimer.mock.calls.map(([, ms]) => ms).filter((ms) => ms === hopMs || ms === waitMs);
      await vi.waitFor(() => expect(waits().length).toBeGreaterThanOrEqual(9), 10_000);
      const round = [hopMs, hopMs, waitMs];
      expect(waits().slice(0, 9)).toEqual([...round, ...round, ...round]);
    } finally {
      setTimer.mockRestore();
    }
  });

  it("learns of others from the answer to its hello, and from what the broker tells later", async () => {
    const { link, reach } = bed.open();
    const peer = await bed.broker.peers.next();
    await peer.prove();
    const hello = await peer.frames.next();
    peer.reply(hello, 200, { ...peer.welcomeBody(hello), brokers: [other.url] });
    await reach("online");
    expect(link.route?.().others).toEqual([other.url]);
    peer.send({ type: "brokers_changed", brokers: ["ws://third:1", other.url] });
    await vi.waitFor(() => expect(link.route?.().others).toEqual(["ws://third:1", other.url]));
    peer.send({ type: "brokers_changed", brokers: [other.url] });
    await vi.waitFor(() => expect(link.route?.().others).toEqual([other.url]));
    peer.socket.terminate();
    await other.welcomeNext();
    await reach("online");
  });

  it("is nudged without harm while it is connected", async () => {
    const { link, peer } = await bed.openOnline();
    link.reconnect?.();
    expect(link.status().state).toBe("online");
    expect(peer.socket.readyState).toBe(peer.socket.OPEN);
  });
});

describe("a command's connection", () => {
  const options = { identity: testIdentity, agent: "test/1" };

  it("goes on to the next broker where one cannot be reached", async () => {
    const used = withBroker({ ...options, broker: unreachable, brokers: [bed.broker.url] }, async () => "used");
    await bed.broker.welcomeNext();
    expect(await used).toBe("used");
  });

  it("fails with the last one's word where none can, and does not ask another what one has refused", async () => {
    const away = withBroker({ ...options, broker: unreachable, brokers: ["ws://127.0.0.1:2"] }, async () => "used");
    await expect(away).rejects.toMatchObject({ code: "broker_unreachable" });
    const refused = withBroker({ ...options, broker: bed.broker.url, brokers: [other.url] }, async () => "used");
    const peer = await bed.broker.peers.next();
    await peer.prove();
    peer.reply(await peer.frames.next(), 401, { error: "unauthorized", message: "no", retryable: false });
    await expect(refused).rejects.toMatchObject({ code: "unauthorized" });
    expect(other.connections).toBe(0);
  });
});
