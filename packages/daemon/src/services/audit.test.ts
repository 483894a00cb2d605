// The audit over real stores and a scripted broker: what moves while it looks is not named, what is gone is, and a
// broker that goes away ends it early.
import type { AuditReport } from "@claudemesh/client/daemon";
import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";
import { generateMemberKeys } from "@claudemesh/client/keys";
import { describe, expect, it } from "vitest";
import type { InboxArrival } from "../ports.ts";
import { createSqliteAuditReading } from "../stores/sqlite/audit-reading.ts";
import { openRequeueWorld } from "../testing/requeue-world.ts";
import { createAudit } from "./audit.ts";

const own = "aa".repeat(32);
const bob = generateMemberKeys().ed25519.public_key;
const brokerIdOf = (historyId: number) => `01890000-0000-7000-8000-${String(historyId).padStart(12, "0")}`;
const answer = (status: number, body: object): LinkOutcome => ({ type: "answered", status, body });
const stored = (historyId: number) => ({
  ...{ status: "done", attempts: 1, delivered_at: 50, broker_message_id: brokerIdOf(historyId), history_id: historyId },
});

type Item = { readonly id: string; readonly sender: string; readonly ref: string; readonly deliveries: string[] };

/** A broker that has these direct messages, numbered from 1 in their order. */
async function setUp(items: readonly Item[]) {
  const world = await openRequeueWorld();
  const { stores, link, clock } = world;
  const auditing = createSqliteAuditReading(stores.outboxDb, stores.inboxDb);
  const { outbox } = stores;
  const { limits } = world.ports;
  const whole = { inlineBytes: () => 65_536, requeueProvesNothingBefore: limits.requeueProvesNothingBefore };
  const run = createAudit({ ownPubkey: own, outbox, auditing, link, limits: whole, clock, requestTimeoutMs: 1_000 });
  const facts = items.map(({ id, sender, ref }, index) => ({
    ...{ history_id: index + 1, broker_message_id: brokerIdOf(index + 1), client_message_id: id },
    ...{ destination: { kind: "dm", ref }, sender_pubkey: sender, accepted_at: 40 },
  }));
  link.goOnline();
  link.automatic.set("fate", (input) => {
    const found = facts.find((each) => each.client_message_id === input.client_message_id);
    return answer(200, found === undefined ? { fate: "none" } : { fate: "committed", ...found });
  });
  link.automatic.set("message.state", ({ broker_message_id, after = "" }) => {
    const found = facts.find((each) => each.broker_message_id === broker_message_id);
    if (found === undefined) return answer(404, { error: "not_found" });
    const { ref, deliveries } = items[found.history_id - 1] ?? { ref: "", deliveries: [] };
    const count = (state: string) => deliveries.filter((each) => each === state).length;
    const counts = { unsettled: count("unsettled"), delivered: count("delivered"), expired: count("expired") };
    const listed = deliveries.map((state) => ({ recipient_pubkey: ref, state, settled_at: null }));
    const deliveriesAfter = listed.filter(({ recipient_pubkey }) => recipient_pubkey > String(after));
    return answer(200, { ...found, counts, deliveries: deliveriesAfter, next_cursor: null });
  });
  const envelope = { envelope_version: "2", body_base64: "", meta: null, priority: "next", reply_to_id: null };
  link.automatic.set("history", ({ after }) => {
    const [item] = facts.filter(({ history_id }) => history_id > Number(after));
    const next = item !== undefined && item.history_id < facts.length ? item.history_id : null;
    return answer(200, { items: item === undefined ? [] : [{ ...item, ...envelope }], next_after: next });
  });
  const receive = (historyId: number, given: Partial<InboxArrival> = {}) =>
    stores.inbox.insert(
      {
        ...{ clientMessageId: items[historyId - 1]?.id ?? "", brokerMessageId: brokerIdOf(historyId), historyId },
        ...{ topic: undefined, senderPubkey: bob, senderName: undefined, priority: "next", meta: "" },
        ...{ replyToId: undefined, acceptedAt: 40, sealed: true, fromAgent: undefined, toAgent: undefined },
        ...{ unreadable: undefined, restored: false, body: new Uint8Array(1) },
        ...given,
      },
      clock.nowMs(),
    );
  return { ...world, run, receive };
}

