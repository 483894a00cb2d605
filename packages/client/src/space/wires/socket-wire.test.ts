import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { generateMemberKeys } from "../../keys/member-keys.ts";
import { fakeBrokerKey as brokerKey, FakeBroker, type FakePeer, Queue } from "../../testing/fake-broker.ts";
import { testIdentity } from "../../testing/link-testbed.ts";
import type { SpaceWire } from "../space-wire.ts";
import { openLinkWire } from "./link-wire.ts";
import { openSocketWire } from "./socket-wire.ts";

let broker: FakeBroker;
let wire: SpaceWire;
let events: Queue<string>;
let pushes: Queue<{ readonly type: string }>;

beforeEach(async () => {
  broker = await FakeBroker.start();
});
afterEach(async () => {
  await wire.close();
  await broker.stop();
});

const timing = { connectBackoff: { minMs: 1, maxMs: 2 }, backoff: { minMs: 1, maxMs: 2 } };
const wires = [
  [
    "the browser's socket",
    (options: object = {}) => {
      const identity = { ...testIdentity, sign: async (bytes: Uint8Array) => testIdentity.sign(bytes) };
      return openSocketWire({ url: broker.url, identity, agent: "wire-test/1", brokerKey, ...timing, ...options });
    },
  ],
  [
    "a link",
    (options: object = {}) =>
      openLinkWire({
        url: broker.url,
        identity: testIdentity,
        agent: "wire-test/1",
        brokerKey,
        ...timing,
        ...options,
      }),
  ],
] as const;

describe.each(wires)("a wire over %s", (_, openWire) => {
  function open(options?: object): void {
    wire = openWire(options);
    events = new Queue();
    pushes = new Queue();
    wire.listen({
      onPush: (push) => pushes.push(push),
      onUp: () => events.push("up"),
      onDown: (stopped) => events.push(stopped === undefined ? "down" : `stopped ${stopped.split(":")[0]}`),
    });
  }

  async function openUp(options?: object): Promise<FakePeer> {
    open(options);
    const peer = await broker.welcomeNext();
    expect(await events.nextWhere((event) => event === "up")).toBe("up");
    return peer;
  }

  it("hangs up on a broker that sends a long frame before it has answered the hello", async () => {
    open();
    const peer = await broker.peers.next();
    peer.send({ type: "later", padding: "x".repeat(9_000) });
    expect(await peer.closeCode).toBeGreaterThan(0);
    expect(await peer.closeReason).toContain("the broker sent too much before it answered the hello");
  });

  it("says hello with a signature, asks and is answered", async () => {
    const peer = await openUp();
    expect(wire.isUp()).toBe(true);
    const answers = [wire.request("space.list", { limit: 1 }), wire.request("space.create", { name: "plan" })];
    const [list, create] = [await peer.frames.next(), await peer.frames.next()];
    expect([list, create]).toMatchObject([
      { type: "space.list", limit: 1 },
      { type: "space.create", name: "plan" },
    ]);
    peer.reply(create, 201, { name: "plan" });
    peer.reply(list, 200, { items: [] });
    expect(await Promise.all(answers)).toMatchObject([{ status: 200 }, { status: 201 }]);
  });

  it("hands over pushes before a reply that came after them", async () => {
    const peer = await openUp();
    const frame = {
      type: "sync",
      space: "plan",
      sessionId: "s",
      branch: "",
      fromSeq: 0,
      toSeq: 1,
      caughtUpLocalSeq: 0,
    };
    const answer = wire.request("space.list", {}).then(() => events.push("answered"));
    peer.send({ ...frame, upserts: [], removes: [] });
    peer.reply(await peer.frames.next(), 200, {});
    expect(await pushes.next()).toMatchObject({ type: "sync", toSeq: 1 });
    await answer;
  });

  it("ends what is under way when the connection breaks, and comes back", async () => {
    const peer = await openUp();
    const open = wire.request("space.list", {});
    await peer.frames.next();
    peer.socket.terminate();
    expect(await open).toEqual({ type: "connection_lost" });
    expect(await events.next()).toBe("down");
    expect(await wire.request("space.list", {})).toEqual({ type: "not_sent" });
    await broker.welcomeNext();
    expect(await events.nextWhere((event) => event === "up")).toBe("up");
  });

  it("gives up a request that is not answered in time", async () => {
    await openUp({ requestTimeoutMs: 5 });
    expect(await wire.request("space.list", {})).toEqual({ type: "timed_out" });
  });

  it("stops for good when the broker refuses the member, and tells who comes later", async () => {
    open();
    const peer = await broker.peers.next();
    await peer.prove();
    peer.reply(await peer.frames.next(), 401, { error: "unauthorized", message: "who?", retryable: false });
    expect(await events.nextWhere((event) => event !== "down")).toBe("stopped unauthorized");
    const late = new Queue<string>();
    wire.listen({ onPush: () => undefined, onUp: () => undefined, onDown: (stopped) => late.push(stopped ?? "") });
    expect(await late.next()).toMatch(/^unauthorized/);
  });

  it("stops when it is closed", async () => {
    await openUp();
    await wire.close();
    expect(await events.next()).toBe("stopped closed");
    expect(wire.isUp()).toBe(false);
  });
});

