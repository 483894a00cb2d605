// What ends with a membership on the message side, and the end of a topic.
import { describe, expect, test } from "vitest";
import { endMembership, endUnfinishedMemberships } from "../../services/end-membership.ts";
import { dm, queue, send, topic, type World } from "./world.ts";

export function describeMemberships(world: () => World): void {
  describe("a revoked member", () => describeRevoked(world));
  describe("a deleted topic", () => describeDeletedTopic(world));
}

function describeRevoked(world: () => World): void {
  const ports = () => ({ store: world().store.memberships, nowMs: () => world().nowMs });
  const outcomes = async () => {
    const rows = await world().query(
      `SELECT recipient_pubkey, outcome, settled_at FROM ${world().table("delivery_queue")}
       WHERE mesh_id = '${world().meshId}' ORDER BY history_id, recipient_pubkey`,
    );
    return rows.map((row) => [row.recipient_pubkey, row.outcome, row.settled_at && Number(row.settled_at)]);
  };
  const lease = (holder: string, leaseRequestId: string, leaseSeconds = 3_600) =>
    world().store.queues.lease(
      {
        meshId: world().meshId,
        queue: "jobs",
        holder,
        leaseRequestId,
        max: 10,
        leaseSeconds,
        leaseToken: `token-of-${holder}-${leaseRequestId}`,
      },
      world().nowMs,
    );

  test("has what it did not confirm settled as expired; what it confirmed, and what is others', stays", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob, carol]);
    await world().accept(alice, send("m1", dm(bob)));
    await world().accept(alice, send("m2", topic("news")));
    await world().store.deliveries.settle(world().meshId, bob, [1], 5_000);
    await world().revoke(bob);
    await endMembership(ports(), { meshId: world().meshId, pubkey: bob });
    expect(await outcomes()).toEqual([
      [bob, "delivered", 5_000],
      [bob, "expired", world().nowMs],
      [carol, null, null],
    ]);
    expect(await world().store.deliveries.unsettled(world().meshId, bob, 0, 10)).toEqual([]);
  });

  test("gives back at once what it holds of queues, which counts as a delivery", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().store.queues.create(world().meshId, { id: "jobs", maxDeliveries: 2, createdBy: alice }, 1);
    for (const id of ["m1", "m2", "m3"]) await world().accept(alice, send(id, queue("jobs")));
    const held = await lease(bob, "r1");
    expect(held).toMatchObject({ type: "leased", items: [{}, {}, {}] });
    await world().revoke(bob);
    await endMembership(ports(), { meshId: world().meshId, pubkey: bob });
    const next = await lease(carol, "r1");
    expect(next).toMatchObject({ items: [{ deliveries: 2 }, { deliveries: 2 }, { deliveries: 2 }] });
    // The second delivery was the last.
    await world().revoke(carol);
    await endMembership(ports(), { meshId: world().meshId, pubkey: carol });
    const query = { meshId: world().meshId, queue: "jobs", after: 0, limit: 10 };
    const parked = await world().store.queues.parked(query, world().nowMs);
    expect(parked?.items.map((item) => item.parked_at)).toEqual(Array(3).fill(world().nowMs));
  });

  test("can neither lease nor settle nor post from the moment it is revoked", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().addQueue("jobs");
    await world().accept(alice, send("m1", queue("jobs")));
    const held = await lease(bob, "r1");
    if (held.type !== "leased") throw new Error("nothing was leased");
    const ids = held.items.map((item) => item.broker_message_id);
    await world().revoke(bob);
    const settle = { meshId: world().meshId, queue: "jobs", holder: bob, leaseToken: held.leaseToken };
    const request = { ...settle, brokerMessageIds: ids, settlement: "acked" as const };
    expect(await world().store.queues.settle(request, world().nowMs)).toEqual({ type: "not_a_member" });
    expect(await lease(bob, "r1")).toEqual({ type: "not_a_member" });
    const refused = { type: "refused", code: "unauthorized" };
    expect(await world().accept(bob, send("m2", dm(alice)))).toEqual(refused);
  });

  test("whose send is past its look-up when it is revoked cannot commit it afterwards", async () => {
    const [alice, bob] = await world().threeMembers();
    const held = world().accept(bob, send("m1", dm(alice)), { afterLookUp: () => world().revoke(bob) });
    expect(await held).toEqual({ type: "refused", code: "unauthorized" });
    expect(await world().effects()).toMatchObject({ dedupe: 0, history: 0 });
  });

  test("is ended in steps of bounded size", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().addQueue("jobs");
    for (const id of ["m1", "m2", "m3"]) await world().accept(alice, send(id, dm(bob)));
    for (const id of ["q1", "q2"]) await world().accept(alice, send(id, queue("jobs")));
    await lease(bob, "r1");
    await world().revoke(bob);
    const former = { meshId: world().meshId, pubkey: bob };
    const steps: number[] = [];
    for (let ended = -1; ended !== 0; steps.push(ended)) {
      ended = await world().store.memberships.end(former, world().nowMs, 3);
    }
    expect(steps).toEqual([3, 2, 0]);
  });

  test("that a crash left half ended is found and ended later, and only such members are", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addQueue("jobs");
    await world().accept(alice, send("m1", dm(bob)));
    await world().accept(alice, send("m2", dm(carol)));
    await world().accept(alice, send("q1", queue("jobs")));
    await lease(alice, "r1");
    expect(await world().store.memberships.unfinished(10)).toEqual([]);
    await world().revoke(bob);
    await world().revoke(alice);
    const unfinished = await world().store.memberships.unfinished(10);
    expect(unfinished.map(({ pubkey }) => pubkey).toSorted()).toEqual([alice, bob].toSorted());
    expect(await world().store.memberships.unfinished(1)).toHaveLength(1);
    await endUnfinishedMemberships(ports());
    expect(await world().store.memberships.unfinished(10)).toEqual([]);
    expect(await outcomes()).toMatchObject([
      [bob, "expired", world().nowMs],
      [carol, null, null],
    ]);
    expect(await lease(carol, "r1")).toMatchObject({ type: "leased" });
  });

  test("is what it takes: a live member keeps everything, also when asked to be ended", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().accept(alice, send("m1", dm(bob)));
    expect(await world().store.memberships.end({ meshId: world().meshId, pubkey: bob }, 1, 100)).toBe(0);
    expect(await outcomes()).toEqual([[bob, null, null]]);
  });
}

