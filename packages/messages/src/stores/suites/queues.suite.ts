// Queues for competing consumers: one live lease per message, requests and settlements that can be repeated, leases
// that expire by the clock alone, parking and reviving.
import { limits } from "@claudemesh/protocol/messages/limits";
import { StorageError } from "@claudemesh/storage/errors";
import { beforeEach, describe, expect, test } from "vitest";
import type { LeaseOutcome, Settlement } from "../../ports/queues.ts";
import { describeExpiredLeases } from "./expired-leases.suite.ts";
import { type Consumers, createConsumers } from "./queue-consumers.ts";
import { noEffects, queue, send, type World } from "./world.ts";

export function describeQueues(world: () => World): void {
  const consumers = createConsumers(world);
  describe("a queue", () => describeCreation(world, consumers));
  describe("a lease", () => describeLeases(world, consumers));
  describe("settling", () => describeSettling(world, consumers));
  describe("parking", () => describeParking(world, consumers));
  describe("leases that ran out", () => describeExpiredLeases(world));
}

function describeCreation(world: () => World, { start, take, lease }: Consumers): void {
  const create = (id: string, maxDeliveries = 5) =>
    world().store.queues.create(world().meshId, { id, maxDeliveries, createdBy: "x" }, world().nowMs);

  test("created again is what exists, or a conflict when the deliveries differ", async () => {
    expect(await create("jobs")).toBe("created");
    expect(await create("jobs")).toBe("exists");
    expect(await create("jobs", 4)).toBe("different");
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => create("raced")));
    expect(outcomes.toSorted()).toEqual(["created", "exists", "exists", "exists", "exists"]);
  });

  test("takes a message with the accept, or the accept has no effect at all", async () => {
    const [alice] = await start(0);
    const request = send("m1", queue("jobs"));
    const heal = await world().failInserts("queue_message");
    await expect(world().accept(alice, request)).rejects.toThrow(StorageError);
    expect(await world().effects()).toEqual(noEffects);
    await heal();
    expect(await world().accept(alice, request)).toMatchObject({ type: "accepted", historyId: 1 });
    expect(await world().accept(alice, request)).toMatchObject({ type: "duplicate" });
    expect((await take(alice, "r1")).clientIds).toEqual(["m1"]);
  });

  test("of another mesh is another queue", async () => {
    const [alice] = await start(1);
    const other = await world().startOther("mesh-2");
    const request = { queue: "jobs", holder: alice, leaseRequestId: "r1", max: 1, leaseSeconds: 1, leaseToken: "t" };
    await other.threeMembers();
    expect(await other.store.queues.lease({ ...request, meshId: "mesh-2" }, 1)).toEqual({ type: "queue_not_found" });
    await other.store.queues.create("mesh-2", { id: "jobs", maxDeliveries: 5, createdBy: alice }, 1);
    expect(await other.store.queues.lease({ ...request, meshId: "mesh-2" }, 1)).toEqual({ type: "empty" });
    await other.close();
  });

  test("that does not exist, and a member that is revoked, are named as such by every call", async () => {
    const [alice, bob] = await start(1);
    expect(await lease(alice, "r1", { queue: "nothing" })).toEqual({ type: "queue_not_found" });
    const { ack, nack, revive } = createConsumers(world);
    for (const settle of [ack, nack]) {
      expect(await settle(alice, "t", ["x"], { queue: "nothing" })).toEqual({ type: "queue_not_found" });
    }
    expect(await revive(alice, ["x"], "nothing")).toEqual({ type: "queue_not_found" });
    const query = { meshId: world().meshId, queue: "nothing", after: 0, limit: 1 };
    expect(await world().store.queues.parked(query, 1)).toBeUndefined();
    await world().revoke(bob);
    const refusals = [await lease(bob, "r1"), await ack(bob, "t", ["x"]), await nack(bob, "t", ["x"])];
    expect([...refusals, await revive(bob, ["x"])]).toEqual(Array(4).fill({ type: "not_a_member" }));
    // Who is no member does not learn which queues there are.
    const nowhere = { queue: "nothing" };
    const outsiders = [await lease(bob, "r1", nowhere), await ack(bob, "t", ["x"], nowhere)];
    expect([...outsiders, await revive(bob, ["x"], "nothing")]).toEqual(Array(3).fill({ type: "not_a_member" }));
  });
}