const toBob = { message: "hello", destination: { kind: "dm", ref: bob } } as const;
const sent = (id: string): Item => ({ id, sender: own, ref: bob, deliveries: ["delivered"] });
const received = (id: string, state = "delivered"): Item => ({ id, sender: bob, ref: own, deliveries: [state] });
const classesOf = ({ layers }: AuditReport, name: string) => layers.find(({ layer }) => layer === name)?.classes;
const named = ({ imbalances }: AuditReport) => imbalances.map(({ layer, id }) => `${layer} ${id}`);

describe("the audit", () => {
  it("balances what fits, over several pages, and counts a send past the outbox", async () => {
    const world = await setUp([sent("s-1"), sent("direct-1"), received("r-1"), received("r-2", "unsettled")]);
    await world.insert("s-1", stored(1), toBob);
    await world.insert("dead-1", { status: "dead", attempts: 1 }, toBob);
    await world.insert("open-1", {}, toBob);
    await world.receive(3);
    const report = await world.run();
    expect([report.balanced, report.complete, named(report)]).toEqual([true, true, []]);
    expect(classesOf(report, "outbox")).toMatchObject({ queued: 1, stored: 1, dead_refused: 1 });
    expect(classesOf(report, "broker")).toEqual({ committed: 1, direct: 1 });
    expect(classesOf(report, "deliveries")).toEqual({ settled: 1, unsettled: 0, expired: 0 });
    expect(classesOf(report, "inbox")).toEqual({ removed_by_retention: 0, settled: 1 });
  });

  it("names what does not fit in each layer", async () => {
    const world = await setUp([
      { ...sent("s-1"), deliveries: [] },
      received("r-1"),
      { ...received("r-2"), deliveries: [] },
    ]);
    await world.insert("s-1", stored(1), toBob);
    await world.insert("lost-1", stored(9), toBob);
    await world.insert("aborted-1", { status: "aborted", superseded_by: "nothing" }, toBob);
    await world.receive(3);
    const report = await world.run();
    expect(named(report)).toEqual(["outbox aborted-1", "broker lost-1", "deliveries s-1", "inbox r-1", "inbox r-2"]);
    expect(report.balanced).toBe(false);
  });

  it("names a row or tombstone that another program removed, and does not take its send for a direct one", async () => {
    const world = await setUp([sent("s-1"), sent("s-2"), sent("direct-1")]);
    const delivered_at = world.clock.nowMs();
    await world.insert("s-1", { ...stored(1), delivered_at }, toBob);
    world.clock.advance(1_000);
    await world.insert("s-2", { ...stored(2), delivered_at: world.clock.nowMs() }, toBob);
    await world.insert("open-1", {}, toBob);
    expect(await world.stores.outbox.prune(delivered_at + 1, world.clock.nowMs(), 10)).toBe(1);
    expect((await world.run()).balanced).toBe(true);
    for (const gone of ["DELETE FROM outbox_tombstone", "DELETE FROM outbox"]) world.stores.outboxDb.exec(gone);
    const report = await world.run();
    expect(report.imbalances.map(({ layer, id, what }) => `${layer} ${id}: ${what}`).toSorted()).toEqual([
      "outbox open-1: its pending row was removed by another program",
      "outbox s-1: its tombstone was removed by another program",
      "outbox s-2: its done row was removed by another program",
    ]);
    expect([report.balanced, classesOf(report, "broker")]).toEqual([false, { row_removed: 2, direct: 1 }]);
    await world.insert("s-2", stored(2), toBob);
    expect(named(await world.run())).not.toContain("outbox s-2");
  });

  it("names a tombstone whose dedupe record is gone, as long as the broker remembers ids of its time", async () => {
    const world = await setUp([sent("s-1")]);
    const enqueuedAt = world.clock.nowMs();
    await world.insert("s-1", { ...stored(1), enqueued_at: enqueuedAt, delivered_at: enqueuedAt }, toBob);
    await world.insert("gone-1", { ...stored(9), enqueued_at: enqueuedAt, delivered_at: enqueuedAt }, toBob);
    world.clock.advance(3_600_000);
    expect(await world.stores.outbox.prune(world.clock.nowMs(), world.clock.nowMs(), 10)).toBe(2);
    const report = await world.run();
    expect([named(report), classesOf(report, "broker")]).toEqual([["broker gone-1"], { tombstones: 1, missing: 1 }]);
    world.clock.advance(6 * 86_400_000);
    const later = await world.run();
    expect([later.balanced, classesOf(later, "broker")]).toEqual([true, {}]);
  });

  it("tells messages of one client id apart: a delivery that has no row of its own is named", async () => {
    const world = await setUp([received("r-1"), received("r-1"), received("r-2"), received("r-2")]);
    await world.receive(1);
    await world.receive(3);
    await world.receive(4);
    const report = await world.run();
    expect([report.balanced, named(report)]).toEqual([false, ["inbox r-1"]]);
    expect(classesOf(report, "inbox")).toEqual({ removed_by_retention: 0, settled: 3, missing: 1 });
    await world.receive(2);
    expect((await world.run()).balanced).toBe(true);
  });

  it("does not name a row that a late answer makes done while it looks", async () => {
    const world = await setUp([sent("late-1")]);
    const id = await world.insert("late-1", { status: "dead", attempts: 1 }, toBob);
    const fate = world.link.automatic.get("fate") ?? expect.unreachable();
    world.link.automatic.set("fate", (input) => {
      world.stores.outboxDb
        .sql("UPDATE outbox SET status = 'done', broker_message_id = ?, history_id = 1, delivered_at = 1 WHERE id = ?")
        .run(brokerIdOf(1), id);
      return fate(input);
    });
    const report = await world.run();
    expect([named(report), classesOf(report, "broker")]).toEqual([[], { committed: 1 }]);
  });

  it("does not name a message that arrives while it looks", async () => {
    const world = await setUp([received("r-1")]);
    const state = world.link.automatic.get("message.state") ?? expect.unreachable();
    world.link.automatic.delete("message.state");
    const running = world.run();
    const asked = await world.link.requested("message.state");
    await world.receive(1);
    world.link.automatic.set("message.state", state);
    asked.end(state(asked.input));
    const report = await running;
    expect([named(report), classesOf(report, "inbox")]).toEqual([[], { removed_by_retention: 0, settled: 1 }]);
  });

  it("asks no more than 64 questions at once, and one audit serves all who ask meanwhile", async () => {
    const ids = Array.from({ length: 100 }, (_, index) => `s-${index}`);
    const world = await setUp(ids.map(sent));
    for (const [index, id] of ids.entries()) await world.insert(id, stored(index + 1), toBob);
    const fate = world.link.automatic.get("fate") ?? expect.unreachable();
    world.link.automatic.delete("fate");
    const both = [world.run(), world.run()];
    const first = await world.link.requested("fate");
    expect(world.link.ofKind("fate").length).toBe(64);
    world.link.automatic.set("fate", fate);
    for (const request of world.link.ofKind("fate")) request.end(fate(request.input));
    first.end(fate(first.input));
    const [one, other] = await Promise.all(both);
    expect(one).toBe(other);
    expect(one && classesOf(one, "broker")).toEqual({ committed: 100 });
    expect(world.link.ofKind("fate").length).toBe(100);
  });

  it.each<readonly [string, LinkOutcome]>([
    ["loses the connection", { type: "connection_lost" }],
    ["does not answer", { type: "timed_out" }],
    ["fails", answer(503, { error: "unavailable" })],
    ["says something strange", answer(200, { fate: "committed" })],
  ])("is not complete where the broker %s, and names nothing for it", async (_, outcome) => {
    const world = await setUp([sent("s-1")]);
    await world.insert("s-1", stored(1), toBob);
    world.link.automatic.set("fate", () => outcome);
    const report = await world.run();
    expect([report.complete, report.balanced, classesOf(report, "outbox")]).toMatchObject([false, true, { stored: 1 }]);
  });

  it("asks nothing while the broker is away", async () => {
    const world = await setUp([sent("s-1")]);
    world.link.goOffline();
    const report = await world.run();
    expect([report.complete, world.link.requests.length]).toEqual([false, 0]);
  });
});
