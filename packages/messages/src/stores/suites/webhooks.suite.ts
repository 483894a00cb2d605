// Webhooks as a store keeps them: what is written from history and when, who holds a delivery, how it is settled, and
// what goes away. Replays have their own suite.
import { beforeEach, describe, expect, test } from "vitest";
import { endMembership, endUnfinishedMemberships } from "../../services/end-membership.ts";
import { openDeliveriesMax } from "../webhook-rows.ts";
import { createHooks, delivered, type Hooks, parked } from "./webhook-world.ts";
import { dm, queue, send, topic, type World } from "./world.ts";

export function describeWebhooks(world: () => World): void {
  let hooks: Hooks;
  const webhooks = () => world().store.webhooks;

  beforeEach(async () => {
    hooks = await createHooks(world());
  });

  describe("creating", () => {
    test("the same again changes nothing, anything else is another webhook", async () => {
      expect(await hooks.create()).toBe("created");
      expect(await hooks.create(hooks.webhook("ci", { incarnation: "again" }))).toBe("exists");
      expect(await hooks.create(hooks.webhook("ci", { fingerprint: Buffer.alloc(32, 2) }))).toBe("different");
      const found = await webhooks().find(world().meshId, "ci");
      expect([...(found?.fingerprint ?? [])]).toEqual([...Buffer.alloc(32, 1)]);
      expect(found?.createdAtMs).toBe(world().nowMs);
      expect(await webhooks().find(world().meshId, "none")).toBeUndefined();
    });

    test("stops at the mesh's bound, and what exists is still found", async () => {
      expect(await hooks.create(hooks.webhook("a"), 2)).toBe("created");
      expect(await hooks.create(hooks.webhook("b"), 2)).toBe("created");
      expect(await hooks.create(hooks.webhook("c"), 2)).toBe("full");
      expect(await hooks.create(hooks.webhook("a"), 2)).toBe("exists");
      await webhooks().delete(world().meshId, "a", world().nowMs);
      expect(await hooks.create(hooks.webhook("c"), 2)).toBe("created");
    });

    test("is listed by id, page by page, without the secret", async () => {
      await hooks.create(hooks.webhook("b", { topics: ["alerts", "builds"] }));
      await hooks.create(hooks.webhook("a"));
      const first = await webhooks().list(world().meshId, "", 1);
      expect(first).toEqual({
        items: [
          {
            id: "a",
            url: "https://receiver.example/hook",
            topics: undefined,
            createdBy: hooks.owner,
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
      await hooks.post();
      await hooks.create();
      const first = await hooks.post("builds");
      await world().accept(hooks.member, send("d", dm(hooks.owner)));
      await world().accept(hooks.member, send("q", queue("jobs")));
      const second = await hooks.post("alerts");
      await hooks.writeAll();
      expect(await hooks.list()).toEqual([
        [first, "pending"],
        [second, "pending"],
      ]);
    });

    test("covers only the topics that are named", async () => {
      await hooks.create(hooks.webhook("ci", { topics: ["alerts"] }));
      await hooks.post("builds");
      const wanted = await hooks.post("alerts");
      await hooks.writeAll();
      expect(await hooks.list()).toEqual([[wanted, "pending"]]);
      expect((await webhooks().list(world().meshId, "", 10)).items).toMatchObject([
        { writtenUpTo: wanted, pending: 1 },
      ]);
    });

    test("happens once, whichever broker does it", async () => {
      await hooks.create();
      for (let n = 0; n < 5; n++) await hooks.post();
      const other = await world().openAnother();
      await Promise.all([hooks.writeAll(), other.webhooks.writeNext(world().nowMs), hooks.writeAll()]);
      await hooks.writeAll();
      expect(await hooks.list()).toHaveLength(5);
      expect(await webhooks().writeNext(world().nowMs)).toBe(false);
    });

    test("waits where a webhook has as many open deliveries as it may have", async () => {
      await hooks.createWithDue(3);
      // As if the rows of a long outage were there.
      const columns = "mesh_id, incarnation, history_id, broker_message_id, state, attempts, due_at";
      const values = Array.from(
        { length: openDeliveriesMax - 3 },
        (_, n) => `('mesh-1', 'of-ci', ${1_000_000 + n}, 'broker-x', 'pending', 0, ${world().nowMs})`,
      );
      await world().query(`INSERT INTO ${world().table("webhook_delivery")} (${columns}) VALUES ${values.join(", ")}`);
      const next = await hooks.post();
      expect(await webhooks().writeNext(world().nowMs)).toBe(false);
      const [one] = await hooks.claim({ slots: 1 });
      if (one === undefined) throw new Error("nothing was due");
      await hooks.settle(one, delivered);
      await hooks.writeAll();
      expect((await hooks.list("ci", "pending"))?.map(([historyId]) => historyId)).toContain(next);
    });
  });

  describe("a claim", () => {
    test("gives all it takes to try, oldest first, and counts the try", async () => {
      const [historyId] = await hooks.createWithDue(2);
      const [first, ...rest] = await hooks.claim({ slots: 1 });
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

    test("is claimed by no other broker until its lease has expired", async () => {
      await hooks.createWithDue();
      const other = await world().openAnother();
      expect(await hooks.claim()).toHaveLength(1);
      world().nowMs += 9_999;
      expect(await hooks.claim({}, other.webhooks)).toHaveLength(0);
      world().nowMs += 1;
      expect(await hooks.claim({}, other.webhooks)).toMatchObject([{ attempt: 2 }]);
    });

    test("gives each delivery to one of many brokers that ask at once", async () => {
      await hooks.createWithDue(20);
      const stores = [webhooks(), (await world().openAnother()).webhooks, (await world().openAnother()).webhooks];
      const claimed = await Promise.all(stores.map((store) => hooks.claim({ slots: 12 }, store)));
      const ids = claimed.flat().map(({ item }) => item.history_id);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.length).toBeGreaterThan(7);
    });

    test("takes of one webhook no more than its share, also when it has most of what is due", async () => {
      await hooks.create(hooks.webhook("busy"));
      for (let n = 0; n < 6; n++) await hooks.post();
      await hooks.writeAll();
      await hooks.create(hooks.webhook("calm"));
      await hooks.post();
      await hooks.writeAll();
      const first = await hooks.claim({ perWebhook: 2 });
      expect(first.map((delivery) => delivery.webhook).toSorted()).toEqual(["busy", "busy", "calm"]);
      const slotsInUse = new Map([["of-busy", 2]]);
      expect(await hooks.claim({ perWebhook: 2, slotsInUse })).toEqual([]);
    });

    test("leaves a webhook's next turn at when its next delivery is due, wherever that comes from", async () => {
      const [historyId] = await hooks.createWithDue();
      const [first] = await hooks.claim();
      if (first === undefined || historyId === undefined) throw new Error("nothing was due");
      await hooks.settle(first, hooks.later(3_000));
      world().nowMs += 1_000;
      await hooks.post();
      await hooks.writeAll();
      expect(await hooks.claim()).toHaveLength(1);
      world().nowMs += 1_999;
      expect(await hooks.claim()).toEqual([]);
      world().nowMs += 1;
      const [second] = await hooks.claim();
      expect(second).toMatchObject({ attempt: 2, failing: true });
      if (second === undefined) throw new Error("nothing was due");
      await hooks.settle(second, parked);
      await webhooks().replay(world().meshId, "ci", { historyIds: [historyId] }, world().nowMs);
      expect(await hooks.claim()).toMatchObject([{ attempt: 1, failing: true }]);
    });

    test("finds messages that retention removed expired, tries none of them, and needs no slots for them", async () => {
      const ids = await hooks.createWithDue(3);
      await world().query(`DELETE FROM ${world().table("topic_message")}`);
      const kept = await hooks.post();
      await hooks.writeAll();
      const claimed = await webhooks().claim(hooks.terms({ slots: 1 }), world().nowMs);
      expect(claimed).toMatchObject({ claimed: [{ item: { history_id: kept } }], expired: 3 });
      expect(await hooks.list()).toEqual([...ids.map((historyId) => [historyId, "expired"]), [kept, "pending"]]);
    });

    test("passes over webhooks whose creator is no owner any more", async () => {
      await hooks.createWithDue();
      await hooks.setRole("member");
      expect(await hooks.claim()).toEqual([]);
      await hooks.post();
      expect(await webhooks().writeNext(world().nowMs)).toBe(false);
    });
  });

  describe("settling", () => {
    test("a success is for good, from whichever try it comes", async () => {
      const [historyId] = await hooks.createWithDue();
      const [first] = await hooks.claim();
      world().nowMs += 10_000;
      const [second] = await hooks.claim();
      if (first === undefined || second === undefined) throw new Error("nothing was due");
      await hooks.settle(first, delivered);
      await hooks.settle(second, parked);
      expect(await hooks.list()).toEqual([[historyId, "delivered"]]);
      world().nowMs += 1_000_000;
      expect(await hooks.claim()).toEqual([]);
    });

    test("a failure counts for its own try only, and sets when the next one is due", async () => {
      await hooks.createWithDue();
      const [first] = await hooks.claim();
      world().nowMs += 10_000;
      const [second] = await hooks.claim();
      if (first === undefined || second === undefined) throw new Error("nothing was due");
      await hooks.settle(first, parked);
      expect(await hooks.list("ci", "parked")).toEqual([]);
      await hooks.settle(second, hooks.later(3_000));
      world().nowMs += 2_999;
      expect(await hooks.claim()).toEqual([]);
      world().nowMs += 1;
      expect(await hooks.claim()).toMatchObject([{ attempt: 3 }]);
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
      const [historyId] = await hooks.createWithDue();
      for (const delivery of await hooks.claim()) await hooks.settle(delivery, parked);
      world().nowMs += 1_000_000;
      expect(await hooks.claim()).toEqual([]);
      expect(await hooks.list("ci", "parked")).toEqual([[historyId, "parked"]]);
      expect((await webhooks().list(world().meshId, "", 10)).items).toMatchObject([{ pending: 0, parked: 1 }]);
      expect(await webhooks().counts()).toEqual({ pending: 0, parked: 1 });
    });
  });

  describe("the end of a webhook", () => {
    test("a deleted one delivers nothing more, and its id is free for another", async () => {
      await hooks.createWithDue();
      for (let again = 0; again < 2; again++) await webhooks().delete(world().meshId, "ci", world().nowMs);
      expect(await hooks.claim()).toEqual([]);
      expect(await hooks.list()).toBeUndefined();
      expect(await hooks.create(hooks.webhook("ci", { incarnation: "second" }))).toBe("created");
      expect(await hooks.list()).toEqual([]);
      const [row] = await world().query(`SELECT secret FROM ${world().table("webhook")} WHERE incarnation = 'of-ci'`);
      expect(row?.secret).toBe("");
    });

    test("what is left of it goes in bounded steps, and no other's", async () => {
      await hooks.create(hooks.webhook("gone"));
      await hooks.create(hooks.webhook("kept"));
      for (let n = 0; n < 5; n++) await hooks.post();
      await hooks.writeAll();
      await webhooks().delete(world().meshId, "gone", world().nowMs);
      expect(await webhooks().prune(0, 3)).toBe(3);
      expect(await webhooks().prune(0, 3)).toBe(3);
      expect(await webhooks().prune(0, 3)).toBe(0);
      const left = await world().query(`SELECT DISTINCT incarnation FROM ${world().table("webhook_delivery")}`);
      expect(left.map((row) => row.incarnation)).toEqual(["of-kept"]);
    });

    test("settled deliveries are forgotten after their time, parked ones never", async () => {
      await hooks.createWithDue(3);
      const [one, two, three] = await hooks.claim();
      if (one === undefined || two === undefined || three === undefined) throw new Error("nothing was due");
      await hooks.settle(one, delivered);
      await hooks.settle(two, parked);
      world().nowMs += 1_000;
      await hooks.settle(three, delivered);
      expect(await webhooks().prune(world().nowMs, 100)).toBe(1);
      expect(await hooks.list()).toEqual([
        [two.item.history_id, "parked"],
        [three.item.history_id, "delivered"],
      ]);
    });

    test("comes with the end of its creator's membership", async () => {
      await hooks.createWithDue();
      await world().revoke(hooks.owner);
      expect(await hooks.claim()).toEqual([]);
      const { memberships } = world().store;
      const former = { meshId: world().meshId, pubkey: hooks.owner };
      expect(await memberships.unfinished(10)).toEqual([former]);
      await endMembership({ store: memberships, nowMs: () => world().nowMs }, former);
      expect(await memberships.unfinished(10)).toEqual([]);
      expect(await webhooks().find(world().meshId, "ci")).toBeUndefined();
    });

    test("comes with the end of its creator's role, also after a crash, and a new role brings nothing back", async () => {
      await hooks.createWithDue();
      const ports = { store: world().store.memberships, nowMs: () => world().nowMs };
      const creator = { meshId: world().meshId, pubkey: hooks.owner };
      await endMembership(ports, creator);
      expect(await ports.store.unfinished(10)).toEqual([]);
      expect(await webhooks().find(world().meshId, "ci")).toBeDefined();
      await world().accept(hooks.member, send("d", dm(hooks.owner)));
      await hooks.setRole("member");
      expect(await ports.store.unfinished(10)).toEqual([creator]);
      await endUnfinishedMemberships(ports);
      expect(await ports.store.unfinished(10)).toEqual([]);
      await hooks.setRole("owner");
      await hooks.post();
      expect(await webhooks().writeNext(world().nowMs)).toBe(false);
      expect(await hooks.claim()).toEqual([]);
      expect(await hooks.create(hooks.webhook("ci", { incarnation: "second" }))).toBe("created");
      // A plain member is still one: what it has coming stays.
      expect(await world().store.deliveries.unsettled(world().meshId, hooks.owner, 0, 10)).toHaveLength(1);
    });
  });

  test("webhooks of one mesh know nothing of another's", async () => {
    await hooks.create();
    const other = await world().startOther("mesh-2");
    const sender = await other.addMember();
    await other.addTopic("builds");
    await other.accept(sender, send("x", topic("builds")));
    await hooks.writeAll();
    expect(await hooks.list()).toEqual([]);
    expect(await other.store.webhooks.find("mesh-2", "ci")).toBeUndefined();
    await other.close();
  });
}
