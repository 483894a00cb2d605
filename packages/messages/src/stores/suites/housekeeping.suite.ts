// Housekeeping: messages that are older than they have to be go with all that speaks of them, ids are forgotten when
// their time is over and never before, and a retry meanwhile gets a whole answer.
import { describe, expect, test } from "vitest";
import type { SweepCounts } from "../../ports/housekeeping.ts";
import { sweepAll } from "../../services/sweep.ts";
import { dm, noEffects, queue, send, topic, type World } from "./world.ts";

const dayMs = 86_400_000;

type Retention = { messageDays?: number; dedupeDays?: number };

export function describeHousekeeping(world: () => World): void {
  /** Without the limiter's records, which not every store has. */
  const sweepNow = async ({ messageDays, dedupeDays }: Retention, store = world().store): Promise<SweepCounts> => {
    const { limiter_rows: _limiterRows, ...counts } = await sweepAll({
      store,
      nowMs: () => world().nowMs,
      messageRetentionMs: messageDays && messageDays * dayMs,
      dedupeRetentionMs: dedupeDays && dedupeDays * dayMs,
    });
    return counts;
  };
  const count = async (table: string, where = "1 = 1"): Promise<number> => {
    const [row] = await world().query(`SELECT count(*) AS n FROM ${world().table(table)} WHERE ${where}`);
    return Number(row?.n);
  };
  const pass = (days: number) => {
    world().nowMs += days * dayMs;
  };
  const tools = { sweepNow, count, pass };
  describe("message retention", () => describeRetention(world, tools));
  describe("message retention of queues", () => describeQueueRetention(world, tools));
  describe("dedupe retention", () => describeForgetting(world, tools));
  describe("housekeeping by many at once", () => describeTogether(world, tools));
  describe("statistics", () => describeStats(world, tools));
  describe("rate counters", () => describeRates(world, tools));
}

type Tools = {
  readonly sweepNow: (retention: Retention, store?: World["store"]) => Promise<SweepCounts>;
  readonly count: (table: string, where?: string) => Promise<number>;
  readonly pass: (days: number) => void;
};

