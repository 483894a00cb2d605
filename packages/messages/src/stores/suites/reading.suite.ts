// Reading back: what is still to be delivered, who may see which history, and topics.
import type { Destination } from "@claudemesh/protocol/messages/addresses";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { describe, expect, test } from "vitest";
import { dm, queue, send, topic, type World } from "./world.ts";

export function describeReading(world: () => World): void {
  describe("deliveries", () => describeDeliveries(world));
  describe("history", () => describeHistory(world));
  describe("topics", () => describeTopics(world));
  describe("the state of a destination", () => describeDestinations(world));
}

function clientIds(items: readonly HistoryItem[]): string[] {
  return items.map((item) => item.client_message_id);
}

function describeDeliveries(world: () => World): void {
  const unsettled = (recipient: string, after = 0, limit = 100) =>
    world().store.deliveries.unsettled(world().meshId, recipient, after, limit);
  const settle = (recipient: string, historyIds: number[], nowMs = world().nowMs) =>
    world().store.deliveries.settle(world().meshId, recipient, historyIds, nowMs);

  test("carry the message as it was sent", async () => {
    const [alice, bob] = await world().threeMembers();
    const meta = { ["__proto__"]: 1, b: [1.5, null], mentions: [bob] };
    await world().accept(alice, { ...send("m1", dm(bob), "grüße\0"), meta, priority: "now", reply_to_id: "r1" });
    const common = { sender_pubkey: alice, destination: dm(bob), accepted_at: world().nowMs };
    const [item] = await unsettled(bob);
    expect(item).toEqual({
      ...common,
      history_id: 1,
      broker_message_id: expect.any(String),
      client_message_id: "m1",
      envelope_version: "1",
      body: "grüße\0",
      meta,
      priority: "now",
      reply_to_id: "r1",
    });
    expect(Object.keys(item?.meta ?? {})).toEqual(["__proto__", "b", "mentions"]);
  });

  test("give sealed bytes and bytes that are no text as base64, and nothing that was not given", async () => {
    const [alice, bob] = await world().threeMembers();
    const sealed = Buffer.from("looks like text").toString("base64");
    const destination = dm(bob);
    await world().accept(alice, {
      client_message_id: "m1",
      destination: { ...destination },
      body_base64: sealed,
      envelope_version: "2",
    });
    await world().accept(alice, { client_message_id: "m2", destination: { ...destination }, body_base64: "/w==" });
    await world().accept(alice, send("m3", destination, ""));
    const items = await unsettled(bob);
    expect(items.map(({ body, body_base64 }) => ({ body, body_base64 }))).toEqual([
      { body: undefined, body_base64: sealed },
      { body: undefined, body_base64: "/w==" },
      { body: "", body_base64: undefined },
    ]);
    expect(items[0]).toMatchObject({ envelope_version: "2", meta: null, priority: "next", reply_to_id: null });
  });

  test("come in history order, after a history id and up to a limit", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob]);
    await world().accept(alice, send("m1", dm(bob)));
    await world().accept(alice, send("m2", dm(carol)));
    await world().accept(carol, send("m3", topic("news")));
    await world().accept(carol, send("m4", dm(bob)));
    expect(clientIds(await unsettled(bob))).toEqual(["m1", "m3", "m4"]);
    expect(clientIds(await unsettled(bob, 1))).toEqual(["m3", "m4"]);
    expect(clientIds(await unsettled(bob, 0, 2))).toEqual(["m1", "m3"]);
    expect(clientIds(await unsettled(carol))).toEqual(["m2"]);
    expect(await unsettled(alice)).toEqual([]);
  });

  test("come to each of the readers that ask at the same time as they would to it alone", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob, carol]);
    for (const id of ["m1", "m2"]) await world().accept(alice, send(id, topic("news")));
    await world().accept(alice, send("m3", dm(bob)));
    await settle(carol, [1]);
    const other = await world().startOther("mesh-2");
    const [dora, elif] = await other.threeMembers();
    await other.accept(dora, send("m4", dm(elif)));
    const asked = [
      unsettled(bob),
      unsettled(carol),
      unsettled(bob, 1),
      unsettled(bob, 0, 1),
      unsettled(alice),
      world().store.deliveries.unsettled(other.meshId, elif, 0, 100),
    ];
    expect((await Promise.all(asked)).map(clientIds)).toEqual([
      ["m1", "m2", "m3"],
      ["m2"],
      ["m2", "m3"],
      ["m1"],
      [],
      ["m4"],
    ]);
  });

  test("are settled one by one and stay so; again changes nothing", async () => {
    const [alice, bob] = await world().threeMembers();
    for (const id of ["m1", "m2", "m3"]) await world().accept(alice, send(id, dm(bob)));
    await settle(bob, [2, 1, 2], 5_000);
    expect(clientIds(await unsettled(bob))).toEqual(["m3"]);
    await settle(bob, [1], 9_000);
    const rows = await world().query(
      `SELECT history_id, settled_at, outcome FROM ${world().table("delivery_queue")} ORDER BY history_id`,
    );
    expect(rows.map((row) => [Number(row.history_id), row.settled_at && Number(row.settled_at), row.outcome])).toEqual([
      [1, 5_000, "delivered"],
      [2, 5_000, "delivered"],
      [3, null, null],
    ]);
    await world().reopen();
    expect(clientIds(await unsettled(bob))).toEqual(["m3"]);
  });

  test("are settled by their recipient alone; deliveries of others are ignored", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob, carol]);
    await world().accept(alice, send("m1", topic("news")));
    await settle(alice, [1]);
    await settle(bob, [1, 2, 999]);
    expect(clientIds(await unsettled(bob))).toEqual([]);
    expect(clientIds(await unsettled(carol))).toEqual(["m1"]);
  });

  test("belong to one mesh", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)));
    const other = await world().startOther("mesh-2");
    await other.threeMembers();
    expect(await other.store.deliveries.unsettled("mesh-2", bob, 0, 10)).toEqual([]);
    await other.store.deliveries.settle("mesh-2", bob, [1], 1);
    expect(clientIds(await unsettled(bob))).toEqual(["m1"]);
    await other.close();
  });
}