function describeLeases(world: () => World, { start, take, lease, ack, nack }: Consumers): void {
  test("leases messages in history order, each as it was sent, up to its maximum", async () => {
    const [alice, bob] = await start(3);
    const first = await take(bob, "r1", { max: 2, leaseSeconds: 30 });
    expect(first.clientIds).toEqual(["m1", "m2"]);
    expect(first.expiresAtMs).toBe(world().nowMs + 30_000);
    expect(first.items[0]).toEqual({
      history_id: 1,
      broker_message_id: expect.any(String),
      client_message_id: "m1",
      destination: { kind: "queue", ref: "jobs" },
      sender_pubkey: alice,
      envelope_version: "1",
      body: "hello",
      meta: null,
      priority: "next",
      reply_to_id: null,
      accepted_at: world().nowMs,
      deliveries: 1,
    });
    expect((await take(bob, "r2")).clientIds).toEqual(["m3"]);
  });

  test("keeps its messages from every other consumer while it lives", async () => {
    const [, bob, carol] = await start(3);
    const second = await world().openAnother();
    expect((await take(bob, "r1", { max: 2 })).clientIds).toEqual(["m1", "m2"]);
    expect((await take(carol, "r1", { store: second })).clientIds).toEqual(["m3"]);
    expect(await lease(carol, "r2")).toEqual({ type: "empty" });
    expect(await lease(bob, "r2")).toEqual({ type: "empty" });
  });

  test("raced for by many consumers on two connections gives each message to one of them", async () => {
    const [alice, bob, carol] = await start(20);
    const stores = [world().store, await world().openAnother()];
    const taken = await Promise.all(
      Array.from({ length: 12 }, (_, index) => {
        const holder = [alice, bob, carol][index % 3] ?? alice;
        return lease(holder, `r${index}`, { max: 2, store: stores[index % 2] ?? world().store });
      }),
    );
    const ids = taken.flatMap((outcome) => (outcome.type === "leased" ? outcome.items : []));
    expect(ids.map((item) => item.history_id).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
    expect(taken.filter(({ type }) => type === "empty")).toHaveLength(2);
  });

  test("asked for again is the same token and end, and what of it is not settled", async () => {
    const [, bob] = await start(4);
    const first = await take(bob, "r1", { max: 3 });
    world().nowMs += 5_000;
    expect(await take(bob, "r1", { max: 3 })).toMatchObject({
      leaseToken: first.leaseToken,
      expiresAtMs: first.expiresAtMs,
      items: first.items,
    });
    await ack(bob, first.leaseToken, [first.idOf("m2")]);
    await nack(bob, first.leaseToken, [first.idOf("m1")]);
    await world().reopen();
    const again = await take(bob, "r1", { max: 3 });
    expect([again.leaseToken, again.clientIds]).toEqual([first.leaseToken, ["m3"]]);
    await ack(bob, first.leaseToken, [first.idOf("m3")]);
    expect(await lease(bob, "r1", { max: 3 })).toEqual({
      type: "leased",
      items: [],
      leaseToken: first.leaseToken,
      expiresAtMs: first.expiresAtMs,
    });
  });

  test("asked for many times at once is made once", async () => {
    const [, bob] = await start(4);
    const second = await world().openAnother();
    const outcomes = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        take(bob, "r1", { max: 2, ...(index % 2 === 0 ? {} : { store: second }) }),
      ),
    );
    expect(new Set(outcomes.map(({ leaseToken }) => leaseToken)).size).toBe(1);
    for (const { clientIds } of outcomes) expect(clientIds).toEqual(["m1", "m2"]);
  });

  test("asked for by a crowd at once is each one's own, as if they had come one after the other", async () => {
    const [alice, bob, carol] = await start(5);
    await world().revoke(carol);
    const [first, second, stranger, again, different, rest] = await Promise.all([
      lease(alice, "r1", { max: 2 }),
      lease(bob, "r2", { max: 1 }),
      lease(carol, "r3"),
      lease(alice, "r1", { max: 2 }),
      lease(alice, "r1", { max: 3 }),
      lease(bob, "r4"),
    ]);
    const clientIds = (outcome: LeaseOutcome) =>
      outcome.type === "leased" ? outcome.items.map((item) => item.client_message_id) : outcome.type;
    expect([first, second, stranger, different, rest].map(clientIds)).toEqual([
      ["m1", "m2"],
      ["m3"],
      "not_a_member",
      "different",
      ["m4", "m5"],
    ]);
    expect(again).toEqual(first);
  });

  test("asked for again after its end is lost, also when all of it was settled", async () => {
    const [, bob] = await start(2);
    const { leaseToken, ids } = await take(bob, "r1", { max: 1, leaseSeconds: 30 });
    await ack(bob, leaseToken, ids);
    await take(bob, "r2", { max: 1, leaseSeconds: 60 });
    world().nowMs += 30_000;
    expect(await lease(bob, "r1", { max: 1, leaseSeconds: 30 })).toEqual({ type: "lease_lost" });
    world().nowMs += 30_000;
    expect(await lease(bob, "r2", { max: 1, leaseSeconds: 60 })).toEqual({ type: "lease_lost" });
  });

  test("asked for under the same id with other terms is a conflict that changes nothing", async () => {
    const [, bob] = await start(3);
    const first = await take(bob, "r1", { max: 2, leaseSeconds: 30 });
    expect(await lease(bob, "r1", { max: 3, leaseSeconds: 30 })).toEqual({ type: "different" });
    expect(await lease(bob, "r1", { max: 2, leaseSeconds: 31 })).toEqual({ type: "different" });
    expect((await take(bob, "r1", { max: 2, leaseSeconds: 30 })).leaseToken).toBe(first.leaseToken);
    expect((await take(bob, "r2")).clientIds).toEqual(["m3"]);
  });

  test("has a request id of its holder and queue alone", async () => {
    const [alice, bob, carol] = await start(2);
    await world().addQueue("other");
    await world().accept(alice, send("o1", queue("other")));
    expect((await take(bob, "r1", { max: 1 })).clientIds).toEqual(["m1"]);
    expect((await take(carol, "r1", { max: 1 })).clientIds).toEqual(["m2"]);
    expect((await take(bob, "r1", { queue: "other", max: 1 })).clientIds).toEqual(["o1"]);
  });

  test("with nothing in it claims nothing: the same request gets what comes later", async () => {
    const [alice, bob] = await start(0);
    expect(await lease(bob, "r1")).toEqual({ type: "empty" });
    world().nowMs += 3_600_000;
    await world().accept(alice, send("m1", queue("jobs")));
    expect((await take(bob, "r1")).clientIds).toEqual(["m1"]);
  });

  test("that expired frees its messages for others by the clock alone, in their old order", async () => {
    const [, bob, carol] = await start(4);
    const first = await take(bob, "r1", { max: 2, leaseSeconds: 30 });
    expect((await take(carol, "r1", { max: 1, leaseSeconds: 300 })).clientIds).toEqual(["m3"]);
    world().nowMs += 29_999;
    expect((await take(carol, "r2", { max: 1 })).clientIds).toEqual(["m4"]);
    expect(await lease(carol, "r3")).toEqual({ type: "empty" });
    world().nowMs += 1;
    const second = await take(carol, "r3", { max: 1 });
    expect(second.items.map((item) => [item.client_message_id, item.deliveries])).toEqual([["m1", 2]]);
    expect((await take(carol, "r4")).clientIds).toEqual(["m2"]);
    expect(await ack(bob, first.leaseToken, [first.idOf("m1")])).toEqual({
      type: "lease_lost",
      lost: [first.idOf("m1")],
    });
  });

  test("fits a frame however large its messages are, and leaves the rest for the next", async () => {
    const [alice, bob] = await start(0);
    const body = Buffer.alloc(180_000, 0xff).toString("base64");
    for (let id = 1; id <= 9; id++) {
      const destination = { ...queue("jobs") };
      await world().accept(alice, { client_message_id: `m${id}`, destination, body_base64: body });
    }
    const taken: string[][] = [];
    for (let request = 0; taken.flat().length < 9; request++) {
      const page = await take(bob, `r${request}`, { max: 1_000 });
      expect(Buffer.byteLength(JSON.stringify(page.items))).toBeLessThan(limits.frameBytes - 1_000);
      taken.push(page.clientIds);
    }
    expect(taken.flat()).toEqual(Array.from({ length: 9 }, (_, index) => `m${index + 1}`));
    expect(taken.length).toBeLessThan(4);
  });

  test("passes over messages that retention has removed", async () => {
    const [, bob] = await start(4);
    await world().query(`DELETE FROM ${world().table("message_queue")} WHERE client_message_id IN ('m1', 'm2')`);
    expect((await take(bob, "r1", { max: 1 })).clientIds).toEqual(["m3"]);
    expect((await take(bob, "r2", { max: 5 })).clientIds).toEqual(["m4"]);
  });
}

