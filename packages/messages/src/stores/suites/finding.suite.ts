// Finding messages: by mention, by text, and one by its id. Each from a member who may see them and from one who may
// not.
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { describe, expect, test } from "vitest";
import { readSearchTerms } from "../../core/search-terms.ts";
import { dm, queue, send, topic, type World } from "./world.ts";

export function describeFinding(world: () => World): void {
  describe("mentions", () => describeMentions(world));
  describe("search", () => describeSearch(world));
  describe("the index", () => describeIndex(world));
  describe("the state of a message", () => describeState(world));
}

type Found = { readonly items: readonly { readonly client_message_id: string }[] };
const clientIds = (page: Found) => page.items.map((item) => item.client_message_id);

function describeMentions(world: () => World): void {
  const mention = (request: AcceptRequest, ...mentions: string[]) => ({ ...request, meta: { mentions } });
  const read = (reader: string, of: string, after = 0, limit = 100) =>
    world().store.mentions.read({ meshId: world().meshId, reader, of, after, limit });

  test("show who was mentioned where, in history order, to those who may see the message", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [alice, bob]);
    await world().accept(alice, mention(send("m1", topic("news")), bob));
    await world().accept(bob, send("m2", topic("news")));
    await world().accept(bob, mention(send("m3", topic("news")), bob, carol));
    expect(clientIds(await read(bob, bob))).toEqual(["m1", "m3"]);
    expect(clientIds(await read(alice, bob))).toEqual(["m1", "m3"]);
    expect(clientIds(await read(alice, carol))).toEqual(["m3"]);
    expect((await read(bob, bob)).items[0]).toMatchObject({ history_id: 1, meta: { mentions: [bob] }, body: "hello" });
  });

  test("show nothing to a member who must not see the message, even if it is the one mentioned", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("inner", [alice, bob]);
    await world().accept(alice, mention(send("m1", topic("inner")), carol));
    await world().accept(alice, mention(send("m2", dm(bob)), carol));
    expect(await read(carol, carol)).toEqual({ items: [], nextAfter: undefined });
    expect(clientIds(await read(bob, carol))).toEqual(["m1", "m2"]);
    await world().accept(alice, mention(send("m3", dm(carol)), carol));
    expect(clientIds(await read(carol, carol))).toEqual(["m3"]);
  });

  test("are read page by page", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    for (const id of ["m1", "m2", "m3"]) await world().accept(alice, mention(send(id, dm(bob)), carol));
    const first = await read(bob, carol, 0, 2);
    expect([clientIds(first), first.nextAfter]).toEqual([["m1", "m2"], 2]);
    const last = await read(bob, carol, 2, 2);
    expect([clientIds(last), last.nextAfter]).toEqual([["m3"], undefined]);
  });

  test("belong to one mesh", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, mention(send("m1", dm(bob)), bob));
    const other = await world().startOther("mesh-2");
    await other.threeMembers();
    const query = { meshId: "mesh-2", reader: bob, of: bob, after: 0, limit: 10 };
    expect((await other.store.mentions.read(query)).items).toEqual([]);
    await other.close();
  });
}

async function indexAll(world: World): Promise<number> {
  let steps = 0;
  while (await world.store.search.indexNext(world.nowMs)) steps += 1;
  return steps;
}

const find = (world: World, reader: string, text: string, after = 0, limit = 100) =>
  world.store.search.find({ meshId: world.meshId, reader, terms: readSearchTerms(text), after, limit });

