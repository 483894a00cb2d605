// A requeue and the answers that come while it asks the broker: whichever is first, no message is lost from sight and none
// is sent under two ids that could both be accepted.
import { describe, expect, it } from "vitest";
import { openRequeueWorld, requestTimeoutMs } from "../testing/requeue-world.ts";
import { settle } from "../testing/scripted-link.ts";

const brokerId = "01890000-0000-7000-8000-00000000000b";
const accepted = { broker_message_id: brokerId, history_id: 7, duplicate: false };

/** A row whose first try was given up, and whose answer may still come. */
async function withTimedOutTry() {
  const world = await openRequeueWorld();
  const id = await world.insert("order-1");
  world.link.goOnline();
  world.drain.linkUp();
  const send = await world.link.requested("send");
  send.end({ type: "timed_out" });
  await settle();
  expect(world.rowOf(id)).toMatchObject({ status: "pending", attempts: 1, unanswered: 1 });
  const answerLate = async (status: number, body: unknown) => {
    send.options.onLateAnswer?.({ status, body });
    await settle();
  };
  return { ...world, id, answerLate };
}

describe("while the fence is out", () => {
  it("a late 201 makes the row done, and the broker's word agrees: already_accepted", async () => {
    const { requeue, link, rowOf, rows, answerLate, id } = await withTimedOutTry();
    const running = requeue({ id });
    const fence = await link.requested("fence");
    await answerLate(201, accepted);
    expect(rowOf(id).status).toBe("done");
    fence.answer(200, { fate: "committed", ...accepted });
    await expect(running).rejects.toMatchObject({ code: "already_accepted", details: { broker_message_id: brokerId } });
    expect(rows()).toHaveLength(1);
  });

  it.each([
    ["is lost", { type: "connection_lost" }],
    ["is not understood", { type: "answered", status: 200, body: {} }],
    ["says fenced, which then cannot be true", { type: "answered", status: 200, body: { fate: "fenced" } }],
  ] as const)("a late 201 is enough where the fence's answer %s", async (_, outcome) => {
    const { requeue, link, rowOf, rows, answerLate, id } = await withTimedOutTry();
    const running = requeue({ id, accept_duplicate: true });
    const fence = await link.requested("fence");
    await answerLate(201, accepted);
    fence.end(outcome);
    await expect(running).rejects.toMatchObject({
      code: "already_accepted",
      details: { broker_message_id: brokerId, history_id: 7 },
    });
    expect(rowOf(id)).toMatchObject({ status: "done", broker_message_id: brokerId });
    expect(rows()).toHaveLength(1);
  });

  it("a late refusal settles the only open question, and the requeue goes through without the fence", async () => {
    const { requeue, link, rowOf, fate, answerLate, id } = await withTimedOutTry();
    const running = requeue({ id, new_client_id: "order-2" });
    const fence = await link.requested("fence");
    await answerLate(404, { error: "destination_not_found", message: "gone", retryable: false });
    fence.end({ type: "connection_lost" });
    await running;
    expect([rowOf(id).status, fate(id), rowOf("order-2").status]).toEqual(["aborted", "refused", "pending"]);
  });

  it("no new try of the row begins, however due it is; afterwards only the new row is sent", async () => {
    const { requeue, link, clock, drain, id } = await withTimedOutTry();
    const running = requeue({ id, new_client_id: "order-2" });
    const fence = await link.requested("fence");
    clock.advance(requestTimeoutMs - 1);
    drain.wake();
    await settle();
    expect(link.ofKind("send")).toHaveLength(1);
    fence.answer(200, { fate: "fenced" });
    await running;
    await settle();
    clock.advance(requestTimeoutMs);
    await settle();
    expect(link.ofKind("send").map(({ input }) => input.client_message_id)).toEqual(["order-1", "order-2"]);
  });

  it("the row is held back no longer than that: a refused requeue lets it go on", async () => {
    const { requeue, link, clock, id, rowOf } = await withTimedOutTry();
    const dueAt = rowOf(id).next_attempt_at;
    const running = requeue({ id });
    (await link.requested("fence")).end({ type: "timed_out" });
    await expect(running).rejects.toMatchObject({ code: "fate_unknown" });
    expect(rowOf(id).next_attempt_at).toBe(dueAt);
    clock.advance(dueAt - clock.nowMs());
    await settle();
    expect(link.ofKind("send").map(({ input }) => input.client_message_id)).toEqual(["order-1", "order-1"]);
  });

  it("a second requeue of the same row loses to the first and names its successor", async () => {
    const { requeue, link, rows, id } = await withTimedOutTry();
    const first = requeue({ id, new_client_id: "order-2" });
    const second = requeue({ id, new_client_id: "order-3" });
    const fences = [await link.requested("fence"), await link.requested("fence")];
    fences[1]?.answer(200, { fate: "fenced" });
    fences[0]?.answer(200, { fate: "fenced" });
    const ends = await Promise.allSettled([first, second]);
    const won = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value.new] : []));
    const lost = ends.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
    expect([won.length, lost.length]).toEqual([1, 1]);
    expect(lost[0]).toMatchObject({ code: "not_requeueable", details: { successor: won[0] } });
    expect(rows()).toHaveLength(2);
  });

  it("a send that takes the new id first wins, and the old row stays what it was", async () => {
    const { requeue, link, insert, rowOf, id } = await withTimedOutTry();
    const running = requeue({ id, new_client_id: "order-2" });
    const fence = await link.requested("fence");
    await insert("order-2", {}, { message: "another" });
    fence.answer(200, { fate: "fenced" });
    await expect(running).rejects.toMatchObject({ code: "client_id_consumed" });
    expect(rowOf(id)).toMatchObject({ status: "pending", superseded_by: null });
  });

  it("a row that expires meanwhile is requeued as the dead row that it is", async () => {
    const { requeue, link, stores, rowOf, id } = await withTimedOutTry();
    const running = requeue({ id });
    const fence = await link.requested("fence");
    await stores.outbox.expireUnknown(id, 1, "expired: older than the maximum age, fate unknown");
    fence.answer(200, { fate: "fenced" });
    await running;
    expect(rowOf(id)).toMatchObject({ status: "aborted", fenced: 1 });
  });
});

describe("a late answer to a row that was requeued", () => {
  it("changes nothing any more, be it a success or a refusal", async () => {
    const { requeue, link, rowOf, answerLate, id } = await withTimedOutTry();
    link.goOffline();
    await requeue({ id, accept_duplicate: true });
    const before = rowOf(id);
    await answerLate(201, accepted);
    expect(rowOf(id)).toEqual(before);
  });
});

describe("a row that is being tried", () => {
  it("is not requeued, and ends as its try ends", async () => {
    const { requeue, insert, link, drain, rowOf } = await openRequeueWorld();
    const id = await insert("order-1");
    link.goOnline();
    drain.linkUp();
    const send = await link.requested("send");
    await expect(requeue({ id })).rejects.toMatchObject({ code: "not_requeueable", details: { status: "inflight" } });
    send.answer(201, accepted);
    await settle();
    expect(rowOf(id).status).toBe("done");
  });
});
