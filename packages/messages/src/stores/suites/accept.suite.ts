// Accepting: all effects or none, one accept per id whichever senders race for it, refusals that consume nothing, history in
// commit order.
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, test } from "vitest";
import { isMentionFailure } from "../mention-failure.ts";
import { createBarrier, dm, noEffects, queue, send, topic, type World } from "./world.ts";

export function describeAccept(world: () => World): void {
  describe("effects", () => describeEffects(world));
  describe("one id", () => describeOneId(world));
  describe("refusals in the transaction", () => describeRefusals(world));
  describe("history ids", () => describeHistoryIds(world));
  describe("the fast path", () => describeFastPath(world));
}

function describeEffects(world: () => World): void {
  test("a topic message has its claim, message, history, mentions, and one delivery per other subscriber", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [alice, bob, carol]);
    const request = { ...send("m1", topic("news")), meta: { mentions: [bob, carol] } };
    const result = await world().accept(alice, request);
    expect(result).toMatchObject({ type: "accepted", clientMessageId: "m1", historyId: 1 });
    expect(await world().effects()).toEqual({ dedupe: 1, message: 1, history: 1, delivery: 2, mention: 2 });
    expect(world().woken.map((recipients) => [...recipients].sort())).toEqual([[bob, carol]]);
    expect(await world().store.deliveries.unsettled(world().meshId, alice, 0, 10)).toEqual([]);
  });

  test("a direct message is delivered to its recipient, who may be the sender", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)));
    await world().accept(alice, send("m2", dm(alice)));
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 2, message: 2, history: 2, delivery: 2 });
    expect(world().woken).toEqual([[bob], [alice]]);
  });

  test("a queued message waits for a lease and is delivered to no member", async () => {
    const [alice] = await world().threeMembers();
    await world().addQueue("jobs");
    expect(await world().accept(alice, send("m1", queue("jobs")))).toMatchObject({ type: "accepted" });
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 1, message: 1, history: 1 });
    expect(world().woken).toEqual([[]]);
  });

  test("revoked and former subscribers are no recipients", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob, carol]);
    await world().revoke(bob);
    await world().store.topics.unsubscribe(world().meshId, "news", carol);
    await world().accept(alice, send("m1", topic("news")));
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 1, message: 1, history: 1 });
  });

  test.each([
    ["client_message_dedupe", "topic"],
    ["topic_message", "topic"],
    ["message_queue", "dm"],
    ["message_history", "topic"],
    ["delivery_queue", "topic"],
    ["delivery_queue", "dm"],
    ["mention_index", "topic"],
    ["mention_index", "dm"],
  ] as const)(
    "when the insert into %s of a %s message fails, no effect remains and no recipient is woken",
    async (table, kind) => {
      const [alice, bob, carol] = await world().threeMembers();
      await world().addTopic("news", [bob, carol]);
      const request = { ...send("m1", kind === "dm" ? dm(bob) : topic("news")), meta: { mentions: [bob, carol] } };
      const heal = await world().failInserts(table);
      const failure = await world()
        .accept(alice, request)
        .catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(StorageError);
      expect(isMentionFailure(failure)).toBe(table === "mention_index");
      expect(await world().effects()).toEqual(noEffects);
      expect(world().woken).toEqual([]);
      expect(await world().fate(alice, request)).toEqual({ fate: "none" });
      await heal();
      // Nothing was consumed, neither the id nor a history id.
      expect(await world().accept(alice, request)).toMatchObject({ type: "accepted", historyId: 1 });
    },
  );

  test("sends without mentions are accepted while the mention index takes nothing", async () => {
    const [alice, bob] = await world().threeMembers();
    const heal = await world().failInserts("mention_index");
    const barrier = createBarrier(3);
    const outcomes = await Promise.allSettled(
      ["m1", "m2", "m3"].map((id) => {
        const request = send(id, dm(bob));
        return world().accept(alice, id === "m2" ? { ...request, meta: { mentions: [bob] } } : request, {
          afterLookUp: barrier,
        });
      }),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 2, message: 2, history: 2, delivery: 2 });
    await heal();
  });

  test("a send that the store fails on touches no neighbour of its batch", async () => {
    const [alice, bob] = await world().threeMembers();
    const heal = await world().failInserts("client_message_dedupe", "NEW.client_message_id = 'm2'");
    const barrier = createBarrier(4);
    const outcomes = await Promise.allSettled(
      ["m1", "m2", "m3", "m4"].map((id) => world().accept(alice, send(id, dm(bob)), { afterLookUp: barrier })),
    );
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 3, message: 3, history: 3, delivery: 3 });
    await heal();
    expect(await world().accept(alice, send("m2", dm(bob)))).toMatchObject({ type: "accepted", historyId: 4 });
  });
}