function describeDeletedTopic(world: () => World): void {
  test("takes no more posts and has no subscribers; deleted again, nothing more happens", async () => {
    const [alice, bob] = await world().threeMembers();
    await world().addTopic("news", [alice, bob]);
    await world().addTopic("other", [bob]);
    for (let again = 0; again < 2; again++) await world().store.topics.delete(world().meshId, "news");
    const names = (await world().store.topics.list(world().meshId, bob, "", 10)).map(({ name }) => name);
    expect(names).toEqual(["other"]);
    const refused = { type: "refused", code: "destination_not_found" };
    expect(await world().accept(alice, send("m1", topic("news")))).toEqual(refused);
    await world().addTopic("news");
    await world().accept(alice, send("m2", topic("news")));
    expect(await world().store.deliveries.unsettled(world().meshId, bob, 0, 10)).toEqual([]);
  });

  test("leaves what was posted to those who sent and received it, and still delivers it", async () => {
    const [alice, bob, carol] = await world().threeMembers();
    await world().addTopic("news", [bob]);
    await world().accept(alice, send("m1", topic("news")));
    await world().store.topics.delete(world().meshId, "news");
    const due = await world().store.deliveries.unsettled(world().meshId, bob, 0, 10);
    expect(due.map((item) => item.client_message_id)).toEqual(["m1"]);
    const read = (reader: string) =>
      world().store.history.read({ meshId: world().meshId, reader, after: 0, limit: 10, topic: undefined });
    expect((await read(alice)).items).toHaveLength(1);
    expect((await read(bob)).items).toHaveLength(1);
    expect((await read(carol)).items).toHaveLength(0);
  });
}
