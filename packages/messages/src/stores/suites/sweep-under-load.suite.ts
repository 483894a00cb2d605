// A large sweep while sends go on: none is refused or fails, and in the end everything fits together.
import { expect, test } from "vitest";
import { checkAllOrphans } from "../../services/check-orphans.ts";
import { sweepAll } from "../../services/sweep.ts";
import { dm, queue, send, topic, type World } from "./world.ts";

const dayMs = 86_400_000;
const oldMessages = 6_000;
const sendersAtOnce = 64;

export function describeSweepUnderLoad(world: () => World): void {
  test("accepts, acks and leases go on through a large sweep by several brokers, and none is refused", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const { meshId } = world();
    await world().addTopic("news", [alice, bob, carol]);
    await world().addQueue("jobs");
    const destinations = [dm(bob), topic("news"), queue("jobs")];
    const to = (n: number) => destinations[n % destinations.length] ?? dm(bob);
    for (let from = 0; from < oldMessages; from += 500) {
      const batch = Array.from({ length: 500 }, (_, n) => world().accept(alice, send(`old-${from + n}`, to(from + n))));
      expect((await Promise.all(batch)).filter(({ type }) => type !== "accepted")).toEqual([]);
    }
    world().nowMs += 366 * dayMs;

    let sweeping = true;
    const refused: unknown[] = [];
    let accepted = 0;
    const sendOn = async (sender: number) => {
      for (let n = 0; sweeping; n++) {
        const result = await world().accept(alice, send(`new-${sender}-${n}`, to(n)));
        if (result.type === "accepted") accepted += 1;
        else refused.push(result);
      }
    };
    const receiveOn = async (recipient: string) => {
      while (sweeping) {
        const items = await world().store.deliveries.unsettled(meshId, recipient, 0, 32);
        const historyIds = items.map((item) => item.history_id);
        if (historyIds.length > 0) await world().store.deliveries.settle(meshId, recipient, historyIds, world().nowMs);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const consumeOn = async () => {
      for (let n = 0; sweeping; n++) {
        const lease = { meshId, queue: "jobs", holder: bob, max: 10, leaseSeconds: 60 };
        const leased = await world().store.queues.lease(
          { ...lease, leaseRequestId: `r${n}`, leaseToken: `t${n}` },
          world().nowMs,
        );
        const brokerMessageIds = leased.type === "leased" ? leased.items.map((item) => item.broker_message_id) : [];
        const settling = { ...lease, leaseToken: `t${n}`, brokerMessageIds, settlement: "acked" } as const;
        await world().store.queues.settle(settling, world().nowMs);
        await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const others = [
      ...Array.from({ length: sendersAtOnce }, (_, sender) => sendOn(sender)),
      receiveOn(bob),
      receiveOn(carol),
      consumeOn(),
    ];
    const retention = { nowMs: () => world().nowMs, messageRetentionMs: dayMs, dedupeRetentionMs: 365 * dayMs };
    const brokers = [world().store, await world().openAnother(), await world().openAnother()];
    try {
      await Promise.all(brokers.map((store) => sweepAll({ ...retention, store })));
      // A sweep that met another broker at work has left the mesh to it.
      await sweepAll({ ...retention, store: world().store });
    } finally {
      sweeping = false;
      await Promise.all(others);
    }
    expect(refused).toEqual([]);
    expect(accepted).toBeGreaterThan(100);
    const effects = await world().effects();
    expect(effects).toMatchObject({ dedupe: accepted, message: accepted, history: accepted });
    const report = await checkAllOrphans({ store: world().store, nowMs: () => world().nowMs });
    expect(report.checks.filter(({ found }) => found > 0)).toEqual([]);
  });
}
