// Connections as those of one broker among several: what is signalled to the others, and what their signals do here.
import { describe, expect, test } from "vitest";
import type { RegisteredConnection } from "../transport/connection-registry.ts";
import { SharedConnections } from "./shared-connections.ts";
import type { Signal } from "./signal.ts";

type Log = string[];

function createConnection(
  log: Log,
  name: string,
  pubkey = "bob",
  kind: RegisteredConnection["kind"] = "daemon",
): RegisteredConnection {
  const note = (what: string) => () => void log.push(`${name} ${what}`);
  return {
    meshId: "mesh-1",
    pubkey,
    kind,
    wake: note("woken"),
    replace: note("replaced"),
    refuse: note("refused"),
    cut: note("cut"),
    destinationGone: ({ kind, ref }) => void log.push(`${name} lost ${kind} ${ref}`),
    brokersChanged: note("notified of brokers"),
  };
}

/** Brokers whose signals reach each other at once, or when they are delivered, with stamps from one clock. */
function createBrokers(count: number, when: "at once" | "later" = "at once") {
  let stamp = 0;
  const published: Signal[] = [];
  const waiting: (() => void)[] = [];
  const listening = new Set<SharedConnections>();
  const brokers: SharedConnections[] = Array.from({ length: count }, (_, index) => {
    const publish = (signal: Signal) => {
      published.push(signal);
      for (const [other, broker] of brokers.entries()) {
        if (other === index || !listening.has(broker)) continue;
        if (when === "later") waiting.push(() => broker.receive(signal));
        else broker.receive(signal);
      }
    };
    return new SharedConnections({ publish, nextStamp: () => String(++stamp).padStart(4, "0") });
  });
  for (const broker of brokers) listening.add(broker);
  const [a, b] = brokers;
  if (a === undefined || b === undefined) throw new Error("two brokers at least");
  const deliver = () => {
    for (const receive of waiting) receive();
  };
  return { a, b, brokers, published, listening, deliver };
}