function describeRetention(world: () => World, { sweepNow, count, pass }: Tools): void {
  const outcomes = async () => {
    const rows = await world().query(
      `SELECT recipient_pubkey, outcome FROM ${world().table("delivery_queue")} ORDER BY history_id, recipient_pubkey`,
    );
    return rows.map((row) => [row.recipient_pubkey, row.outcome]);
  };

  test("a message that is older goes with its words and mentions, and a younger one stays", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const mentioning = { ...send("old", dm(bob), "find me"), meta: { mentions: [carol] } };
    const first = await world().accept(alice, mentioning);
    pass(2);
    const second = { ...send("young", dm(bob), "find me"), meta: { mentions: [carol] } };
    await world().accept(alice, second);
    while (await world().store.search.indexNext(world().nowMs));
    pass(1);
    expect(await sweepNow({ messageDays: 2 })).toMatchObject({ messages: 1, mentions: 1, search_rows: 1 });
    const reader = { meshId: world().meshId, reader: alice, after: 0, limit: 10 };
    const found = await world().store.search.find({ ...reader, terms: ["find"] });
    expect(found.items.map((item) => item.client_message_id)).toEqual(["young"]);
    const mentioned = await world().store.mentions.read({ ...reader, of: carol });
    expect(mentioned.items.map((item) => item.client_message_id)).toEqual(["young"]);
    expect(await count("mention_index")).toBe(1);
    const history = await world().store.history.read({ ...reader, topic: undefined });
    expect(history.items.map((item) => item.client_message_id)).toEqual(["young"]);

    const ids = first.type === "accepted" && { brokerMessageId: first.brokerMessageId, historyId: first.historyId };
    const gone = { ...ids, historyAvailable: false };
    expect(await world().accept(alice, mentioning)).toMatchObject({ type: "duplicate", ...gone });
    expect(await world().fate(alice, mentioning)).toEqual({ fate: "committed", ...gone });
    expect(await world().fence(alice, mentioning)).toEqual({ fate: "committed", ...gone });
    expect(await world().accept(alice, second)).toMatchObject({ type: "duplicate", historyAvailable: true });
    expect(await world().fate(alice, second)).toMatchObject({ fate: "committed", historyAvailable: true });
  });

  test("deliveries that were not confirmed are settled as expired and hold up no other; confirmed ones stay so", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob, carol]);
    await world().accept(alice, send("m1", topic("news")));
    await world().store.deliveries.settle(world().meshId, bob, [1], world().nowMs);
    pass(3);
    await world().accept(alice, send("m2", dm(carol)));
    expect(await sweepNow({ messageDays: 2 })).toMatchObject({ messages: 1, expired_deliveries: 1 });
    expect(await outcomes()).toEqual([
      [bob, "delivered"],
      [carol, "expired"],
      [carol, null],
    ]);
    const waiting = await world().store.deliveries.unsettled(world().meshId, carol, 0, 10);
    expect(waiting.map((item) => item.client_message_id)).toEqual(["m2"]);
    // It was on its way when it went: the confirmation comes too late, and nothing breaks.
    await world().store.deliveries.settle(world().meshId, carol, [1, 2], world().nowMs);
    expect(await outcomes()).toContainEqual([carol, "expired"]);
    expect(await world().store.deliveries.unsettled(world().meshId, carol, 0, 10)).toEqual([]);
  });

  test("a message with more recipients than one step may settle takes several, and loses none", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)));
    const [row] = await world().query(`SELECT broker_message_id AS id FROM ${world().table("message_history")}`);
    await world().query(
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
       INSERT INTO ${world().table("delivery_queue")} (mesh_id, history_id, recipient_pubkey, broker_message_id)
       SELECT '${world().meshId}', 1, CAST(i AS TEXT), '${row?.id}' FROM n`,
    );
    pass(3);
    const terms = { messagesBeforeMs: world().nowMs - dayMs, forgetIds: true, leasesBeforeMs: undefined };
    const step = () => world().store.housekeeping.sweepMesh(world().meshId, { nowMs: world().nowMs, ...terms });
    const first = await step();
    expect(first.more).toBe(true);
    expect(first.counts.expired_deliveries).toBeLessThan(5001);
    expect(await count("message_queue")).toBe(1);
    expect(await sweepNow({ messageDays: 1 })).toMatchObject({ messages: 1 });
    expect(await count("delivery_queue", "outcome = 'expired'")).toBe(5001);
    pass(365);
    expect(await sweepNow({ dedupeDays: 365 })).toMatchObject({ deliveries: 5001, history_rows: 1, dedupe_rows: 1 });
    expect(await world().effects()).toEqual(noEffects);
  });

  test("a message that goes before it is indexed is never found", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob), "find me"));
    pass(3);
    expect(await sweepNow({ messageDays: 2 })).toEqual({ messages: 1, expired_deliveries: 1 });
    while (await world().store.search.indexNext(world().nowMs));
    const query = { meshId: world().meshId, reader: alice, after: 0, limit: 10, terms: ["find"] };
    expect(await world().store.search.find(query)).toEqual({ items: [], nextAfter: undefined });
  });

  test("without a bound nothing goes, however old", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)), { dedupeRetentionMs: undefined });
    pass(300);
    expect(await sweepNow({})).toEqual({});
    expect(await world().effects()).toMatchObject({ dedupe: 1, message: 1, history: 1, delivery: 1 });
  });

  test("of more messages than fit a step all go, and the next accept goes on in history", async () => {
    const [alice, bob] = await world().threeMembers();
    await Promise.all(Array.from({ length: 700 }, (_, id) => world().accept(alice, send(`m${id}`, dm(bob)))));
    pass(3);
    expect(await sweepNow({ messageDays: 2 })).toMatchObject({ messages: 700, expired_deliveries: 700 });
    expect(await sweepNow({ messageDays: 2 })).toEqual({});
    expect(await world().effects()).toMatchObject({ dedupe: 700, message: 0, history: 700 });
    expect(await world().accept(alice, send("next", dm(bob)))).toMatchObject({ type: "accepted", historyId: 701 });
  });
}

function describeQueueRetention(world: () => World, { sweepNow, count, pass }: Tools): void {
  test("what waits, is leased or is parked expires; what was acked stays acked, and its lease and settlement end with the id", async () => {
    const [alice, bob] = await world().threeMembers();
    const { meshId } = world();
    await world().store.queues.create(meshId, { id: "jobs", maxDeliveries: 1, createdBy: alice }, world().nowMs);
    for (const id of ["acked", "parked", "leased", "ready"]) await world().accept(alice, send(id, queue("jobs")));
    const lease = (request: string) =>
      world().store.queues.lease(
        {
          meshId,
          queue: "jobs",
          holder: bob,
          leaseRequestId: request,
          max: 1,
          leaseSeconds: 3600,
          leaseToken: request,
        },
        world().nowMs,
      );
    const settle = async (token: string, settlement: "acked" | "nacked", id: string) =>
      world().store.queues.settle(
        { meshId, queue: "jobs", holder: bob, leaseToken: token, brokerMessageIds: [id], settlement },
        world().nowMs,
      );
    const idOf = (outcome: Awaited<ReturnType<typeof lease>>) =>
      (outcome.type === "leased" && outcome.items[0]?.broker_message_id) || "nothing was leased";
    const acked = idOf(await lease("r1"));
    await settle("r1", "acked", acked);
    await settle("r2", "nacked", idOf(await lease("r2")));
    pass(2);
    const held = idOf(await lease("r3"));
    expect(await sweepNow({ messageDays: 1, dedupeDays: 365 })).toMatchObject({
      messages: 4,
      expired_queue_messages: 3,
    });
    expect(await count("queue_message", "state = 'expired'")).toBe(3);
    expect(await count("queue_message", "state = 'acked'")).toBe(1);
    expect(await settle("r3", "acked", held)).toEqual({ type: "lease_lost", lost: [held] });
    expect(await settle("r1", "acked", acked)).toMatchObject({ type: "settled" });
    expect(await lease("r4")).toEqual({ type: "empty" });
    const parked = await world().store.queues.parked({ meshId, queue: "jobs", after: 0, limit: 10 }, world().nowMs);
    expect(parked?.items).toEqual([]);

    pass(364);
    await sweepNow({ messageDays: 1, dedupeDays: 365 });
    expect(await count("queue_message")).toBe(0);
    expect(await count("queue_settlement")).toBe(0);
    expect(await count("queue_lease")).toBe(1);
    pass(2);
    expect(await sweepNow({ messageDays: 1, dedupeDays: 365 })).toEqual({ queue_leases: 1 });
  });
}

function describeForgetting(world: () => World, { sweepNow, count, pass }: Tools): void {
  const week = { dedupeRetentionMs: 7 * dayMs };

  test("an id stays until its time is over and is then free for any member, for other content too", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)), week);
    world().nowMs += 7 * dayMs - 1;
    expect(await sweepNow({ dedupeDays: 7 })).toEqual({});
    expect(await world().accept(alice, send("m1", dm(bob)))).toMatchObject({ type: "duplicate" });
    world().nowMs += 1;
    expect(await sweepNow({ dedupeDays: 7 })).toEqual({ dedupe_rows: 1 });
    expect(await world().fate(alice, send("m1", dm(bob)))).toEqual({ fate: "none" });
    expect(await world().accept(bob, send("m1", dm(alice), "other"), week)).toMatchObject({
      type: "accepted",
      historyId: 2,
    });
  });

  test("the message of a forgotten id stays readable until retention removes it, with its history row", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)), week);
    pass(7);
    await sweepNow({ dedupeDays: 7 });
    expect(await world().effects()).toEqual({ ...noEffects, message: 1, history: 1, delivery: 1 });
    const items = await world().store.deliveries.unsettled(world().meshId, bob, 0, 10);
    expect(items.map((item) => item.client_message_id)).toEqual(["m1"]);
    await world().accept(alice, send("m1", dm(bob), "again"), week);
    expect(await sweepNow({ messageDays: 5, dedupeDays: 7 })).toEqual({
      messages: 1,
      expired_deliveries: 1,
      deliveries: 1,
      history_rows: 1,
    });
    // The later message has the same client id, and its claim is its own.
    expect(await world().accept(alice, send("m1", dm(bob), "again"))).toMatchObject({
      type: "duplicate",
      historyId: 2,
      historyAvailable: true,
    });
    expect(await world().effects()).toMatchObject({ dedupe: 1, message: 1, history: 1, delivery: 1 });
  });

  test("an id that never expires is never forgotten, and a broker that keeps ids for ever forgets none", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("for-ever", dm(bob)), { dedupeRetentionMs: undefined });
    await world().accept(alice, send("week", dm(bob)), week);
    pass(300);
    expect(await sweepNow({ messageDays: 1 })).toMatchObject({ messages: 2 });
    expect(await count("client_message_dedupe")).toBe(2);
    expect(await count("message_history")).toBe(2);
    expect(await sweepNow({ messageDays: 1, dedupeDays: 7 })).toMatchObject({ dedupe_rows: 1, history_rows: 1 });
    expect(await world().accept(alice, send("for-ever", dm(bob)))).toMatchObject({
      type: "duplicate",
      historyId: 1,
      historyAvailable: false,
    });
  });

  test("a fence stays as long as an id would", async () => {
    const [alice, bob] = await world().threeMembers();
    const request = send("m1", dm(bob));
    const fence = (expiresAtMs: number | undefined) =>
      world().store.fences.fence(world().fenceRequest(alice, request), world().nowMs, expiresAtMs);
    await fence(world().nowMs + 7 * dayMs);
    world().nowMs += 7 * dayMs - 1;
    expect(await sweepNow({ dedupeDays: 7 })).toEqual({});
    expect(await world().accept(alice, request)).toMatchObject({ type: "fenced" });
    world().nowMs += 1;
    expect(await sweepNow({})).toEqual({});
    expect(await sweepNow({ dedupeDays: 7 })).toEqual({ fences: 1 });
    expect(await world().accept(alice, request)).toMatchObject({ type: "accepted" });
  });

  test("a try that slept between its look-up and its claim is not taken once its id may be forgotten (MSG-24)", async () => {
    const [alice, bob] = await world().threeMembers();
    const request = send("m1", dm(bob));
    const woken = Promise.withResolvers<void>();
    const asleep = world().accept(alice, request, { ...week, afterLookUp: () => woken.promise });
    const beside = world().accept(bob, send("m2", dm(alice)), { ...week, afterLookUp: () => woken.promise });
    expect(await world().accept(alice, request, week)).toMatchObject({ type: "accepted", historyId: 1 });
    pass(7);
    expect(await sweepNow({ dedupeDays: 7 })).toEqual({ dedupe_rows: 1 });
    const timely = world().accept(bob, send("m3", dm(alice)), week);
    woken.resolve();
    expect(await Promise.all([asleep, beside])).toEqual([{ type: "outdated" }, { type: "outdated" }]);
    expect(await timely).toMatchObject({ type: "accepted", historyId: 2 });
    expect(await world().effects()).toMatchObject({ dedupe: 1, message: 2, history: 2, delivery: 2 });
  });

  test("a retry of an id that is being forgotten gets its first answer or is new, and nothing between", async () => {
    const [alice, bob] = await world().threeMembers();
    const ids = Array.from({ length: 60 }, (_, n) => `m${n}`);
    const first = await Promise.all(ids.map((id) => world().accept(alice, send(id, dm(bob)), week)));
    pass(7);
    await sweepNow({ messageDays: 1 });
    const other = await world().openAnother();
    const sweeping = sweepNow({ messageDays: 1, dedupeDays: 7 }, other);
    const retried = await Promise.all(ids.map((id) => world().accept(alice, send(id, dm(bob)), week)));
    expect((await sweeping).dedupe_rows).toBe(60);
    for (const [index, result] of retried.entries()) {
      const before = first[index];
      if (result.type === "duplicate") {
        const historyId = before?.type === "accepted" ? before.historyId : undefined;
        expect(result).toMatchObject({ historyId, historyAvailable: false });
      } else expect(result).toMatchObject({ type: "accepted", historyId: expect.any(Number) });
    }
    const accepted = retried.filter(({ type }) => type === "accepted").length;
    expect(await world().effects()).toMatchObject({ dedupe: accepted, message: accepted, history: accepted });
  });
}

function describeTogether(world: () => World, { sweepNow, count, pass }: Tools): void {
  test("several brokers remove each thing once, and accepts go on meanwhile", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().addTopic("news", [alice, bob]);
    await Promise.all(Array.from({ length: 300 }, (_, n) => world().accept(alice, send(`old-${n}`, topic("news")))));
    pass(366);
    const stores = [world().store, await world().openAnother(), await world().openAnother()];
    const [removed, results] = await Promise.all([
      Promise.all(stores.map((store) => sweepNow({ messageDays: 1, dedupeDays: 365 }, store))),
      Promise.all(Array.from({ length: 300 }, (_, n) => world().accept(bob, send(`new-${n}`, topic("news"))))),
    ]);
    expect(results.filter(({ type }) => type !== "accepted")).toEqual([]);
    // A sweep that found others at work has left the mesh to them; what is left now is left by all.
    const rest = await sweepNow({ messageDays: 1, dedupeDays: 365 });
    const total = (kind: keyof SweepCounts) => [...removed, rest].reduce((sum, each) => sum + (each[kind] ?? 0), 0);
    expect([total("messages"), total("expired_deliveries"), total("deliveries")]).toEqual([300, 300, 300]);
    expect([total("dedupe_rows"), total("history_rows")]).toEqual([300, 300]);
    expect(await world().effects()).toEqual({ ...noEffects, dedupe: 300, message: 300, history: 300, delivery: 300 });
    expect(await count("delivery_queue", "settled_at IS NULL")).toBe(300);
  });
}

function describeStats(world: () => World, { sweepNow, pass }: Tools): void {
  test("tell the rows of each kind, how old the oldest open delivery is, and how much was accepted lately", async () => {
    const [alice, bob] = await world().threeMembers();
    const empty = await world().store.stats.ofMesh(world().meshId, world().nowMs);
    expect(empty).toMatchObject({ rows: { members: 3, dedupe_rows: 0 }, lastHistoryId: 0, acceptedLastDay: 0 });
    expect(empty.oldestUnsettledAtMs).toBeUndefined();
    await world().accept(alice, send("m1", dm(bob)));
    pass(3);
    await sweepNow({ messageDays: 1 });
    const acceptedAtMs = world().nowMs;
    await world().accept(alice, send("m2", dm(bob)));
    world().nowMs += 1_000;
    await world().accept(alice, send("m3", dm(alice)));
    while (await world().store.housekeeping.countNext());
    expect(await world().store.stats.ofMesh(world().meshId, world().nowMs)).toMatchObject({
      rows: { dedupe_rows: 3, history_rows: 3, direct_messages: 2, deliveries_unsettled: 2, deliveries_expired: 1 },
      lastHistoryId: 3,
      oldestUnsettledAtMs: acceptedAtMs,
      oldestMessageAtMs: acceptedAtMs,
      acceptedLastHour: 2,
      acceptedLastDay: 2,
    });
    expect(await world().store.stats.sizeBytes()).toBeGreaterThan(10_000);
  });
}

function describeRates(world: () => World, { sweepNow, pass }: Tools): void {
  test("of a mesh are counted in its turn, however much another has accepted", async () => {
    const other = await world().startOther("mesh-2");
    for (const each of [world(), other]) {
      const [alice, bob] = await each.threeMembers();
      // More than a step counts, in both: so it does not matter which comes first.
      await Promise.all(Array.from({ length: 1_001 }, (_, n) => each.accept(alice, send(`m${n}`, dm(bob)))));
    }
    const { countNext } = world().store.housekeeping;
    expect([await countNext(), await countNext()]).toEqual([true, true]);
    const counted = await world().query(`SELECT DISTINCT mesh_id FROM ${world().table("rate_limit_counter")}`);
    expect(counted).toHaveLength(2);
    while (await countNext());
    const [sum] = await world().query(`SELECT sum(accepted) AS n FROM ${world().table("rate_limit_counter")}`);
    expect(Number(sum?.n)).toBe(2_002);
    await other.close();
  });

  test("count each accepted message once, by member and hour, and are forgotten after a month", async () => {
    const [alice, bob] = await world().threeMembers();
    const countAll = async () => {
      const stores = [world().store, await world().openAnother()];
      await Promise.all(
        stores.map(async (store) => {
          while (await store.housekeeping.countNext());
        }),
      );
    };
    const rates = () =>
      world().query(`SELECT sender_pubkey, accepted FROM ${world().table("rate_limit_counter")}
        ORDER BY window_start, sender_pubkey`);
    await Promise.all(Array.from({ length: 5 }, (_, n) => world().accept(alice, send(`a${n}`, dm(bob)))));
    await world().accept(bob, send("b", dm(alice)));
    await world().accept(bob, send("b", dm(alice)));
    await countAll();
    world().nowMs += 3_600_000;
    await world().accept(bob, send("later", dm(alice)));
    await countAll();
    expect((await rates()).map((row) => [row.sender_pubkey, Number(row.accepted)])).toEqual([
      [alice, 5],
      [bob, 1],
      [bob, 1],
    ]);
    pass(32);
    expect(await sweepNow({})).toEqual({ rate_counters: 3 });
    expect(await rates()).toEqual([]);
  });
}
