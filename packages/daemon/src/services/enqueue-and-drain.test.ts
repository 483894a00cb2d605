import type { Priority } from "@claudemesh/protocol/messages/envelope";
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, it } from "vitest";
import type { OutboxStore } from "../ports.ts";
import { openDrainWorld } from "../testing/drain-world.ts";
import { settle } from "../testing/scripted-link.ts";
import { newRow } from "../testing/test-stores.ts";
import type { DrainOptions } from "./drain.ts";

const accepted = { broker_message_id: "b", client_message_id: "x", history_id: 7, duplicate: false };

/** A drain that is online and has found nothing due. */
async function flowing(
  limits: Partial<DrainOptions> = {},
  outboxWith: (store: OutboxStore) => OutboxStore = (store) => store,
) {
  let claims = 0;
  const counting = (store: OutboxStore): OutboxStore => ({
    ...outboxWith(store),
    claimDue: (query) => {
      claims++;
      return store.claimDue(query);
    },
  });
  const world = await openDrainWorld(limits, counting);
  world.drain.linkUp();
  await settle();
  const claimsBefore = claims;
  return {
    ...world,
    send: async (clientMessageId: string, priority: Priority = "next") =>
      (await world.send({ clientMessageId, priority })).type,
    sent: () => world.link.ofKind("send").map(({ input }) => input.client_message_id),
    statusOf: (id: string) => world.rowOf(id).status,
    claims: () => claims - claimsBefore,
  };
}

describe("a send that arrives while rows flow", () => {
  it("is inflight on disk with the transaction that stores it, and leaves after it without another", async () => {
    const { link, stores, send, claims } = await flowing();
    const seen: unknown[] = [];
    link.automatic.set("send", () => {
      seen.push(stores.outboxDb.isTransaction, ...stores.outboxDb.sql("SELECT status, attempts FROM outbox").all());
      return { type: "answered", status: 201, body: accepted };
    });
    expect(await send("a")).toBe("inflight");
    await settle();
    expect(seen).toEqual([false, { status: "inflight", attempts: 0 }]);
    expect(stores.outbox.inspect("a")?.row).toMatchObject({ status: "done", attempts: 1, unanswered: 0 });
    expect(claims()).toBe(0);
  });

  it("leaves in the order in which sends were accepted", async () => {
    const { send, sent } = await flowing();
    await Promise.all(["a", "b", "c"].map((id) => send(id)));
    await settle();
    expect(sent()).toEqual(["a", "b", "c"]);
  });

  it("waits as pending behind a row that is due, and behind none that is due later", async () => {
    const { stores, clock, send, sent, statusOf } = await flowing();
    const older = newRow(stores, clock, { clientMessageId: "older" });
    await stores.outbox.insert(older, "pending");
    const dueAt = stores.outboxDb.sql("UPDATE outbox SET next_attempt_at = ? WHERE id = ?");
    dueAt.run(clock.nowMs() + 1, older.id);
    await send("at once");
    expect(statusOf("at once")).toBe("inflight");
    dueAt.run(clock.nowMs(), older.id);
    await send("newer");
    expect(statusOf("newer")).toBe("pending");
    await settle();
    expect(sent()).toEqual(["at once", "older", "newer"]);
  });

  it("leaves behind rows that a claim under way brings (MSG-34)", async () => {
    const { link, stores, clock, drain, send, sent } = await flowing();
    drain.linkDown();
    for (const id of ["a", "b"]) await send(id);
    link.automatic.set("send", () => ({ type: "answered", status: 201, body: accepted }));
    drain.linkUp();
    const third = send("c");
    await settle();
    expect(await third).toBe("inflight");
    expect(sent()).toEqual(["a", "b", "c"]);
    expect(stores.outbox.nextDueAt(clock.nowMs() - 1)).toBeUndefined();
  });

  it("waits as pending while the broker needs a rest", async () => {
    const { link, send, statusOf } = await flowing();
    await send("refused");
    (await link.requested("send")).answer(503, { error: "busy", message: "later", retryable: true });
    await settle();
    await send("meanwhile");
    expect(statusOf("meanwhile")).toBe("pending");
  });

  it("waits as pending while the window is full or the link is down, and goes when that ends", async () => {
    const { link, drain, send, sent, statusOf } = await flowing({ windowRows: 1, openRows: 1 });
    await send("a");
    await send("b");
    expect([statusOf("a"), statusOf("b")]).toEqual(["inflight", "pending"]);
    (await link.requested("send")).answer(201, accepted);
    await settle();
    drain.linkDown();
    (await link.requested("send")).answer(201, accepted);
    await settle();
    await send("c");
    expect(statusOf("c")).toBe("pending");
    drain.linkUp();
    await settle();
    expect(sent()).toEqual(["a", "b", "c"]);
  });

  it("is put back, untried, when no byte of it could leave", async () => {
    const { link, send, stores } = await flowing();
    link.automatic.set("send", () => ({ type: "not_sent" }));
    await send("a");
    await settle();
    expect(stores.outbox.inspect("a")?.row).toMatchObject({ status: "pending", attempts: 0, unanswered: 0 });
  });

  it("returns its room when its id is known, or the disk refuses it", async () => {
    let refusing = false;
    const { send, sent } = await flowing({ windowRows: 2, openRows: 2 }, (store) => ({
      ...store,
      insert: (row, as) =>
        refusing ? Promise.reject(new StorageError("disk_full", "no room")) : store.insert(row, as),
    }));
    await send("a");
    expect(await send("a")).toBe("known");
    refusing = true;
    await expect(send("b")).rejects.toThrow("no room");
    refusing = false;
    await send("c");
    await settle();
    expect(sent()).toEqual(["a", "c"]);
  });
});