function describeOneId(world: () => World): void {
  test("offered again with the same content is a duplicate with the first answer's ids", async () => {
    const [alice, bob] = await world().threeMembers();
    const first = await world().accept(alice, send("m1", dm(bob)));
    const firstSeenAt = world().nowMs;
    world().nowMs += 86_400_000;
    if (first.type !== "accepted") throw new Error("the first send was not accepted");
    expect(await world().accept(alice, send("m1", dm(bob)))).toEqual({
      type: "duplicate",
      clientMessageId: "m1",
      brokerMessageId: first.brokerMessageId,
      historyId: 1,
      historyAvailable: true,
      firstSeenAt,
    });
    expect(world().woken).toHaveLength(1);
  });

  test("offered with other content is reused, and names the fingerprint that it belongs to", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const request = send("m1", dm(bob));
    await world().accept(alice, request);
    const stored = Buffer.from(world().fenceRequest(alice, request).fingerprint).toString("hex");
    const others = [
      send("m1", dm(bob), "other body"),
      send("m1", dm(carol)),
      { ...request, priority: "now" as const },
      { ...request, meta: { a: 1 } },
      { ...request, reply_to_id: "r1" },
      { ...request, envelope_version: "2" as const },
    ];
    for (const other of others) {
      expect(await world().accept(alice, other)).toEqual({
        type: "reused",
        clientMessageId: "m1",
        brokerFingerprintPrefix: stored.slice(0, 16),
      });
    }
    expect(await world().effects()).toMatchObject({ dedupe: 1, message: 1, history: 1 });
  });

  test("of another member stays that member's, whatever the content", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(carol)));
    for (const request of [send("m1", dm(carol)), send("m1", dm(alice), "other")]) {
      expect(await world().accept(bob, request)).toEqual({ type: "owned_by_another", clientMessageId: "m1" });
    }
    expect(await world().effects()).toMatchObject({ dedupe: 1 });
  });

  test("is its own in every mesh", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)));
    const other = await world().startOther("mesh-2");
    const [dave] = await other.threeMembers();
    expect(await other.accept(dave, send("m1", dm(dave)))).toMatchObject({ type: "accepted", historyId: 1 });
    await other.close();
  });

  test("raced for by exact retries is accepted once, and the others are duplicates of it", async () => {
    const [alice, bob] = await world().threeMembers();
    const stores = [world().store.accepts, (await world().openAnother()).accepts];
    const barrier = createBarrier(12);
    const results = await Promise.all(
      Array.from({ length: 12 }, (_, caller) => {
        const store = stores[caller % 2] ?? world().store.accepts;
        return world().accept(alice, send("m1", dm(bob)), { store, afterLookUp: barrier });
      }),
    );
    const accepted = results.filter((result) => result.type === "accepted");
    const duplicates = results.filter((result) => result.type === "duplicate");
    expect([accepted.length, duplicates.length]).toEqual([1, 11]);
    const ids = [...accepted, ...duplicates].map(({ brokerMessageId }) => brokerMessageId);
    expect(new Set(ids).size).toBe(1);
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 1, message: 1, history: 1, delivery: 1 });
    expect(world().woken).toHaveLength(1);
  });

  test("raced for by different contents and members has one winner, and every answer fits the winner", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const stores = [world().store.accepts, (await world().openAnother()).accepts];
    const offers = Array.from({ length: 18 }, (_, caller) => ({
      sender: caller % 3 === 0 ? bob : alice,
      body: `body ${caller % 4}`,
      store: stores[caller % 2] ?? world().store.accepts,
    }));
    const barrier = createBarrier(offers.length);
    const results = await Promise.all(
      offers.map(({ sender, body, store }) =>
        world().accept(sender, send("m1", dm(carol), body), { store, afterLookUp: barrier }),
      ),
    );
    const winner = offers[results.findIndex(({ type }) => type === "accepted")];
    expect(winner).toBeDefined();
    const expected = offers.map((offer) => {
      if (offer === winner) return "accepted";
      if (offer.sender !== winner?.sender) return "owned_by_another";
      return offer.body === winner.body ? "duplicate" : "reused";
    });
    expect(results.map(({ type }) => type)).toEqual(expected);
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 1, message: 1, history: 1, delivery: 1 });
  });
}