function describeSearch(world: () => World): void {
  const search = async (reader: string, text: string) => clientIds(await find(world(), reader, text));

  test("finds messages that hold every word, whatever its case, in history order", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob), "The build is green"));
    await world().accept(alice, send("m2", dm(bob), "the build failed; build again"));
    await world().accept(alice, send("m3", dm(bob), "Grüße aus dem Norden, 你好"));
    await indexAll(world());
    expect(await search(bob, "BUILD")).toEqual(["m1", "m2"]);
    expect(await search(bob, "green build")).toEqual(["m1"]);
    expect(await search(bob, "green failed")).toEqual([]);
    expect(await search(bob, "grüße")).toEqual(["m3"]);
    expect(await search(bob, "bui")).toEqual([]);
    expect((await find(world(), bob, "green")).items[0]).toMatchObject({ history_id: 1, body: "The build is green" });
  });

  test("shows nothing to a member who must not see it", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("inner", [bob]);
    await world().addQueue("jobs");
    await world().accept(alice, send("to-topic", topic("inner"), "secret word"));
    await world().accept(alice, send("to-bob", dm(bob), "secret word"));
    await world().accept(alice, send("to-queue", queue("jobs"), "secret word"));
    await world().accept(alice, send("to-carol", dm(carol), "secret word"));
    await indexAll(world());
    expect(await search(carol, "secret")).toEqual(["to-carol"]);
    expect(await search(bob, "secret")).toEqual(["to-topic", "to-bob"]);
    expect(await search(alice, "secret")).toEqual(["to-topic", "to-bob", "to-queue", "to-carol"]);
    await world().store.topics.subscribe(world().meshId, "inner", carol, world().nowMs);
    expect(await search(carol, "secret")).toEqual(["to-topic", "to-carol"]);
    expect(await find(world(), "stranger", "secret")).toEqual({ items: [], nextAfter: undefined });
  });

  test("never finds what is sealed, or what is no text", async () => {
    const [alice, bob] = await world().threeMembers();
    const destination = { ...dm(bob) };
    const base64 = Buffer.from("looks like text").toString("base64");
    await world().accept(alice, {
      client_message_id: "sealed",
      destination,
      body_base64: base64,
      envelope_version: "2",
    });
    const bytes = Buffer.concat([Buffer.from("looks like text"), Buffer.from([0xff])]).toString("base64");
    await world().accept(alice, { client_message_id: "bytes", destination, body_base64: bytes });
    await world().accept(alice, { client_message_id: "clear", destination, body_base64: base64 });
    await indexAll(world());
    expect(await search(bob, "looks like text")).toEqual(["clear"]);
  });

  test.each([
    '"',
    '"build',
    'build" OR "x',
    "build*",
    "build AND",
    "NOT build",
    "NEAR(build green)",
    "body:build",
    "-build",
    "^build",
    "(build",
    "build + green",
    "build\0green",
    "{build}",
    "'; DROP TABLE message_search; --",
    "!!!",
    "🚀",
    "\u{1F680} build",
  ])("takes %j for words and marks, and nothing else", async (text) => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob), "build"));
    await indexAll(world());
    const words = text.match(/[a-z]+/gi) ?? [];
    const expected = words.length > 0 && words.every((word) => word === "build") ? ["m1"] : [];
    expect(await search(bob, text)).toEqual(expected);
    expect(await search(bob, "build")).toEqual(["m1"]);
  });

  test("takes one word as long as a query may be, and finds it", async () => {
    const [alice, bob] = await world().threeMembers();
    const words = ["각".repeat(256), "é".repeat(256), "\u{20000}".repeat(256)];
    for (const [index, word] of words.entries()) {
      expect(await search(bob, word)).toEqual([]);
      await world().accept(alice, send(`m${index}`, dm(bob), `before ${word} after`));
    }
    await indexAll(world());
    for (const [index, word] of words.entries()) expect(await search(bob, word)).toEqual([`m${index}`]);
    expect(await search(bob, "힣".repeat(256))).toEqual([]);
  });

  test("is read page by page", async () => {
    const [alice, bob] = await world().threeMembers();
    for (let id = 1; id <= 5; id++) await world().accept(alice, send(`m${id}`, dm(bob), `build ${id}`));
    await indexAll(world());
    const first = await find(world(), bob, "build", 0, 2);
    expect([clientIds(first), first.nextAfter]).toEqual([["m1", "m2"], 2]);
    const last = await find(world(), bob, "build", 3, 2);
    expect([clientIds(last), last.nextAfter]).toEqual([["m4", "m5"], undefined]);
    expect(clientIds(await find(world(), bob, "build", Number.MAX_SAFE_INTEGER, 2))).toEqual([]);
  });

  test("of one mesh finds nothing of another", async () => {
    const [alice, bob] = await world().threeMembers();
    const other = await world().startOther("mesh-2");
    const [dave, erin] = await other.threeMembers();
    await world().accept(alice, send("m1", dm(bob), "build one"));
    await other.accept(dave, send("x1", dm(erin), "build two"));
    await other.accept(dave, send("x2", dm(erin), "build three"));
    await indexAll(world());
    expect(await search(bob, "build")).toEqual(["m1"]);
    expect(clientIds(await find(other, erin, "build"))).toEqual(["x1", "x2"]);
    await other.close();
  });
}