function describeHistory(world: () => World): void {
  const read = (reader: string, query: { after?: number; limit?: number; topic?: string } = {}) =>
    world().store.history.read({
      meshId: world().meshId,
      reader,
      after: query.after ?? 0,
      limit: query.limit ?? 100,
      topic: query.topic,
    });
  /** Follows nextAfter to the end, and never for more pages than there can be. */
  async function readAll(reader: string, limit: number): Promise<HistoryItem[][]> {
    const pages: HistoryItem[][] = [];
    let after: number | undefined = 0;
    while (after !== undefined) {
      const page: Awaited<ReturnType<typeof read>> = await read(reader, { after, limit });
      pages.push(page.items);
      if (pages.length > 1_000) throw new Error("nextAfter leads in a circle");
      after = page.nextAfter;
    }
    return pages;
  }

  test("shows a member what it sent, what it received, and nothing else", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addQueue("jobs");
    await world().addTopic("news", [bob]);
    await world().accept(alice, send("a-to-b", dm(bob)));
    await world().accept(bob, send("b-to-a", dm(alice)));
    await world().accept(alice, send("a-to-queue", queue("jobs")));
    await world().accept(alice, send("a-to-news", topic("news")));
    expect(clientIds((await read(alice)).items)).toEqual(["a-to-b", "b-to-a", "a-to-queue", "a-to-news"]);
    expect(clientIds((await read(bob)).items)).toEqual(["a-to-b", "b-to-a", "a-to-news"]);
    expect(await read(carol)).toEqual({ items: [], nextAfter: undefined });
    expect(await read(carol, { topic: "news" })).toEqual({ items: [], nextAfter: undefined });
  });

  test("shows a topic to its subscribers from its beginning, and to those who left it what they received", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob]);
    await world().accept(alice, send("m1", topic("news")));
    await world().store.topics.subscribe(world().meshId, "news", carol, world().nowMs);
    await world().store.topics.unsubscribe(world().meshId, "news", bob);
    await world().accept(alice, send("m2", topic("news")));
    expect(clientIds((await read(carol)).items)).toEqual(["m1", "m2"]);
    expect(clientIds((await read(bob)).items)).toEqual(["m1"]);
  });

  test("of one topic leaves everything else out", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().addTopic("news", [bob]);
    await world().addTopic("other", [bob]);
    await world().addQueue("news");
    for (const [id, to] of [
      ["m1", topic("news")],
      ["m2", topic("other")],
      ["m3", dm(bob)],
      ["m4", queue("news")],
    ] as const) {
      await world().accept(alice, send(id, to));
    }
    expect(clientIds((await read(alice, { topic: "news" })).items)).toEqual(["m1"]);
    expect(clientIds((await read(bob, { topic: "other" })).items)).toEqual(["m2"]);
  });

  test("goes on after any history id, and says where the next page begins until the end", async () => {
    const [alice, bob] = await world().threeMembers();
    for (let id = 1; id <= 7; id++) await world().accept(alice, send(`m${id}`, dm(bob)));
    const first = await read(bob, { limit: 3 });
    expect([clientIds(first.items), first.nextAfter]).toEqual([["m1", "m2", "m3"], 3]);
    expect(clientIds((await read(bob, { after: 5 })).items)).toEqual(["m6", "m7"]);
    const last = await read(bob, { after: 4, limit: 3 });
    expect([clientIds(last.items), last.nextAfter]).toEqual([["m5", "m6", "m7"], undefined]);
    expect(await read(bob, { after: 7 })).toEqual({ items: [], nextAfter: undefined });
    expect(await read(bob, { after: 1_000_000 })).toEqual({ items: [], nextAfter: undefined });
    expect((await readAll(bob, 2)).map((page) => page.length)).toEqual([2, 2, 2, 1]);
  });

  test("moves on past a long stretch that the reader may not see, without looking at all of it at once", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().accept(alice, send("first", dm(carol)));
    for (let batch = 0; batch < 50; batch++) {
      await Promise.all(Array.from({ length: 220 }, (_, id) => world().accept(alice, send(`${batch}-${id}`, dm(bob)))));
    }
    await world().accept(alice, send("last", dm(carol)));
    const first = await read(carol);
    expect(clientIds(first.items)).toEqual(["first"]);
    expect(first.nextAfter).toBeGreaterThan(1);
    expect(first.nextAfter).toBeLessThan(11_002);
    expect((await readAll(carol, 100)).flatMap(clientIds)).toEqual(["first", "last"]);
  });

  test("cuts a page of large messages so that it fits a frame, and loses none of them", async () => {
    const [alice, bob] = await world().threeMembers();
    const body = Buffer.alloc(180_000, 0xff).toString("base64");
    const destination = { ...dm(bob) };
    for (let id = 0; id < 12; id++) {
      await world().accept(alice, { client_message_id: `m${id}`, destination, body_base64: body });
    }
    // Alone larger than a page may be: it still comes.
    const huge = Buffer.alloc(1_000_000, 0xff).toString("base64");
    await world().accept(alice, { client_message_id: "huge", destination, body_base64: huge });
    const pages = await readAll(bob, 1_000);
    for (const page of pages) expect(Buffer.byteLength(JSON.stringify(page))).toBeLessThan(limits.frameBytes - 1_000);
    expect(pages.length).toBeLessThan(8);
    expect(pages.flatMap(clientIds)).toEqual([...Array.from({ length: 12 }, (_, id) => `m${id}`), "huge"]);
  });

  test("leaves out messages that retention has removed, and so do deliveries", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().addTopic("news", [bob]);
    await world().accept(alice, send("m1", topic("news")));
    await world().accept(alice, send("m2", dm(bob)));
    await world().accept(alice, send("m3", dm(bob)));
    await world().query(`DELETE FROM ${world().table("topic_message")}`);
    await world().query(`DELETE FROM ${world().table("message_queue")} WHERE client_message_id = 'm2'`);
    expect(await read(bob)).toMatchObject({ items: [{ client_message_id: "m3" }], nextAfter: undefined });
    const due = await world().store.deliveries.unsettled(world().meshId, bob, 0, 10);
    expect(clientIds(due)).toEqual(["m3"]);
  });

  test("of an empty mesh is empty", async () => {
    const [alice] = await world().threeMembers();
    expect(await read(alice)).toEqual({ items: [], nextAfter: undefined });
  });
}