function describeSettling(world: () => World, { start, take, lease, ack, nack }: Consumers): void {
  const all = (ids: readonly string[], settlement: Settlement) => ({
    type: "settled",
    settlements: new Map(ids.map((id) => [id, settlement])),
  });

  test("an ack takes the message out for good", async () => {
    const [, bob] = await start(2);
    const { leaseToken, idOf } = await take(bob, "r1");
    expect(await ack(bob, leaseToken, [idOf("m1")])).toEqual(all([idOf("m1")], "acked"));
    world().nowMs += 86_400_000;
    expect((await take(bob, "r2")).clientIds).toEqual(["m2"]);
  });

  test("a nack makes the message available at once, to anyone, and counts as a delivery", async () => {
    const [, bob, carol] = await start(2);
    const { leaseToken, idOf } = await take(bob, "r1");
    expect(await nack(bob, leaseToken, [idOf("m1")])).toEqual(all([idOf("m1")], "nacked"));
    const next = await take(carol, "r1");
    expect(next.items.map((item) => [item.client_message_id, item.deliveries])).toEqual([["m1", 2]]);
  });

  test("what a token settled stays settled, after its end and whatever became of the message", async () => {
    const [, bob, carol] = await start(2);
    const first = await take(bob, "r1", { leaseSeconds: 30 });
    const [m1, m2] = [first.idOf("m1"), first.idOf("m2")];
    await ack(bob, first.leaseToken, [m1]);
    await nack(bob, first.leaseToken, [m2]);
    const second = await take(carol, "r1");
    await ack(carol, second.leaseToken, [m2]);
    world().nowMs += 365 * 86_400_000;
    await world().reopen();
    expect(await ack(bob, first.leaseToken, [m1])).toEqual(all([m1], "acked"));
    expect(await nack(bob, first.leaseToken, [m2])).toEqual(all([m2], "nacked"));
    // The first settlement stands, and the answer says which it was.
    expect(await ack(bob, first.leaseToken, [m2, m1, m1])).toEqual({
      type: "settled",
      settlements: new Map([
        [m2, "nacked"],
        [m1, "acked"],
      ]),
    });
    expect(await lease(bob, "r9")).toEqual({ type: "empty" });
  });

  test("in time is until the lease's end; late, nothing of the call is applied and the lost ones are named", async () => {
    const [, bob, carol] = await start(3);
    const first = await take(bob, "r1", { leaseSeconds: 30 });
    const [m1, m2, m3] = [first.idOf("m1"), first.idOf("m2"), first.idOf("m3")];
    world().nowMs += 29_999;
    expect(await ack(bob, first.leaseToken, [m1])).toEqual(all([m1], "acked"));
    world().nowMs += 1;
    expect(await ack(bob, first.leaseToken, [m1, m2, m3])).toEqual({ type: "lease_lost", lost: [m2, m3] });
    expect(await nack(bob, first.leaseToken, [m2])).toEqual({ type: "lease_lost", lost: [m2] });
    expect((await take(carol, "r1")).clientIds).toEqual(["m2", "m3"]);
  });

  test("with ids that the token never held applies nothing", async () => {
    const [, bob] = await start(3);
    const first = await take(bob, "r1", { max: 1 });
    const second = await take(bob, "r2", { max: 1 });
    const mixed = [first.idOf("m1"), second.idOf("m2"), "no-such-message"];
    const lost = { type: "lease_lost", lost: [second.idOf("m2"), "no-such-message"] };
    expect(await ack(bob, first.leaseToken, mixed)).toEqual(lost);
    expect((await take(bob, "r1", { max: 1 })).clientIds).toEqual(["m1"]);
  });

  test("belongs to the member and the queue of the lease: another's token is good for nothing", async () => {
    const [, bob, carol] = await start(1);
    await world().addQueue("other");
    const { leaseToken, ids } = await take(bob, "r1");
    expect(await ack(carol, leaseToken, ids)).toEqual({ type: "lease_lost", lost: ids });
    expect(await ack(bob, leaseToken, ids, { queue: "other" })).toEqual({ type: "lease_lost", lost: ids });
    expect(await ack(bob, "no-such-token", ids)).toEqual({ type: "lease_lost", lost: ids });
    expect(await ack(bob, leaseToken, ids)).toEqual(all(ids, "acked"));
    expect(await ack(carol, leaseToken, ids)).toEqual({ type: "lease_lost", lost: ids });
  });

  test("of one lease, each message by itself and all at once, applies to all of them", async () => {
    const [alice] = await start(12);
    const { ids, leaseToken } = await take(alice, "r1", { max: 12 });
    const settleAll = () => Promise.all(ids.map((id, n) => (n % 3 === 0 ? nack : ack)(alice, leaseToken, [id])));
    const outcomes = await settleAll();
    const expected = ids.map((id, n) => ({
      type: "settled",
      settlements: new Map([[id, n % 3 === 0 ? "nacked" : "acked"]]),
    }));
    expect(outcomes).toEqual(expected);
    expect(await settleAll()).toEqual(expected);
    expect((await take(alice, "r2", { max: 12 })).clientIds).toEqual(["m1", "m4", "m7", "m10"]);
  });

  test("raced by an ack and a nack ends as one of them, and both callers hear which", async () => {
    const [, bob] = await start(10);
    const second = await world().openAnother();
    const { leaseToken, ids } = await take(bob, "r1");
    const met = new Set<Settlement>();
    for (const [round, id] of ids.entries()) {
      const calls = [() => ack(bob, leaseToken, [id]), () => nack(bob, leaseToken, [id], { store: second })];
      if (round % 2 === 1) calls.reverse();
      const outcomes = await Promise.all(calls.map((call) => call()));
      const heard = outcomes.map((outcome) => (outcome.type === "settled" ? outcome.settlements.get(id) : outcome));
      expect(heard[0]).toEqual(heard[1]);
      met.add(heard[0] as Settlement);
    }
    const left = await lease(bob, "r2");
    expect(left.type === "leased" ? "nacked" : "acked").toBe(met.has("nacked") ? "nacked" : "acked");
  });
}