function describeIndex(world: () => World): void {
  test("goes past a message without a byte", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("empty", dm(bob), ""));
    await world().accept(alice, send("m1", dm(bob), "build"));
    await indexAll(world());
    expect(clientIds(await find(world(), bob, "build"))).toEqual(["m1"]);
  });

  test("lags behind history and never leads it, and says when it has caught up", async () => {
    const [alice, bob] = await world().threeMembers();
    expect(await world().store.search.indexNext(world().nowMs)).toBe(false);
    await world().accept(alice, send("m1", dm(bob), "build"));
    expect((await find(world(), bob, "build")).items).toEqual([]);
    expect(await world().store.search.indexNext(world().nowMs)).toBe(true);
    expect(await world().store.search.indexNext(world().nowMs)).toBe(false);
    expect(clientIds(await find(world(), bob, "build"))).toEqual(["m1"]);
    const heal = await world().failInserts("delivery_queue");
    await expect(world().accept(alice, send("m2", dm(bob), "build"))).rejects.toThrow();
    await heal();
    expect(await indexAll(world())).toBe(0);
    expect(clientIds(await find(world(), bob, "build"))).toEqual(["m1"]);
  });

  test("goes on where it was after a restart, in bounded steps, without a gap or a repetition", async () => {
    const [alice, bob] = await world().threeMembers();
    const ids = Array.from({ length: 300 }, (_, index) => `m${index + 1}`);
    await Promise.all(ids.map((id) => world().accept(alice, send(id, dm(bob), `build ${id}`))));
    const indexed: number[] = [0];
    while (await world().store.search.indexNext(world().nowMs)) {
      await world().reopen();
      const { items } = await find(world(), bob, "build", 0, 1_000);
      expect(items.map((item) => item.history_id)).toEqual(items.map((_, index) => index + 1));
      expect(items.length).toBeGreaterThan(indexed.at(-1) ?? 0);
      indexed.push(items.length);
    }
    expect(indexed[1]).toBeLessThanOrEqual(150);
    expect(new Set(clientIds(await find(world(), bob, "build", 0, 1_000)))).toEqual(new Set(ids));
  });

  test("takes large texts few at a time, and finds them by their beginning", async () => {
    const [alice, bob] = await world().threeMembers();
    const tail = `${"é".repeat(40_000)} late`;
    for (const id of ["m1", "m2", "m3", "m4", "m5"]) {
      await world().accept(alice, send(id, dm(bob), `early ${tail}`));
    }
    expect(await indexAll(world())).toBeGreaterThan(1);
    expect(clientIds(await find(world(), bob, "early"))).toEqual(["m1", "m2", "m3", "m4", "m5"]);
    expect(clientIds(await find(world(), bob, "late"))).toEqual([]);
  });

  test("knows every word of the first 64 KiB, however many there are", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("short", dm(bob), `${"a ".repeat(32_766)}y z`));
    const distinct = Array.from({ length: 12_000 }, (_, index) => index.toString(36));
    await world().accept(alice, send("distinct", dm(bob), `${distinct.join(" ")} needle-end`));
    const syllables = Array.from({ length: 11_172 }, (_, index) => String.fromCodePoint(0xac00 + index));
    await world().accept(alice, send("syllables", dm(bob), `${syllables.join(" ")} needle end`));
    const often = `${"often ".repeat(300)}often-seen ${"often ".repeat(300)}`;
    await world().accept(alice, send("often", dm(bob), often));
    await indexAll(world());
    const search = async (text: string) => clientIds(await find(world(), bob, text));
    expect(await search("z")).toEqual(["short", "distinct"]);
    expect(await search("y-z")).toEqual(["short", "distinct"]);
    expect(await search("needle")).toEqual(["distinct", "syllables"]);
    expect(await search("needle-end")).toEqual(["distinct", "syllables"]);
    expect(await search("often-seen")).toEqual(["often"]);
    expect(await search("힣")).toEqual(["syllables"]);
  });

  test("gives every mesh its turn", async () => {
    const [alice, bob] = await world().threeMembers();
    const other = await world().startOther("mesh-2");
    const [dave] = await other.threeMembers();
    for (let batch = 0; batch < 3; batch++) {
      const ids = Array.from({ length: 100 }, (_, index) => `${batch}-${index}`);
      await Promise.all(ids.map((id) => world().accept(alice, send(id, dm(bob), "build"))));
    }
    await other.accept(dave, send("x1", dm(dave), "build"));
    for (let step = 0; step < 2; step++) await world().store.search.indexNext(++world().nowMs);
    expect(clientIds(await find(other, dave, "build"))).toEqual(["x1"]);
    expect((await find(world(), bob, "build", 0, 1_000)).items.length).toBeLessThan(300);
    await other.close();
  });

  test("is filled by two brokers at once as by one", async () => {
    const [alice, bob] = await world().threeMembers();
    const ids = Array.from({ length: 200 }, (_, index) => `m${index + 1}`);
    await Promise.all(ids.map((id) => world().accept(alice, send(id, dm(bob), "build"))));
    const stores = [world().store, await world().openAnother()];
    await Promise.all(
      stores.map(async (store) => {
        while (await store.search.indexNext(world().nowMs));
      }),
    );
    expect(clientIds(await find(world(), bob, "build", 0, 1_000))).toHaveLength(200);
  });
}