describe("connections of one broker among several", () => {
  test("are woken on every broker, and a wake that was received is not passed on", () => {
    const log: Log = [];
    const { a, b, published } = createBrokers(3);
    a.add(createConnection(log, "at a", "alice"), "allow_concurrent");
    b.add(createConnection(log, "at b", "bob"), "allow_concurrent");
    a.wake("mesh-1", ["alice", "bob"]);
    expect(log).toEqual(["at a woken", "at b woken"]);
    expect(published).toEqual([{ type: "deliveries", meshId: "mesh-1", recipients: ["alice", "bob"] }]);
    a.wake("mesh-1", []);
    b.wakeHere({ meshId: "mesh-1", pubkey: "bob" });
    expect(published).toHaveLength(1);
    expect(log.at(-1)).toBe("at b woken");
  });

  test("hear on every broker of a destination that is gone, in its own mesh alone, and pass no signal on", () => {
    const log: Log = [];
    const { a, b, published } = createBrokers(2);
    a.add(createConnection(log, "at a", "alice"), "allow_concurrent");
    b.add(createConnection(log, "at b", "bob"), "allow_concurrent");
    b.add({ ...createConnection(log, "elsewhere", "carol"), meshId: "mesh-2" }, "allow_concurrent");
    a.destinationGone("mesh-1", { kind: "topic", ref: "news" });
    expect(log).toEqual(["at a lost topic news", "at b lost topic news"]);
    expect(published.filter(({ type }) => type === "destination_gone")).toEqual([
      { type: "destination_gone", meshId: "mesh-1", kind: "topic", ref: "news" },
    ]);
  });

  test("hear on every broker of a topic that one member has left, and no other member does", () => {
    const log: Log = [];
    const { a, b, published } = createBrokers(2);
    a.add(createConnection(log, "at a", "bob"), "allow_concurrent");
    b.add(createConnection(log, "at b", "bob"), "allow_concurrent");
    b.add(createConnection(log, "another", "alice"), "allow_concurrent");
    a.destinationGone("mesh-1", { kind: "topic", ref: "news" }, "bob");
    expect(log).toEqual(["at a lost topic news", "at b lost topic news"]);
    expect(published).toEqual([
      { type: "destination_gone", meshId: "mesh-1", kind: "topic", ref: "news", pubkey: "bob" },
    ]);
  });

  test("hear of commits and of sessions with a new holder on every broker, and pass no signal on", () => {
    const log: Log = [];
    const { a, b, published } = createBrokers(3);
    for (const [name, broker] of Object.entries({ a, b })) {
      broker.onSpaceChange(({ spaceId }, seq) => log.push(`${name} ${spaceId} ${seq}`));
      broker.onSessionTaken((_, sessionId, epoch) => log.push(`${name} ${sessionId} ${epoch}`));
    }
    const space = { meshId: "mesh-1", spaceId: "plan" };
    a.spaceChanged(space, 7);
    b.sessionTaken(space, "session-1", 2);
    expect(log).toEqual(["a plan 7", "b plan 7", "b session-1 2", "a session-1 2"]);
    expect(published).toEqual([
      { type: "space_changed", ...space, seq: 7 },
      { type: "session_taken", ...space, sessionId: "session-1", epoch: 2 },
    ]);
  });

  test("give way to a newer daemon elsewhere, and only to that", () => {
    const log: Log = [];
    const { a, b } = createBrokers(2);
    const older = createConnection(log, "older");
    a.add(older, "prefer_newest");
    a.add(createConnection(log, "client", "bob", "client"), "prefer_newest");
    a.add(createConnection(log, "other member", "carol"), "prefer_newest");
    b.add(createConnection(log, "newer"), "prefer_newest");
    expect(log).toEqual(["older replaced"]);
    // The announcement of one that is older than what is here, and came late.
    b.receive({ type: "daemon_connected", meshId: "mesh-1", pubkey: "bob", stamp: "0000" });
    expect(log).toEqual(["older replaced"]);
  });

  test("that are made on two brokers at the same moment end as one", () => {
    const log: Log = [];
    const waiting: [SharedConnections, Signal][] = [];
    let stamp = 0;
    const nextStamp = () => String(++stamp);
    const a: SharedConnections = new SharedConnections({ publish: (signal) => waiting.push([b, signal]), nextStamp });
    const b: SharedConnections = new SharedConnections({ publish: (signal) => waiting.push([a, signal]), nextStamp });
    a.add(createConnection(log, "at a"), "prefer_newest");
    b.add(createConnection(log, "at b"), "prefer_newest");
    for (const [broker, signal] of waiting) broker.receive(signal);
    expect(log).toEqual(["at a replaced"]);
  });

  test("stay connected against a newer daemon elsewhere under prefer_oldest, for as long as they are there", () => {
    const log: Log = [];
    const { a, b } = createBrokers(3);
    const older = createConnection(log, "older");
    a.add(older, "prefer_oldest");
    a.add(createConnection(log, "other member", "carol"), "prefer_oldest");
    const newer = createConnection(log, "newer");
    b.add(newer, "prefer_oldest");
    expect(log).toEqual(["newer refused"]);
    b.remove(newer);
    b.add(createConnection(log, "client", "bob", "client"), "prefer_oldest");
    a.remove(older);
    b.add(createConnection(log, "next"), "prefer_oldest");
    expect(log).toEqual(["newer refused"]);
  });

  test.each([
    ["prefer_newest", "at a replaced"],
    ["prefer_oldest", "at b refused"],
  ] as const)("that could not hear of each other are put in order by the next announcement: %s", (policy, expected) => {
    const log: Log = [];
    let stamp = 0;
    let connected = false;
    const nextStamp = () => String(++stamp);
    const to = (other: () => SharedConnections) => (signal: Signal) => {
      if (connected) other().receive(signal);
    };
    const a: SharedConnections = new SharedConnections({ publish: to(() => b), nextStamp });
    const b: SharedConnections = new SharedConnections({ publish: to(() => a), nextStamp });
    a.add(createConnection(log, "at a"), policy);
    b.add(createConnection(log, "at b"), policy);
    expect(log).toEqual([]);
    connected = true;
    a.announceAgain();
    b.announceAgain();
    expect(log).toEqual([expected]);
  });

  test.each([
    ["prefer_newest", "older replaced"],
    ["prefer_oldest", "newer refused"],
  ] as const)("end as one also where one side announced before the other listened: %s", (policy, expected) => {
    const log: Log = [];
    const { a, b, published, listening } = createBrokers(2);
    listening.clear();
    a.add(createConnection(log, "older"), policy);
    b.add(createConnection(log, "newer"), policy);
    listening.add(b);
    b.announceAgain();
    listening.add(a);
    const before = published.length;
    a.announceAgain();
    expect(log).toEqual([expected]);
    expect(published.length - before).toBeLessThanOrEqual(3);
  });

  test.each([
    ["prefer_newest", "at 9", "replaced"],
    ["prefer_oldest", "at 0", "refused"],
  ] as const)("talk of a member who is everywhere only until one of its daemons is left: %s", (policy, kept, word) => {
    const log: Log = [];
    const { brokers, published, deliver } = createBrokers(10, "later");
    for (const [at, broker] of brokers.entries()) broker.add(createConnection(log, `at ${at}`), policy);
    published.length = 0;
    for (const broker of brokers) broker.announceAgain();
    deliver();
    expect(log.filter((line) => line.endsWith(word))).toHaveLength(9);
    expect(log.some((line) => line.startsWith(kept))).toBe(false);
    expect(published.length).toBeLessThan(brokers.length ** 3);
  });

  test("stay side by side under allow_concurrent", () => {
    const log: Log = [];
    const { a, b, published } = createBrokers(2);
    a.add(createConnection(log, "one"), "allow_concurrent");
    b.add(createConnection(log, "two"), "allow_concurrent");
    a.announceAgain();
    expect(log).toEqual([]);
    expect(published).toEqual([]);
  });

  test("of a revoked member are cut everywhere, and a change of presence is heard everywhere", () => {
    const log: Log = [];
    const { a, b } = createBrokers(2);
    b.add(createConnection(log, "daemon"), "prefer_newest");
    b.add(createConnection(log, "client", "bob", "client"), "prefer_newest");
    b.onPresenceChange((meshId) => log.push(`presence of ${meshId}`));
    a.cut("mesh-1", "bob");
    a.presenceChanged("mesh-1");
    expect(log).toEqual(["daemon cut", "client cut", "presence of mesh-1"]);
  });

  test("name each recipient of pushes once, while it has a daemon here", () => {
    const { a } = createBrokers(2);
    const [one, two] = [createConnection([], "one"), createConnection([], "two")];
    for (const connection of [one, two, createConnection([], "client", "carol", "client")]) {
      a.add(connection, "allow_concurrent");
    }
    expect(a.recipients()).toEqual([{ meshId: "mesh-1", pubkey: "bob" }]);
    a.remove(one);
    expect(a.recipients()).toHaveLength(1);
    a.remove(two);
    expect(a.recipients()).toEqual([]);
  });
});
