// Replays of webhooks' deliveries: what is made due again, what is brought forward, and what is left alone.
import { beforeEach, expect, test } from "vitest";
import type { WebhookStore } from "../../ports/webhooks.ts";
import { createHooks, delivered, type Hooks, parked } from "./webhook-world.ts";
import type { World } from "./world.ts";

export function describeWebhookReplays(world: () => World): void {
  let hooks: Hooks;
  const webhooks = () => world().store.webhooks;

  beforeEach(async () => {
    hooks = await createHooks(world());
  });

  test("of what is parked puts it back with all tries before it", async () => {
    await hooks.createWithDue(3);
    for (const delivery of await hooks.claim()) await hooks.settle(delivery, parked);
    const { meshId } = world();
    expect(await webhooks().replay(meshId, "ci", { limit: 2 }, world().nowMs)).toBe(2);
    expect(await webhooks().replay(meshId, "ci", { limit: 2 }, world().nowMs)).toBe(1);
    expect(await webhooks().replay(meshId, "ci", { limit: 2 }, world().nowMs)).toBe(0);
    const page = await hooks.items("ci", "pending");
    expect(page).toMatchObject([{ attempts: 0 }, { attempts: 0 }, { attempts: 0 }]);
    expect(await hooks.claim()).toMatchObject([{ attempt: 1 }]);
    expect(await webhooks().replay(meshId, "none", { limit: 2 }, world().nowMs)).toBeUndefined();
  });

  test("of named deliveries takes those of any end, and leaves alone what is due or claimed by a broker", async () => {
    const ids = await hooks.createWithDue(4);
    const [one, two, three] = await hooks.claim({ slots: 3 });
    if (one === undefined || two === undefined || three === undefined) throw new Error("nothing was due");
    await hooks.settle(one, delivered);
    await hooks.settle(two, parked);
    const which = { historyIds: [...ids, 999] };
    expect(await webhooks().replay(world().meshId, "ci", which, world().nowMs)).toBe(2);
    expect(await hooks.list("ci", "pending")).toHaveLength(4);
    const page = await hooks.items("ci", "pending");
    expect(page?.map((item) => item.attempts)).toEqual([0, 0, 1, 0]);
  });

  test("brings forward what waits for its next try, with all tries before it, unless a broker tries it", async () => {
    const ids = await hooks.createWithDue(2);
    for (const delivery of await hooks.claim()) await hooks.settle(delivery, hooks.later(3_600_000));
    const replay = (which: Parameters<WebhookStore["replay"]>[2]) =>
      webhooks().replay(world().meshId, "ci", which, world().nowMs);
    expect(await hooks.claim()).toEqual([]);
    expect(await replay({ historyIds: ids.slice(0, 1) })).toBe(1);
    expect(await replay({ historyIds: ids.slice(0, 1) })).toBe(0);
    const [first] = await hooks.claim();
    expect(first).toMatchObject({ attempt: 1, item: { history_id: ids[0] } });
    expect(await replay({ historyIds: ids.slice(0, 1) })).toBe(0);
    // Without names: what is parked, and what waits.
    expect(await replay({ limit: 10 })).toBe(1);
    expect(await replay({ limit: 10 })).toBe(0);
    if (first === undefined) throw new Error("nothing was due");
    await hooks.settle(first, hooks.later(3_600_000));
    expect(await replay({ limit: 10 })).toBe(1);
  });

  test("from a history id brings forward what waits, and leaves alone what a broker tries", async () => {
    const [waiting, tried] = await hooks.createWithDue(2);
    const [first] = await hooks.claim({ slots: 1 });
    const [second] = await hooks.claim({ slots: 1 });
    if (first === undefined || second === undefined) throw new Error("nothing was due");
    await hooks.settle(first, hooks.later(3_600_000));
    await webhooks().replayFrom(world().meshId, "ci", 1);
    await hooks.writeAll();
    const page = await hooks.items();
    expect(page).toMatchObject([
      { historyId: waiting, attempts: 0, dueAtMs: world().nowMs },
      { historyId: tried, attempts: 1 },
    ]);
    expect(await hooks.claim()).toMatchObject([{ attempt: 1, item: { history_id: waiting } }]);
  });

  test("from a history id delivers everything after it again, also what came before the webhook", async () => {
    const before = await hooks.post();
    await hooks.create();
    const after = await hooks.post();
    await hooks.writeAll();
    for (const delivery of await hooks.claim()) await hooks.settle(delivery, delivered);
    expect(await webhooks().replayFrom(world().meshId, "ci", before)).toBe(true);
    expect(await webhooks().replayFrom(world().meshId, "none", before)).toBe(false);
    await hooks.writeAll();
    expect(await hooks.list()).toEqual([
      [before, "pending"],
      [after, "pending"],
    ]);
    expect(await hooks.claim()).toMatchObject([{ attempt: 1 }, { attempt: 1 }]);
  });

  test("from a history id passes over messages that retention has removed", async () => {
    const [first, second] = await hooks.createWithDue(2);
    for (const delivery of await hooks.claim()) await hooks.settle(delivery, delivered);
    await world().query(`DELETE FROM ${world().table("topic_message")}`);
    const kept = await hooks.post();
    await webhooks().replayFrom(world().meshId, "ci", 1);
    await hooks.writeAll();
    expect(await hooks.list()).toEqual([
      [first, "delivered"],
      [second, "delivered"],
      [kept, "pending"],
    ]);
  });

  test("from a history id that is still to come changes nothing", async () => {
    await hooks.create();
    const historyId = await hooks.post();
    await webhooks().replayFrom(world().meshId, "ci", historyId + 100);
    await hooks.writeAll();
    expect(await hooks.list()).toEqual([[historyId, "pending"]]);
  });
}