function describeRefusals(world: () => World): void {
  test("a topic that does not exist, a stranger, a revoked member and an unknown queue are not found", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().revoke(bob);
    for (const destination of [topic("news"), dm("f".repeat(64)), dm(bob), queue("jobs")]) {
      const result = await world().accept(alice, send("m1", destination));
      expect(result).toEqual({ type: "refused", code: "destination_not_found" });
    }
    expect(await world().effects()).toEqual(noEffects);
    expect(world().woken).toEqual([]);
  });

  test("a topic for subscribers refuses others; a topic for members takes every member", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().addTopic("inner", [bob], "subscribers");
    await world().addTopic("open", [bob], "members");
    const refused = await world().accept(alice, send("m1", topic("inner")));
    expect(refused).toEqual({ type: "refused", code: "not_subscribed" });
    expect(await world().accept(bob, send("m2", topic("inner")))).toMatchObject({ type: "accepted" });
    expect(await world().accept(alice, send("m3", topic("open")))).toMatchObject({ type: "accepted" });
  });

  test("a sender whose membership ended is unauthorized, also when it ended after the look-up", async () => {
    const [alice, bob] = await world().threeMembers();
    const result = await world().accept(alice, send("m1", dm(bob)), { afterLookUp: () => world().revoke(alice) });
    expect(result).toEqual({ type: "refused", code: "unauthorized" });
    const stranger = await world().accept("e".repeat(64), send("m2", dm(bob)));
    expect(stranger).toEqual({ type: "refused", code: "unauthorized" });
    expect(await world().effects()).toEqual(noEffects);
  });

  test("a refused id is free: the same or another send may use it once the condition clears", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", topic("news")));
    expect(await world().fate(alice, send("m1", topic("news")))).toEqual({ fate: "none" });
    await world().addTopic("news", [bob]);
    expect(await world().accept(alice, send("m1", topic("news")))).toMatchObject({ type: "accepted", historyId: 1 });
    await world().accept(alice, send("m2", queue("jobs")));
    expect(await world().accept(bob, send("m2", dm(alice)))).toMatchObject({ type: "accepted", historyId: 2 });
  });

  test("a refused send touches no neighbour of its batch", async () => {
    const [alice, bob] = await world().threeMembers();
    const destinations = [dm(bob), topic("nowhere"), dm(bob), queue("nowhere"), dm(bob)];
    const barrier = createBarrier(destinations.length);
    const results = await Promise.all(
      destinations.map((to, index) => world().accept(alice, send(`m${index}`, to), { afterLookUp: barrier })),
    );
    expect(results.map(({ type }) => type)).toEqual(["accepted", "refused", "accepted", "refused", "accepted"]);
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 3, message: 3, history: 3, delivery: 3 });
  });
}

function describeHistoryIds(world: () => World): void {
  test("count accepted messages from 1 without gaps, whatever was refused between them", async () => {
    const [alice, bob] = await world().threeMembers();
    const ids: (number | string)[] = [];
    for (let index = 0; index < 12; index++) {
      const to = index % 3 === 1 ? topic("nowhere") : dm(bob);
      const result = await world().accept(alice, send(`m${index}`, to));
      ids.push(result.type === "accepted" ? result.historyId : result.type);
    }
    expect(ids).toEqual([1, "refused", 2, 3, "refused", 4, 5, "refused", 6, 7, "refused", 8]);
  });

  test("are gapless and unique among concurrent senders, and history lists them in that order", async () => {
    const [alice, bob] = await world().threeMembers();
    const stores = [world().store.accepts, (await world().openAnother()).accepts];
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, index) => {
        const store = stores[index % 2] ?? world().store.accepts;
        return world().accept(alice, send(`m${index}`, dm(bob)), { store });
      }),
    );
    const byHistoryId = new Map<number, string>();
    for (const result of results) {
      if (result.type === "accepted") byHistoryId.set(result.historyId, result.brokerMessageId);
    }
    expect([...byHistoryId.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    const read = { meshId: world().meshId, reader: bob, after: 0, limit: 100, topic: undefined };
    const { items } = await world().store.history.read(read);
    expect(items.map((item) => item.history_id)).toEqual(Array.from({ length: 40 }, (_, index) => index + 1));
    for (const item of items) expect(item.broker_message_id).toBe(byHistoryId.get(item.history_id));
  });

  test("are counted for every mesh alone", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)));
    const other = await world().startOther("mesh-2");
    const [dave] = await other.threeMembers();
    expect(await other.accept(dave, send("x1", dm(dave)))).toMatchObject({ historyId: 1 });
    expect(await world().accept(alice, send("m2", dm(bob)))).toMatchObject({ historyId: 2 });
    await other.close();
  });
}

function describeFastPath(world: () => World): void {
  test("a retry is one look-up: no transaction, no limiter, no waking", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)));
    const calls: string[] = [];
    const { findAccepted, accept } = world().store.accepts;
    const store = {
      findAccepted: (meshId: string, id: string) => {
        calls.push("findAccepted");
        return findAccepted(meshId, id);
      },
      accept: (...offer: Parameters<typeof accept>) => {
        calls.push("accept");
        return accept(...offer);
      },
    };
    const overrides = { store, afterLookUp: () => void calls.push("afterLookUp") };
    expect(await world().accept(alice, send("m1", dm(bob)), overrides)).toMatchObject({ type: "duplicate" });
    expect(await world().accept(alice, send("m1", dm(bob), "x"), overrides)).toMatchObject({ type: "reused" });
    expect(calls).toEqual(["findAccepted", "findAccepted"]);
    expect(world().woken).toHaveLength(1);
  });

  test("answers a committed retry even when the size limit was lowered below it; a new id is too large", async () => {
    const [alice, bob] = await world().threeMembers();
    const body = "x".repeat(2_000);
    await world().accept(alice, send("m1", dm(bob), body));
    const lowered = { inlineBytes: 1_024 };
    expect(await world().accept(alice, send("m1", dm(bob), body), lowered)).toMatchObject({ type: "duplicate" });
    const refused = await world().accept(alice, send("m2", dm(bob), body), lowered);
    expect(refused).toEqual({ type: "refused", code: "payload_too_large" });
    const fitting = await world().accept(alice, send("m2", dm(bob), "x".repeat(1_024)), lowered);
    expect(fitting).toMatchObject({ type: "accepted" });
  });
}
