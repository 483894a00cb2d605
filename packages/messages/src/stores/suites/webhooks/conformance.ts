// Webhooks as a store keeps them: what is written from history and when, who holds a delivery, how it is settled and
// replayed, and what goes away.
import { beforeEach, describe, expect, test } from "vitest";
import type { JudgedTry } from "../../../core/webhook-delivery.ts";
import type { ClaimedDelivery, ClaimTerms, NewWebhook, WebhookStore } from "../../../ports/webhooks.ts";
import { endMembership, endUnfinishedMemberships } from "../../../services/end-membership.ts";
import { dm, queue, send, topic, type World } from "../../conformance-world.ts";
import { openDeliveriesMax } from "../../webhook-rows.ts";

export function describeWebhooks(world: () => World): void {
  let owner: string;
  let member: string;
  let sends: number;
  const webhooks = () => world().store.webhooks;

  beforeEach(async () => {
    [owner, member] = await world().threeMembers();
    sends = 0;
    await setRole("owner");
    await world().addTopic("builds");
    await world().addTopic("alerts");
  });

  const setRole = (role: "owner" | "member") =>
    world().query(`UPDATE ${world().table("member")} SET role = '${role}' WHERE pubkey = '${owner}'`);
  const webhook = (id = "ci", overrides: Partial<NewWebhook> = {}): NewWebhook => ({
    meshId: world().meshId,
    id,
    incarnation: `of-${id}`,
    url: "https://receiver.example/hook",
    topics: undefined,
    secret: "s".repeat(16),
    fingerprint: Buffer.alloc(32, 1),
    createdBy: owner,
    ...overrides,
  });
  const create = (given = webhook(), max = 100) => webhooks().create(given, world().nowMs, max);
  const post = async (name = "builds") => {
    sends += 1;
    const result = await world().accept(member, send(`m${sends}`, topic(name), `body ${sends}`));
    if (result.type !== "accepted") throw new Error(`not accepted: ${result.type}`);
    return result.historyId;
  };
  const writeAll = async () => {
    while (await webhooks().writeNext(world().nowMs));
  };
  /** The webhook with so many deliveries that are due; their places in history. */
  const createWithDue = async (count = 1) => {
    await create();
    const ids: number[] = [];
    for (let n = 0; n < count; n++) ids.push(await post());
    await writeAll();
    return ids;
  };
  const terms = (overrides: Partial<ClaimTerms> = {}): ClaimTerms => ({
    hands: 100,
    perWebhook: 100,
    inHand: new Map(),
    failingInHand: 0,
    leaseMs: 10_000,
    ...overrides,
  });
  const claim = async (overrides: Partial<ClaimTerms> = {}, store: WebhookStore = webhooks()) =>
    (await store.claim(terms(overrides), world().nowMs)).claimed;
  const settle = (delivery: ClaimedDelivery, judged: JudgedTry) =>
    webhooks().settle({ ...delivery, historyId: delivery.item.history_id }, judged, world().nowMs);
  const list = async (id = "ci", state?: "pending" | "delivered" | "parked" | "expired") => {
    const page = await webhooks().deliveries({ meshId: world().meshId, id, state, after: 0, limit: 1000 });
    return page?.items.map((item) => [item.historyId, item.state]);
  };
  const delivered: JudgedTry = { state: "delivered", status: 200 };
  const parked: JudgedTry = { state: "parked", status: 500, error: "answered 500" };
  const later = (ms: number): JudgedTry => ({
    state: "pending",
    dueAtMs: world().nowMs + ms,
    status: undefined,
    error: "ECONNREFUSED",
    failed: true,
  });

  describe("creating", () => {
    test("the same again changes nothing, anything else is another webhook", async () => {
      expect(await create()).toBe("created");
      expect(await create(webhook("ci", { incarnation: "again" }))).toBe("exists");
      expect(await create(webhook("ci", { fingerprint: Buffer.alloc(32, 2) }))).toBe("different");
      const found = await webhooks().find(world().meshId, "ci");
      expect([...(found?.fingerprint ?? [])]).toEqual([...Buffer.alloc(32, 1)]);
      expect(found?.createdAtMs).toBe(world().nowMs);
      expect(await webhooks().find(world().meshId, "none")).toBeUndefined();
    });

    test("stops at the mesh's bound, and what exists is still found", async () => {
      expect(await create(webhook("a"), 2)).toBe("created");
      expect(await create(webhook("b"), 2)).toBe("created");
      expect(await create(webhook("c"), 2)).toBe("full");
      expect(await create(webhook("a"), 2)).toBe("exists");
      await webhooks().delete(world().meshId, "a", world().nowMs);
      expect(await create(webhook("c"), 2)).toBe("created");
    });

    test("is listed by id, page by page, without the secret", async () => {
      await create(webhook("b", { topics: ["alerts", "builds"] }));
      await create(webhook("a"));
      const first = await webhooks().list(world().meshId, "", 1);
      expect(first).toEqual({
        items: [
          {
            id: "a",
            url: "https://receiver.example/hook",
            topics: undefined,
            createdBy: owner,
            createdAtMs: world().nowMs,
            writtenUpTo: 0,
            pending: 0,
            parked: 0,
          },
        ],
        nextCursor: "a",
      });
      const second = await webhooks().list(world().meshId, "a", 10);
      expect(second.items).toMatchObject([{ id: "b", topics: ["alerts", "builds"] }]);
      expect(second.nextCursor).toBeUndefined();
    });
  });

  describe("writing deliveries", () => {
    test("covers every topic message from the creation on, and neither direct messages nor queues", async () => {
      await world().addQueue("jobs");
      await post();
      await create();
      const first = await post("builds");
      await world().accept(member, send("d", dm(owner)));
      await world().accept(member, send("q", queue("jobs")));
      const second = await post("alerts");
      await writeAll();
      expect(await list()).toEqual([
        [first, "pending"],
        [second, "pending"],
      ]);
    });

    test("covers only the topics that are named", async () => {
      await create(webhook("ci", { topics: ["alerts"] }));
      await post("builds");
      const wanted = await post("alerts");
      await writeAll();
      expect(await list()).toEqual([[wanted, "pending"]]);
      expect((await webhooks().list(world().meshId, "", 10)).items).toMatchObject([
        { writtenUpTo: wanted, pending: 1 },
      ]);
    });

    test("happens once, whoever does it", async () => {
      await create();
      for (let n = 0; n < 5; n++) await post();
      const other = await world().openAnother();
      await Promise.all([writeAll(), other.webhooks.writeNext(world().nowMs), writeAll()]);
      await writeAll();
      expect(await list()).toHaveLength(5);
      expect(await webhooks().writeNext(world().nowMs)).toBe(false);
    });

    test("waits where a webhook has as many open deliveries as it may have", async () => {
      await createWithDue(3);
      // As if the rows of a long outage were there.
      const columns = "mesh_id, incarnation, history_id, broker_message_id, state, attempts, due_at";
      const values = Array.from(
        { length: openDeliveriesMax - 3 },
        (_, n) => `('mesh-1', 'of-ci', ${1_000_000 + n}, 'broker-x', 'pending', 0, ${world().nowMs})`,
      );
      await world().query(`INSERT INTO ${world().table("webhook_delivery")} (${columns}) VALUES ${values.join(", ")}`);
      const next = await post();
      expect(await webhooks().writeNext(world().nowMs)).toBe(false);
      const [one] = await claim({ hands: 1 });
      if (one === undefined) throw new Error("nothing was due");
      await settle(one, delivered);
      await writeAll();
      expect((await list("ci", "pending"))?.map(([historyId]) => historyId)).toContain(next);
    });
  });

  describe("a claim", () => {
    test("gives all it takes to try, oldest first, and counts the try", async () => {
      const [historyId] = await createWithDue(2);
      const [first, ...rest] = await claim({ hands: 1 });
      expect(rest).toEqual([]);
      expect(first).toMatchObject({
        meshId: world().meshId,
        meshName: `name-of-${world().meshId}`,
        webhook: "ci",
        url: "https://receiver.example/hook",
        secret: "s".repeat(16),
        attempt: 1,
        item: { history_id: historyId, body: "body 1", destination: { kind: "topic", ref: "builds" } },
      });
    });

    test("is nobody else's until its lease has run out", async () => {
      await createWithDue();
      const other = await world().openAnother();
      expect(await claim()).toHaveLength(1);
      world().nowMs += 9_999;
      expect(await claim({}, other.webhooks)).toHaveLength(0);
      world().nowMs += 1;
      expect(await claim({}, other.webhooks)).toMatchObject([{ attempt: 2 }]);
    });

    test("gives each delivery to one of many brokers that ask at once", async () => {
      await createWithDue(20);
      const stores = [webhooks(), (await world().openAnother()).webhooks, (await world().openAnother()).webhooks];
      const claimed = await Promise.all(stores.map((store) => claim({ hands: 12 }, store)));
      const ids = claimed.flat().map(({ item }) => item.history_id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.length).toBeGreaterThan(7);
    });

    test("takes of one webhook no more than its share, also when it has most of what is due", async () => {
      await create(webhook("busy"));
      for (let n = 0; n < 6; n++) await post();
      await writeAll();
      await create(webhook("calm"));
      await post();
      await writeAll();
      const first = await claim({ perWebhook: 2 });
      expect(first.map((delivery) => delivery.webhook).toSorted()).toEqual(["busy", "busy", "calm"]);
      const inHand = new Map([["of-busy", 2]]);
      expect(await claim({ perWebhook: 2, inHand })).toEqual([]);
    });

    test("leaves a webhook's next turn at when its next delivery is due, wherever that comes from", async () => {
      const [historyId] = await createWithDue();
      const [first] = await claim();
      if (first === undefined || historyId === undefined) throw new Error("nothing was due");
      await settle(first, later(3_000));
      world().nowMs += 1_000;
      await post();
      await writeAll();
      expect(await claim()).toHaveLength(1);
      world().nowMs += 1_999;
      expect(await claim()).toEqual([]);
      world().nowMs += 1;
      const [second] = await claim();
      expect(second).toMatchObject({ attempt: 2, failing: true });
      if (second === undefined) throw new Error("nothing was due");
      await settle(second, parked);
      await webhooks().replay(world().meshId, "ci", { historyIds: [historyId] }, world().nowMs);
      expect(await claim()).toMatchObject([{ attempt: 1, failing: true }]);
    });

    test("finds messages that retention removed expired, tries none of them, and needs no hands for them", async () => {
      const ids = await createWithDue(3);
      await world().query(`DELETE FROM ${world().table("topic_message")}`);
      const kept = await post();
      await writeAll();
      const claimed = await webhooks().claim(terms({ hands: 1 }), world().nowMs);
      expect(claimed).toMatchObject({ claimed: [{ item: { history_id: kept } }], expired: 3 });
      expect(await list()).toEqual([...ids.map((historyId) => [historyId, "expired"]), [kept, "pending"]]);
    });

    test("passes over webhooks whose creator is no owner any more", async () => {
      await createWithDue();
      await setRole("member");
      expect(await claim()).toEqual([]);
      await post();
      expect(await webhooks().writeNext(world().nowMs)).toBe(false);
    });
  });

  describe("settling", () => {
    test("a success is for good, from whichever try it comes", async () => {
      const [historyId] = await createWithDue();
      const [first] = await claim();
      world().nowMs += 10_000;
      const [second] = await claim();
      if (first === undefined || second === undefined) throw new Error("nothing was due");
      await settle(first, delivered);
      await settle(second, parked);
      expect(await list()).toEqual([[historyId, "delivered"]]);
      world().nowMs += 1_000_000;
      expect(await claim()).toEqual([]);
    });

    test("a failure counts for its own try only, and sets when the next one is due", async () => {
      await createWithDue();
      const [first] = await claim();
      world().nowMs += 10_000;
      const [second] = await claim();
      if (first === undefined || second === undefined) throw new Error("nothing was due");
      await settle(first, parked);
      expect(await list("ci", "parked")).toEqual([]);
      await settle(second, later(3_000));
      world().nowMs += 2_999;
      expect(await claim()).toEqual([]);
      world().nowMs += 1;
      expect(await claim()).toMatchObject([{ attempt: 3 }]);
      const page = await webhooks().deliveries({
        meshId: world().meshId,
        id: "ci",
        state: undefined,
        after: 0,
        limit: 1,
      });
      expect(page?.items).toMatchObject([{ attempts: 3, lastError: "ECONNREFUSED", lastAttemptAtMs: world().nowMs }]);
    });

    test("what is parked is listed and counted, and tried no more", async () => {
      const [historyId] = await createWithDue();
      for (const delivery of await claim()) await settle(delivery, parked);
      world().nowMs += 1_000_000;
      expect(await claim()).toEqual([]);
      expect(await list("ci", "parked")).toEqual([[historyId, "parked"]]);
      expect((await webhooks().list(world().meshId, "", 10)).items).toMatchObject([{ pending: 0, parked: 1 }]);
      expect(await webhooks().counts()).toEqual({ pending: 0, parked: 1 });
    });
  });

  describe("a replay", () => {
    test("of what is parked puts it back with all tries before it", async () => {
      await createWithDue(3);
      for (const delivery of await claim()) await settle(delivery, parked);
      const { meshId } = world();
      expect(await webhooks().replay(meshId, "ci", { parkedLimit: 2 }, world().nowMs)).toBe(2);
      expect(await webhooks().replay(meshId, "ci", { parkedLimit: 2 }, world().nowMs)).toBe(1);
      expect(await webhooks().replay(meshId, "ci", { parkedLimit: 2 }, world().nowMs)).toBe(0);
      const page = await webhooks().deliveries({ meshId, id: "ci", state: "pending", after: 0, limit: 10 });
      expect(page?.items).toMatchObject([{ attempts: 0 }, { attempts: 0 }, { attempts: 0 }]);
      expect(await claim()).toMatchObject([{ attempt: 1 }]);
      expect(await webhooks().replay(meshId, "none", { parkedLimit: 2 }, world().nowMs)).toBeUndefined();
    });

    test("of named deliveries takes those of any end, and leaves open ones alone", async () => {
      const ids = await createWithDue(3);
      const [one, two] = await claim({ hands: 2 });
      if (one === undefined || two === undefined) throw new Error("nothing was due");
      await settle(one, delivered);
      await settle(two, parked);
      const which = { historyIds: [...ids, 999] };
      expect(await webhooks().replay(world().meshId, "ci", which, world().nowMs)).toBe(2);
      expect(await list("ci", "pending")).toHaveLength(3);
    });

    test("from a history id delivers everything after it again, also what came before the webhook", async () => {
      const before = await post();
      await create();
      const after = await post();
      await writeAll();
      for (const delivery of await claim()) await settle(delivery, delivered);
      expect(await webhooks().replayFrom(world().meshId, "ci", before)).toBe(true);
      expect(await webhooks().replayFrom(world().meshId, "none", before)).toBe(false);
      await writeAll();
      expect(await list()).toEqual([
        [before, "pending"],
        [after, "pending"],
      ]);
      expect(await claim()).toMatchObject([{ attempt: 1 }, { attempt: 1 }]);
    });

    test("from a history id passes over messages that retention has removed", async () => {
      const [first, second] = await createWithDue(2);
      for (const delivery of await claim()) await settle(delivery, delivered);
      await world().query(`DELETE FROM ${world().table("topic_message")}`);
      const kept = await post();
      await webhooks().replayFrom(world().meshId, "ci", 1);
      await writeAll();
      expect(await list()).toEqual([
        [first, "delivered"],
        [second, "delivered"],
        [kept, "pending"],
      ]);
    });

    test("from a history id that is still to come changes nothing", async () => {
      await create();
      const historyId = await post();
      await webhooks().replayFrom(world().meshId, "ci", historyId + 100);
      await writeAll();
      expect(await list()).toEqual([[historyId, "pending"]]);
    });
  });

  describe("the end of a webhook", () => {
    test("a deleted one delivers nothing more, and its id is free for another", async () => {
      await createWithDue();
      for (let again = 0; again < 2; again++) await webhooks().delete(world().meshId, "ci", world().nowMs);
      expect(await claim()).toEqual([]);
      expect(await list()).toBeUndefined();
      expect(await create(webhook("ci", { incarnation: "second" }))).toBe("created");
      expect(await list()).toEqual([]);
      const [row] = await world().query(`SELECT secret FROM ${world().table("webhook")} WHERE incarnation = 'of-ci'`);
      expect(row?.secret).toBe("");
    });

    test("what is left of it goes in bounded steps, and no other's", async () => {
      await create(webhook("gone"));
      await create(webhook("kept"));
      for (let n = 0; n < 5; n++) await post();
      await writeAll();
      await webhooks().delete(world().meshId, "gone", world().nowMs);
      expect(await webhooks().prune(0, 3)).toBe(3);
      expect(await webhooks().prune(0, 3)).toBe(3);
      expect(await webhooks().prune(0, 3)).toBe(0);
      const left = await world().query(`SELECT DISTINCT incarnation FROM ${world().table("webhook_delivery")}`);
      expect(left.map((row) => row.incarnation)).toEqual(["of-kept"]);
    });

    test("settled deliveries are forgotten after their time, parked ones never", async () => {
      await createWithDue(3);
      const [one, two, three] = await claim();
      if (one === undefined || two === undefined || three === undefined) throw new Error("nothing was due");
      await settle(one, delivered);
      await settle(two, parked);
      world().nowMs += 1_000;
      await settle(three, delivered);
      expect(await webhooks().prune(world().nowMs, 100)).toBe(1);
      expect(await list()).toEqual([
        [two.item.history_id, "parked"],
        [three.item.history_id, "delivered"],
      ]);
    });

    test("comes with the end of its creator's membership", async () => {
      await createWithDue();
      await world().revoke(owner);
      expect(await claim()).toEqual([]);
      const { memberships } = world().store;
      const former = { meshId: world().meshId, pubkey: owner };
      expect(await memberships.unfinished(10)).toEqual([former]);
      await endMembership({ store: memberships, nowMs: () => world().nowMs }, former);
      expect(await memberships.unfinished(10)).toEqual([]);
      expect(await webhooks().find(world().meshId, "ci")).toBeUndefined();
    });

    test("comes with the end of its creator's role, also after a crash, and a new role brings nothing back", async () => {
      await createWithDue();
      const ports = { store: world().store.memberships, nowMs: () => world().nowMs };
      const creator = { meshId: world().meshId, pubkey: owner };
      await endMembership(ports, creator);
      expect(await ports.store.unfinished(10)).toEqual([]);
      expect(await webhooks().find(world().meshId, "ci")).toBeDefined();
      await world().accept(member, send("d", dm(owner)));
      await setRole("member");
      expect(await ports.store.unfinished(10)).toEqual([creator]);
      await endUnfinishedMemberships(ports);
      expect(await ports.store.unfinished(10)).toEqual([]);
      await setRole("owner");
      await post();
      expect(await webhooks().writeNext(world().nowMs)).toBe(false);
      expect(await claim()).toEqual([]);
      expect(await create(webhook("ci", { incarnation: "second" }))).toBe("created");
      // A plain member is still one: what it has coming stays.
      expect(await world().store.deliveries.unsettled(world().meshId, owner, 0, 10)).toHaveLength(1);
    });
  });

  test("webhooks of one mesh know nothing of another's", async () => {
    await create();
    const other = await world().startOther("mesh-2");
    const sender = await other.addMember();
    await other.addTopic("builds");
    await other.accept(sender, send("x", topic("builds")));
    await writeAll();
    expect(await list()).toEqual([]);
    expect(await other.store.webhooks.find("mesh-2", "ci")).toBeUndefined();
    await other.close();
  });
}