describe("a send that finds the window full", () => {
  /** One frame at the broker, two rows behind it. */
  async function withFullWindow() {
    const world = await flowing({ windowRows: 1, openRows: 3 });
    for (const id of ["a", "b", "c"]) await world.send(id);
    expect(world.sent()).toEqual(["a"]);
    const statuses = () => ["a", "b", "c"].map(world.statusOf);
    expect(statuses()).toEqual(["inflight", "inflight", "inflight"]);
    const first = await world.link.requested("send");
    const expectUntried = (id: string) => expect(world.rowOf(id)).toMatchObject({ attempts: 0, unanswered: 0 });
    return { ...world, statuses, first, expectUntried };
  }

  it("is inflight at once, leaves in its order as answers come, and costs no claim", async () => {
    const { link, send, sent, first, statusOf, claims } = await withFullWindow();
    await send("d");
    expect(statusOf("d")).toBe("pending");
    first.answer(201, accepted);
    await settle();
    expect(sent()).toEqual(["a", "b"]);
    expect(claims()).toBe(0);
    link.automatic.set("send", () => ({ type: "answered", status: 201, body: accepted }));
    (await link.requested("send")).answer(201, accepted);
    await settle(30);
    expect(sent()).toEqual(["a", "b", "c", "d"]);
    expect(["a", "b", "c", "d"].map(statusOf)).toEqual(["done", "done", "done", "done"]);
  });

  it.each([
    { what: "asks for a rest", status: 429, error: "rate_limited" },
    { what: "is in trouble", status: 503, error: "storage_unavailable" },
    { what: "refuses this member", status: 401, error: "unauthorized" },
  ])("is pending again, untried, when the broker $what, and is not sent to it", async ({ status, error }) => {
    const { link, drain, clock, sent, first, statuses, expectUntried } = await withFullWindow();
    first.answer(status, { error, message: "", retryable: true });
    await settle();
    expect(statuses()).toEqual(["pending", "pending", "pending"]);
    for (const id of ["b", "c"]) expectUntried(id);
    expect(sent()).toEqual(["a"]);
    link.automatic.set("send", () => ({ type: "answered", status: 201, body: accepted }));
    if (status === 401) drain.linkUp();
    for (let turn = 0; turn < 3; turn++) {
      clock.advance(120_000);
      await settle(30);
    }
    expect(statuses()).toEqual(["done", "done", "done"]);
  });

  it("is pending again, untried, when the link goes down", async () => {
    const { drain, first, statuses, expectUntried } = await withFullWindow();
    drain.linkDown();
    await settle();
    expect(statuses()).toEqual(["inflight", "pending", "pending"]);
    for (const id of ["b", "c"]) expectUntried(id);
    first.end({ type: "connection_lost" });
    await settle();
    expect(statuses()).toEqual(["pending", "pending", "pending"]);
  });

  it("is pending again, untried, when the daemon stops, and that is recorded before it has stopped", async () => {
    const { drain, sent, first, statuses, expectUntried } = await withFullWindow();
    drain.stop();
    first.answer(201, accepted);
    await drain.settled();
    expect(statuses()).toEqual(["done", "pending", "pending"]);
    for (const id of ["b", "c"]) expectUntried(id);
    expect(sent()).toEqual(["a"]);
  });

  it("does not leave once it is too old, whatever the clock did meanwhile (MSG-11)", async () => {
    const { clock, sent, first, statuses } = await withFullWindow();
    clock.advance(366 * 86_400_000);
    first.answer(201, accepted);
    await settle();
    expect(sent()).toEqual(["a"]);
    expect(statuses()).toEqual(["done", "pending", "pending"]);
  });
});

describe("a send of another priority", () => {
  it("overtakes rows that wait behind a full window, in the order of priorities and within each in that of sends", async () => {
    const { link, send, sent } = await flowing({ windowRows: 1, openRows: 8 });
    await send("first", "next");
    for (const [id, priority] of [
      ["low", "low"],
      ["next-1", "next"],
      ["next-2", "next"],
      ["now-1", "now"],
      ["now-2", "now"],
    ] as const) {
      await send(id, priority);
    }
    for (let answered = 0; answered < 6; answered++) {
      (await link.requested("send")).answer(201, accepted);
      await settle();
    }
    expect(sent()).toEqual(["first", "now-1", "now-2", "next-1", "next-2", "low"]);
  });

  it("has room where others have none left", async () => {
    const { send, statusOf } = await flowing({ windowRows: 1, openRows: 2, openRowsUrgent: 3 });
    await send("a", "low");
    await send("b", "low");
    await send("c", "low");
    expect(statusOf("c")).toBe("pending");
    await send("urgent", "now");
    expect(statusOf("urgent")).toBe("inflight");
  });
});
