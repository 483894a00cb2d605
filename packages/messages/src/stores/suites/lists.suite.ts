// Lists with counts: the queues of a mesh with what waits in each, and the topics with who hears them and how much was said.
import { describe, expect, test } from "vitest";
import { createConsumers } from "./queue-consumers.ts";
import { queue, send, topic, type World } from "./world.ts";

export function describeLists(world: () => World): void {
  describe("the list of queues", () => describeQueueList(world));
  describe("the counts of topics", () => describeTopicCounts(world));
  test("the topics and queues of one mesh are counted up to a bound", async () => {
    const [alice] = await world().threeMembers();
    for (const id of ["a", "b", "c"]) {
      await world().addTopic(id);
      await world().store.queues.create(world().meshId, { id, maxDeliveries: 1, createdBy: alice }, world().nowMs);
    }
    for (const things of [world().store.topics, world().store.queues]) {
      expect(await Promise.all([0, 2, 9].map((upTo) => things.count(world().meshId, upTo)))).toEqual([0, 2, 3]);
      expect(await things.count("01890000-0000-7000-8000-00000000ffff", 9)).toBe(0);
    }
  });
}

function describeQueueList(world: () => World): void {
  const { start, take, ack, nack } = createConsumers(world);
  const list = (after = "", limit = 100) =>
    world().store.queues.list({ meshId: world().meshId, after, limit }, world().nowMs);

  test("says what waits, what is leased, what is parked, and since when the first one waits", async () => {
    const [alice, bob] = await start(0);
    const createdAtMs = world().nowMs;
    const empty = { id: "jobs", maxDeliveries: 3, createdAtMs, depth: 0, leased: 0, parked: 0, oldestAtMs: undefined };
    expect(await list()).toEqual({ items: [empty], nextAfter: undefined });
    for (let id = 1; id <= 5; id++) {
      world().nowMs += 1_000;
      await world().accept(alice, send(`m${id}`, queue("jobs")));
    }
    expect((await list()).items).toEqual([{ ...empty, depth: 5, oldestAtMs: createdAtMs + 1_000 }]);
    const first = await take(bob, "r1", { max: 2 });
    await ack(bob, first.leaseToken, [first.idOf("m1")]);
    expect((await list()).items).toEqual([{ ...empty, depth: 3, leased: 1, oldestAtMs: createdAtMs + 3_000 }]);
    // The lease runs out by the clock alone, and what it held waits again.
    world().nowMs += 31_000;
    expect((await list()).items).toEqual([{ ...empty, depth: 4, oldestAtMs: createdAtMs + 2_000 }]);
    for (const round of ["r2", "r3"]) {
      const again = await take(bob, round, { max: 1 });
      await nack(bob, again.leaseToken, again.ids);
    }
    expect((await list()).items).toEqual([{ ...empty, depth: 3, parked: 1, oldestAtMs: createdAtMs + 3_000 }]);
    expect(await world().store.queues.countParked(world().meshId, 1_000)).toEqual([{ queue: "jobs", parked: 1 }]);
  });

  test("counts as parked what expired after its last delivery, though that is not written down yet", async () => {
    const [alice] = await start(1);
    for (const round of ["r1", "r2", "r3"]) {
      await take(alice, round);
      world().nowMs += 31_000;
    }
    expect((await list()).items).toMatchObject([{ depth: 0, leased: 0, parked: 1, oldestAtMs: undefined }]);
  });

  test("comes in pages by id, and of one mesh alone", async () => {
    const [alice] = await start(1);
    for (const id of ["a", "b", "z"]) {
      await world().store.queues.create(world().meshId, { id, maxDeliveries: 1, createdBy: alice }, world().nowMs);
    }
    const first = await list("", 3);
    expect([first.items.map(({ id }) => id), first.nextAfter]).toEqual([["a", "b", "jobs"], "jobs"]);
    const second = await list("jobs", 3);
    expect([second.items.map(({ id }) => id), second.nextAfter]).toEqual([["z"], undefined]);
    const other = await world().startOther("mesh-2");
    const elsewhere = await other.store.queues.list({ meshId: "mesh-2", after: "", limit: 9 }, 1);
    expect(elsewhere.items).toEqual([]);
    await other.close();
  });
}

function describeTopicCounts(world: () => World): void {
  const count = (...topics: string[]) => world().store.topics.measure(world().meshId, topics);
  const countHistory = async () => {
    while (await world().store.housekeeping.countNext());
  };

  test("are of subscribers, and of all messages that history has seen", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().addTopic("builds", [alice, bob]);
    await world().addTopic("empty");
    const none = { subscribers: 0, messages: 0, lastMessageAtMs: undefined };
    expect([...(await count("builds", "empty", "nowhere"))]).toEqual([
      ["builds", { ...none, subscribers: 2 }],
      ["empty", none],
      ["nowhere", none],
    ]);
    for (let id = 1; id <= 3; id++) {
      world().nowMs += 1_000;
      await world().accept(alice, send(`m${id}`, topic("builds")));
    }
    await world().accept(alice, send("m3", topic("builds")));
    await countHistory();
    await countHistory();
    const builds = { subscribers: 2, messages: 3, lastMessageAtMs: world().nowMs };
    expect((await count("builds")).get("builds")).toEqual(builds);
    await world().store.topics.unsubscribe(world().meshId, "builds", bob);
    expect((await count("builds")).get("builds")).toEqual({ ...builds, subscribers: 1 });
  });

  test("are taken for many topics at once, in their order", async () => {
    await world().threeMembers();
    const names = Array.from({ length: 25 }, (_, n) => `t${String(n).padStart(2, "0")}`);
    expect([...(await count(...names)).keys()]).toEqual(names);
  });
}