describe("a browser's socket", () => {
  it("that hears nothing asks, and hangs up on a broker that does not answer", async () => {
    const identity = { ...testIdentity, sign: async (bytes: Uint8Array) => testIdentity.sign(bytes) };
    wire = openSocketWire({ url: broker.url, identity, agent: "x", ...timing, pingIdleMs: 20 });
    const peer = await broker.welcomeNext();
    const asked = await peer.frames.next();
    expect(asked).toMatchObject({ type: "space.list", limit: 1 });
    peer.reply(asked, 200, { items: [] });
    await peer.frames.next();
    // This one stays unanswered.
    await broker.welcomeNext();
  });
});

describe.each(wires)("over %s, what cannot prove the broker's key", (_, openWire) => {
  it("is not talked to, ends nothing, and is tried again", async () => {
    wire = openWire({});
    const stops: (string | undefined)[] = [];
    const up = new Promise<void>((resolve) => {
      wire.listen({ onPush: () => undefined, onUp: resolve, onDown: (stopped) => stops.push(stopped) });
    });
    const strangers: ((peer: FakePeer) => unknown)[] = [
      (peer) => peer.prove(undefined, { keys: generateMemberKeys() }),
      (peer) => peer.prove(undefined, { keys: generateMemberKeys(), change: { broker_key: brokerKey } }),
      (peer) => peer.prove(undefined, { change: { features: {} } }),
      (peer) => peer.send({ type: "challenge", protocol: 1, nonce: "n", features: {} }),
      (peer) => peer.reply({ id: 1 }, 401, { error: "unauthorized", message: "?", retryable: false }),
      (peer) => peer.socket.close(4003),
      (peer) => peer.socket.close(4001),
    ];
    for (const behave of strangers) {
      const peer = await broker.peers.next();
      await behave(peer);
      await peer.closeCode;
      expect(peer.received).toBeLessThanOrEqual(1);
    }
    await broker.welcomeNext();
    await up;
    expect(stops.filter((stopped) => stopped !== undefined)).toEqual([]);
  });
});

describe("the entry for browsers", () => {
  it("needs nothing of Node's, nor any socket but the browser's", () => {
    const space = dirname(dirname(fileURLToPath(import.meta.url)));
    const seen = new Set<string>();
    const outside = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      const imports = readFileSync(file, "utf8").matchAll(/^(?:import|export)(?! type)[^;]*? from "([^"]+)"/gm);
      for (const [, name = ""] of imports) {
        if (name.startsWith(".")) visit(join(dirname(file), name));
        else outside.add(name);
      }
    };
    visit(join(space, "browser.ts"));
    expect(seen.size).toBeGreaterThan(20);
    expect([...outside].filter((name) => !name.startsWith("@claudemesh/protocol/"))).toEqual([]);
  });
});