function describeState(world: () => World): void {
  const state = (
    reader: string,
    brokerMessageId: string,
    options: { owner?: boolean; after?: string; limit?: number } = {},
  ) =>
    world().store.messageState.find(
      {
        meshId: world().meshId,
        brokerMessageId,
        reader,
        readerIsOwner: options.owner ?? false,
        after: options.after ?? "",
        limit: options.limit ?? 100,
      },
      world().nowMs,
    );
  const accept = async (sender: string, request: AcceptRequest): Promise<string> => {
    const result = await world().accept(sender, request);
    if (result.type !== "accepted") throw new Error("a send was not accepted");
    return result.brokerMessageId;
  };

  test("tells sender and recipients what became of each delivery", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const dave = await world().addMember();
    await world().addTopic("news", [bob, carol, dave]);
    const id = await accept(alice, send("m1", topic("news")));
    await world().store.deliveries.settle(world().meshId, bob, [1], 5_000);
    await world().revoke(carol);
    await world().store.memberships.end({ meshId: world().meshId, pubkey: carol }, 6_000, 10);
    const full = {
      sight: "full",
      clientMessageId: "m1",
      historyId: 1,
      destination: { kind: "topic", ref: "news" },
      senderPubkey: alice,
      acceptedAtMs: world().nowMs,
      counts: { unsettled: 1, delivered: 1, expired: 1 },
      deliveries: [
        { recipientPubkey: bob, state: "delivered", settledAtMs: 5_000 },
        { recipientPubkey: carol, state: "expired", settledAtMs: 6_000 },
        { recipientPubkey: dave, state: "unsettled", settledAtMs: undefined },
      ],
      nextCursor: undefined,
      queued: undefined,
    };
    expect(await state(alice, id)).toEqual(full);
    expect(await state(bob, id)).toEqual(full);
    const first = await state(alice, id, { limit: 2 });
    expect(first).toMatchObject({ deliveries: [{}, {}], nextCursor: carol, counts: full.counts });
    expect(await state(alice, id, { limit: 2, after: carol })).toMatchObject({ deliveries: [full.deliveries[2]] });
  });

  test("tells others nothing, and owners among them counts alone", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const id = await accept(alice, send("m1", dm(bob)));
    expect(await state(carol, id)).toBeUndefined();
    expect(await state(carol, id, { owner: true })).toEqual({
      sight: "counts",
      acceptedAtMs: world().nowMs,
      counts: { unsettled: 1, delivered: 0, expired: 0 },
    });
    expect(await state(alice, "no-such-message", { owner: true })).toBeUndefined();
    const other = await world().startOther("mesh-2");
    const query = { meshId: "mesh-2", brokerMessageId: id, reader: alice, readerIsOwner: true, after: "", limit: 1 };
    expect(await other.store.messageState.find(query, 1)).toBeUndefined();
    await other.close();
  });

  test("of a queue's message follows its leases, for the sender and for who took it", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const jobs = { id: "jobs", maxDeliveries: 2, createdBy: alice };
    await world().store.queues.create(world().meshId, jobs, world().nowMs);
    const id = await accept(alice, send("m1", queue("jobs")));
    const queued = async (reader = alice) => {
      const found = await state(reader, id);
      return found?.sight === "full" ? { ...found.queued, ...found.counts } : found;
    };
    const lease = (leaseRequestId: string) =>
      world().store.queues.lease(
        {
          meshId: world().meshId,
          queue: "jobs",
          holder: bob,
          leaseRequestId,
          max: 1,
          leaseSeconds: 30,
          leaseToken: leaseRequestId,
        },
        world().nowMs,
      );
    expect(await queued()).toMatchObject({ state: "ready", deliveries: 0, unsettled: 1 });
    expect(await queued(bob)).toBeUndefined();
    await lease("t1");
    expect(await queued(bob)).toMatchObject({ state: "leased", deliveries: 1 });
    expect(await queued(carol)).toBeUndefined();
    world().nowMs += 30_000;
    expect(await queued()).toMatchObject({ state: "ready", deliveries: 1 });
    await lease("t2");
    world().nowMs += 30_000;
    expect(await queued()).toMatchObject({ state: "parked", deliveries: 2, unsettled: 1 });
    const revival = { meshId: world().meshId, queue: "jobs", member: alice, brokerMessageIds: [id] };
    await world().store.queues.revive(revival, world().nowMs);
    await lease("t3");
    const ack = { meshId: world().meshId, queue: "jobs", holder: bob, leaseToken: "t3", brokerMessageIds: [id] };
    await world().store.queues.settle({ ...ack, settlement: "acked" }, world().nowMs);
    const acked = { state: "acked", deliveries: 1, settledAtMs: world().nowMs, unsettled: 0, delivered: 1 };
    expect(await queued()).toMatchObject(acked);
    expect(await queued(bob)).toMatchObject(acked);
    expect(await state(carol, id, { owner: true })).toMatchObject({ counts: { delivered: 1 } });
  });
}