function describeTopics(world: () => World): void {
  const create = (name: string, postPolicy: "members" | "subscribers" = "members") =>
    world().store.topics.create(world().meshId, { name, postPolicy, createdBy: "x" }, world().nowMs);
  const list = (reader: string, after = "", limit = 100) =>
    world().store.topics.list(world().meshId, reader, after, limit);

  test("created again are what exists, or a conflict when the policy differs", async () => {
    expect(await create("news")).toBe("created");
    expect(await create("news")).toBe("exists");
    expect(await create("news", "subscribers")).toBe("different");
    expect(await list("x")).toEqual([{ name: "news", postPolicy: "members", subscribed: false }]);
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => create("raced")));
    expect(outcomes.filter((outcome) => outcome === "created")).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === "exists")).toHaveLength(4);
  });

  test("are listed by name, page by page, with the reader's own subscriptions", async () => {
    const [alice, bob] = await world().threeMembers();
    for (const name of ["c", "a", "b"]) await create(name);
    await world().store.topics.subscribe(world().meshId, "b", alice, 1);
    expect((await list(alice)).map(({ name, subscribed }) => [name, subscribed])).toEqual([
      ["a", false],
      ["b", true],
      ["c", false],
    ]);
    expect((await list(bob, "a", 1)).map(({ name, subscribed }) => [name, subscribed])).toEqual([["b", false]]);
  });

  test("are subscribed to and left any number of times, and only where they exist", async () => {
    const [alice] = await world().threeMembers();
    const { subscribe, unsubscribe } = world().store.topics;
    expect(await subscribe(world().meshId, "news", alice, 1)).toBe(false);
    expect(await unsubscribe(world().meshId, "news", alice)).toBe(false);
    await create("news");
    expect(await unsubscribe(world().meshId, "news", alice)).toBe(true);
    for (const at of [1, 2]) expect(await subscribe(world().meshId, "news", alice, at)).toBe(true);
    expect(await list(alice)).toMatchObject([{ subscribed: true }]);
    for (let again = 0; again < 2; again++) expect(await unsubscribe(world().meshId, "news", alice)).toBe(true);
    expect(await list(alice)).toMatchObject([{ subscribed: false }]);
  });

  test("belong to one mesh", async () => {
    await create("news");
    const other = await world().startOther("mesh-2");
    expect(await other.store.topics.list("mesh-2", "x", "", 10)).toEqual([]);
    expect(await other.store.topics.subscribe("mesh-2", "news", "x", 1)).toBe(false);
    await other.close();
  });
}