function describeParking(world: () => World, { start, take, lease, nack, parked, revive }: Consumers): void {
  const takeAndNack = async (member: string, request: string) => {
    const { leaseToken, ids, items } = await take(member, request);
    await nack(member, leaseToken, ids);
    return items.map((item) => item.deliveries);
  };
  let members: [string, string, string];
  beforeEach(async () => {
    members = await start(2);
  });

  test("comes after the last delivery: the message is listed and no longer leased", async () => {
    const [, bob] = members;
    expect(await takeAndNack(bob, "r1")).toEqual([1, 1]);
    expect(await takeAndNack(bob, "r2")).toEqual([2, 2]);
    expect((await parked()).clientIds).toEqual([]);
    world().nowMs += 1_000;
    expect(await takeAndNack(bob, "r3")).toEqual([3, 3]);
    const page = await parked();
    expect(page.items).toMatchObject([
      { client_message_id: "m1", body: "hello", deliveries: 3, parked_at: world().nowMs },
      { client_message_id: "m2", deliveries: 3 },
    ]);
    expect(page.nextAfter).toBeUndefined();
    expect(await lease(bob, "r4")).toEqual({ type: "empty" });
  });

  test("comes with the end of the last lease too, before that is written down", async () => {
    const [, bob] = members;
    for (const request of ["r1", "r2", "r3"]) {
      await take(bob, request, { leaseSeconds: 30 });
      expect((await parked()).clientIds).toEqual([]);
      world().nowMs += 30_000;
    }
    expect((await parked()).items).toMatchObject([{ parked_at: world().nowMs }, { parked_at: world().nowMs }]);
    const parkedAtMs = world().nowMs;
    world().nowMs += 5_000;
    expect(await lease(bob, "r4")).toEqual({ type: "empty" });
    expect((await parked()).items).toMatchObject([
      { client_message_id: "m1", deliveries: 3, parked_at: parkedAtMs },
      { client_message_id: "m2", deliveries: 3, parked_at: parkedAtMs },
    ]);
  });

  test("is listed page by page in history order, whether written down or not", async () => {
    const [alice, bob] = members;
    for (const request of ["r1", "r2", "r3"]) await takeAndNack(bob, request);
    for (const id of ["m3", "m4", "m5"]) await world().accept(alice, send(id, queue("jobs")));
    for (const request of ["r4", "r5", "r6"]) {
      await take(bob, request);
      world().nowMs += 30_000;
    }
    const first = await parked(0, 2);
    expect([first.clientIds, first.nextAfter]).toEqual([["m1", "m2"], 2]);
    const second = await parked(2, 2);
    expect([second.clientIds, second.nextAfter]).toEqual([["m3", "m4"], 4]);
    const third = await parked(4, 2);
    expect([third.clientIds, third.nextAfter]).toEqual([["m5"], undefined]);
  });

  test("ends with a revival: available at once, in its old order, with all deliveries available again", async () => {
    const [alice, bob] = members;
    for (const request of ["r1", "r2", "r3"]) {
      await take(bob, request);
      world().nowMs += 30_000;
    }
    await world().accept(alice, send("m3", queue("jobs")));
    const page = await parked();
    const ids = page.items.map((item) => item.broker_message_id);
    expect(await revive(bob, ids)).toEqual({ type: "revived", revived: 2 });
    expect((await parked()).clientIds).toEqual([]);
    expect(await takeAndNack(bob, "r4")).toEqual([1, 1, 1]);
    expect(await takeAndNack(bob, "r5")).toEqual([2, 2, 2]);
    expect((await parked()).clientIds).toEqual([]);
    expect(await takeAndNack(bob, "r6")).toEqual([3, 3, 3]);
    expect((await parked()).clientIds).toEqual(["m1", "m2", "m3"]);
  });

  test("revived again, or never parked, changes nothing; an id of no message of the queue stops the call", async () => {
    const [alice, bob] = members;
    await world().addQueue("other");
    const elsewhere = await world().accept(alice, send("o1", queue("other")));
    const foreign = elsewhere.type === "accepted" ? elsewhere.brokerMessageId : "not accepted";
    for (const request of ["r1", "r2", "r3"]) await takeAndNack(bob, request);
    const [m1 = "", m2 = ""] = (await parked()).items.map((item) => item.broker_message_id);
    expect(await revive(bob, [m1, foreign, "unknown"])).toEqual({
      type: "message_not_found",
      unknown: [foreign, "unknown"],
    });
    expect((await parked()).clientIds).toEqual(["m1", "m2"]);
    expect(await revive(bob, [m1, m1])).toEqual({ type: "revived", revived: 1 });
    expect(await revive(bob, [m1])).toEqual({ type: "revived", revived: 0 });
    await take(bob, "r4");
    expect(await revive(bob, [m1])).toEqual({ type: "revived", revived: 0 });
    expect(await lease(bob, "r5")).toEqual({ type: "empty" });
    expect(await revive(bob, [m1, m2])).toEqual({ type: "revived", revived: 1 });
    expect((await take(bob, "r5")).clientIds).toEqual(["m2"]);
  });
}