function describeDestinations(world: () => World): void {
  const find = (sender: string, destination: Destination) =>
    world().store.destinations.find({ meshId: world().meshId, sender, destination });
  const missing = { refusal: "destination_not_found", hasRecipients: false };

  test("says of topics, members and queues whether a send would be taken", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob]);
    await world().addQueue("jobs");
    await world().revoke(carol);
    for (const there of [topic("news"), dm(bob), dm(alice), queue("jobs")]) {
      expect(await find(alice, there)).toEqual({ refusal: undefined, hasRecipients: true });
    }
    for (const gone of [topic("olds"), dm(carol), dm("f".repeat(64)), queue("none"), topic("jobs"), queue("news")]) {
      expect(await find(alice, gone)).toEqual(missing);
    }
    const other = await world().startOther("mesh-2");
    const query = { meshId: other.meshId, sender: alice, destination: topic("news") };
    expect(await other.store.destinations.find(query)).toEqual(missing);
    await other.close();
  });

  test("says who would get a topic's message: live subscribers other than the sender", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("empty", [alice]);
    await world().addTopic("left", [bob, carol]);
    expect(await find(alice, topic("empty"))).toEqual({ refusal: undefined, hasRecipients: false });
    expect(await find(bob, topic("empty"))).toEqual({ refusal: undefined, hasRecipients: true });
    await world().revoke(carol);
    expect(await find(alice, topic("left"))).toEqual({ refusal: undefined, hasRecipients: true });
    expect(await find(bob, topic("left"))).toEqual({ refusal: undefined, hasRecipients: false });
  });

  test("gives the verdict that the accept gives", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("board", [bob], "subscribers");
    await world().addQueue("jobs");
    await world().revoke(carol);
    const destinations = [topic("board"), topic("none"), dm(bob), dm(carol), queue("jobs"), queue("none")];
    for (const sender of [alice, bob]) {
      for (const [at, destination] of destinations.entries()) {
        const { refusal } = await find(sender, destination);
        const result = await world().accept(sender, send(`${sender}-${at}`, destination));
        expect(result.type === "refused" ? result.code : undefined).toBe(refusal);
      }
    }
  });
}
