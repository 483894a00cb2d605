import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, it } from "vitest";
import { mayBeStoredTwice } from "../core/outbox-row.ts";
import { openDrainWorld } from "../testing/drain-world.ts";
import { type ScriptedRequest, settle } from "../testing/scripted-link.ts";
import type { DrainOptions } from "./drain.ts";

const brokerId = "01890000-0000-7000-8000-00000000000b";
const accepted = { broker_message_id: brokerId, client_message_id: "x", history_id: 7, duplicate: false };
const yearMs = 365 * 86_400_000;
const refusal = (error: string) => ({ error, message: "because", retryable: false });

/** One row whose first try is out. */
async function withOpenTry(options: Partial<DrainOptions> = {}) {
  const world = await openDrainWorld(options);
  const row = await world.accept();
  world.drain.linkUp();
  const request = await world.link.requested("send");
  return { ...world, row, request };
}

async function endWith(request: ScriptedRequest, outcome: LinkOutcome) {
  request.end(outcome);
  await settle();
}
const answered = (status: number, body: unknown): LinkOutcome => ({ type: "answered", status, body });

describe("a try", () => {
  it("leaves the host only after its row is inflight on disk", async () => {
    const { stores, link, drain, accept } = await openDrainWorld();
    const statuses: unknown[] = [];
    link.automatic.set("send", () => {
      expect(stores.outboxDb.isTransaction).toBe(false);
      statuses.push(...stores.outboxDb.sql("SELECT status FROM outbox").all());
      return { type: "connection_lost" };
    });
    await accept();
    drain.linkUp();
    await settle();
    expect(statuses).toEqual([{ status: "inflight" }]);
  });

  it("keeps the meta of a sealed message from the wire: it is in the box", async () => {
    const { link, drain, accept } = await openDrainWorld();
    await accept({
      destination: { kind: "dm", ref: "ab".repeat(32) },
      envelopeVersion: "3",
      payload: Uint8Array.of(0, 255, 1),
      canonicalMeta: '{"a":1}',
    });
    drain.linkUp();
    const { input } = await link.requested("send");
    expect(input).toMatchObject({ envelope_version: "3", body_base64: "AP8B" });
    expect(input).not.toHaveProperty("meta");
  });

  it("carries exactly what was stored", async () => {
    const { link, drain, accept } = await openDrainWorld();
    await accept({
      clientMessageId: "dm-1",
      destination: { kind: "dm", ref: "ab".repeat(32) },
      envelopeVersion: "2",
      payload: Uint8Array.of(0, 255, 1),
      canonicalMeta: '{"a":1,"__proto__":2}',
      replyToId: "m0",
      priority: "now",
    });
    await accept({ clientMessageId: "text", payload: new TextEncoder().encode("héllo\u0000") });
    await accept({ clientMessageId: "bytes", payload: Uint8Array.of(0xff, 0xfe) });
    drain.linkUp();
    const [sealed, text, bytes] = [
      await link.requested("send"),
      await link.requested("send"),
      await link.requested("send"),
    ];
    expect(JSON.stringify(sealed?.input)).toBe(
      JSON.stringify({
        client_message_id: "dm-1",
        destination: { kind: "dm", ref: "ab".repeat(32) },
        envelope_version: "2",
        priority: "now",
        body_base64: "AP8B",
        meta: JSON.parse('{"a":1,"__proto__":2}'),
        reply_to_id: "m0",
      }),
    );
    expect(text?.input).toMatchObject({ envelope_version: "1", body: "héllo\u0000" });
    expect(text?.input).not.toHaveProperty("meta");
    expect(bytes?.input).toMatchObject({ body_base64: "//4=" });
  });

  it("tells of each that the broker took as the first of its id, with what went before", async () => {
    const { link, drain, accept, clock, storedAnew } = await openDrainWorld();
    await accept({ clientMessageId: "retried" });
    drain.linkUp();
    await endWith(await link.requested("send"), { type: "connection_lost" });
    clock.advance(1_000);
    const again = await link.requested("send");
    clock.advance(500 * 86_400_000);
    await endWith(again, answered(201, accepted));
    const [row] = storedAnew;
    expect(storedAnew).toMatchObject([{ clientMessageId: "retried", attempts: 1, unanswered: 1 }]);
    expect(row && mayBeStoredTwice(row, clock.nowMs() - yearMs)).toBe(true);
    expect(row && mayBeStoredTwice(row, clock.nowMs() - 2 * yearMs)).toBe(false);
    expect(row && mayBeStoredTwice({ ...row, unanswered: 0 }, clock.nowMs())).toBe(false);
    await accept({ clientMessageId: "known" });
    await endWith(await link.requested("send"), answered(200, { ...accepted, duplicate: true }));
    await accept({ clientMessageId: "late" });
    const late = await link.requested("send");
    await endWith(late, { type: "timed_out" });
    late.options.onLateAnswer?.({ status: 201, body: accepted });
    await settle();
    expect(storedAnew.map(({ clientMessageId }) => clientMessageId)).toEqual(["retried", "late"]);
  });

  it("goes out oldest first, and no more than the window at once", async () => {
    const { link, drain, accept, clock } = await openDrainWorld({ windowRows: 2 });
    for (const clientMessageId of ["a", "b", "c"]) {
      await accept({ clientMessageId });
      clock.advance(1);
    }
    drain.linkUp();
    await settle();
    const ids = () => link.ofKind("send").map(({ input }) => input.client_message_id);
    expect(ids()).toEqual(["a", "b"]);
    link.requests[0]?.answer(201, accepted);
    await settle();
    expect(ids()).toEqual(["a", "b", "c"]);
  });

  it("goes out as far as the payloads in flight stay within their bound", async () => {
    const { link, drain, accept } = await openDrainWorld({ openBytes: 100 });
    for (let index = 0; index < 3; index++) await accept({ payload: new Uint8Array(60) });
    drain.linkUp();
    await settle();
    expect(link.ofKind("send")).toHaveLength(1);
    link.requests[0]?.answer(201, accepted);
    await settle();
    expect(link.ofKind("send")).toHaveLength(2);
  });

  it("starts at once when a send is accepted while the link is up", async () => {
    const { link, drain, accept } = await openDrainWorld();
    drain.linkUp();
    await settle();
    await accept({ clientMessageId: "now" });
    expect((await link.requested("send")).input.client_message_id).toBe("now");
  });
});

describe("an answer", () => {
  it.each([201, 200])("%i makes the row done, with the broker's ids", async (status) => {
    const { request, row, rowOf, clock } = await withOpenTry();
    await endWith(request, answered(status, accepted));
    expect(rowOf(row.id)).toMatchObject({
      status: "done",
      attempts: 1,
      unanswered: 0,
      broker_message_id: brokerId,
      history_id: 7,
      delivered_at: clock.nowMs(),
      last_error: null,
    });
  });

  it("200 without history is done, and worth a warning", async () => {
    const { request, row, rowOf, log } = await withOpenTry();
    await endWith(request, answered(200, { ...accepted, duplicate: true, history_available: false }));
    expect(rowOf(row.id).status).toBe("done");
    expect(log.lines).toMatchObject([{ level: "warn", event: "history_pruned" }]);
  });

  it.each([400, 403, 404, 409, 413])("%i makes the row dead, with the reason", async (status) => {
    const { request, row, rowOf } = await withOpenTry();
    await endWith(request, answered(status, refusal("destination_not_found")));
    expect(rowOf(row.id)).toMatchObject({
      status: "dead",
      attempts: 1,
      unanswered: 0,
      fenced: 0,
      last_error: "destination_not_found: because",
    });
  });

  it("409 fenced makes the row dead and its fate certain", async () => {
    const { request, row, rowOf } = await withOpenTry();
    await endWith(request, answered(409, refusal("fenced")));
    expect(rowOf(row.id)).toMatchObject({ status: "dead", fenced: 1 });
  });

  it.each<[string, LinkOutcome]>([
    ["408", answered(408, refusal("request_timeout"))],
    ["500", answered(500, refusal("internal"))],
    ["503", answered(503, refusal("limiter_unavailable"))],
    ["a time-out", { type: "timed_out" }],
    ["a lost connection", { type: "connection_lost" }],
    ["a success without its ids", answered(201, {})],
    ["an unknown status", answered(302, {})],
  ])("%s leaves the row pending, unanswered, to be tried after a backoff", async (_, outcome) => {
    const { request, row, rowOf, clock, link } = await withOpenTry();
    await endWith(request, outcome);
    expect(rowOf(row.id)).toMatchObject({
      status: "pending",
      attempts: 1,
      unanswered: 1,
      next_attempt_at: clock.nowMs() + 500,
      last_error: expect.stringMatching(/^[a-z0-9_]+: \S/),
    });
    clock.advance(499);
    await settle();
    expect(link.ofKind("send")).toHaveLength(1);
    clock.advance(1);
    await settle();
    expect(link.ofKind("send")).toHaveLength(2);
  });

  it("429 leaves the row pending and refused, not before the time that the broker asks for", async () => {
    const { request, row, rowOf, clock, accept, link } = await withOpenTry();
    await endWith(request, answered(429, { ...refusal("rate_limited"), retry_after_s: 30 }));
    expect(rowOf(row.id)).toMatchObject({
      status: "pending",
      attempts: 1,
      unanswered: 0,
      next_attempt_at: clock.nowMs() + 30_000,
    });
    // The budget is the mesh's: other rows wait as well.
    const other = await accept();
    await settle();
    expect(rowOf(other.id)).toMatchObject({ status: "pending", attempts: 0 });
    clock.advance(30_000);
    await settle();
    expect(link.ofKind("send")).toHaveLength(3);
  });

  it("401 stops draining with the rows pending; the next hello resumes it", async () => {
    const { request, row, rowOf, drain, link, clock, accept } = await withOpenTry();
    await endWith(request, answered(401, refusal("unauthorized")));
    expect(rowOf(row.id)).toMatchObject({ status: "pending", attempts: 1, unanswered: 0 });
    expect(drain.mode).toEqual({ state: "halted", reason: "unauthorized", detail: "unauthorized: because" });
    expect(link.renewals).toBe(1);
    await accept();
    clock.advance(600_000);
    await settle();
    expect(link.ofKind("send")).toHaveLength(1);
    drain.linkUp();
    await settle();
    expect(link.ofKind("send")).toHaveLength(3);
    expect(drain.mode).toEqual({ state: "running" });
  });

  it("that was never asked for, because nothing left the host, counts no try", async () => {
    const { request, row, rowOf, clock, link } = await withOpenTry();
    await endWith(request, { type: "not_sent" });
    expect(rowOf(row.id)).toMatchObject({ status: "pending", attempts: 0, unanswered: 0, last_error: null });
    expect(link.ofKind("send")).toHaveLength(1);
    clock.advance(500);
    await settle();
    expect(link.ofKind("send")).toHaveLength(2);
  });

  it("of trouble makes the drain rest, longer each time, and a success ends that", async () => {
    const { link, drain, accept, clock } = await openDrainWorld({}, undefined, 0.999999);
    link.automatic.set("send", () => ({ type: "timed_out" }));
    drain.linkUp();
    await accept();
    await settle();
    for (const restMs of [1_000, 2_000, 4_000]) {
      expect(drain.mode).toEqual({ state: "resting", until: clock.nowMs() + restMs });
      const sends = link.ofKind("send").length;
      await accept();
      clock.advance(restMs - 1);
      await settle();
      expect(link.ofKind("send")).toHaveLength(sends);
      clock.advance(1);
      await settle();
      expect(link.ofKind("send").length).toBeGreaterThan(sends);
    }
    link.automatic.set("send", () => answered(201, accepted));
    clock.advance(60_000);
    await settle();
    expect(drain.mode).toEqual({ state: "running" });
    link.automatic.set("send", () => ({ type: "timed_out" }));
    await accept();
    await settle();
    expect(drain.mode).toEqual({ state: "resting", until: clock.nowMs() + 1_000 });
  });
});

describe("a late answer", () => {
  it.each([200, 201])("%i makes a pending row done", async (status) => {
    const { request, row, rowOf } = await withOpenTry();
    await endWith(request, { type: "timed_out" });
    request.options.onLateAnswer?.({ status, body: accepted });
    await settle();
    expect(rowOf(row.id)).toMatchObject({ status: "done", broker_message_id: brokerId, history_id: 7 });
  });

  it("of success makes a dead row done", async () => {
    const { request, row, rowOf, clock, link } = await withOpenTry();
    await endWith(request, { type: "timed_out" });
    clock.advance(500);
    await settle();
    link.ofKind("send")[1]?.answer(404, refusal("destination_not_found"));
    await settle();
    expect(rowOf(row.id)).toMatchObject({ status: "dead", attempts: 2, unanswered: 1 });
    request.options.onLateAnswer?.({ status: 200, body: accepted });
    await settle();
    expect(rowOf(row.id)).toMatchObject({ status: "done", last_error: null });
  });

  it("of success ends a row whose next try is out, and that try's own answer changes nothing more", async () => {
    const { request, row, rowOf, clock, link } = await withOpenTry();
    await endWith(request, { type: "timed_out" });
    clock.advance(500);
    await settle();
    request.options.onLateAnswer?.({ status: 201, body: accepted });
    await settle();
    const done = rowOf(row.id);
    expect(done.status).toBe("done");
    link.ofKind("send")[1]?.answer(404, refusal("destination_not_found"));
    await settle();
    expect(rowOf(row.id)).toEqual(done);
  });

  it("of refusal settles the try it answers and moves nothing", async () => {
    const { request, row, rowOf } = await withOpenTry();
    await endWith(request, { type: "timed_out" });
    const before = rowOf(row.id);
    request.options.onLateAnswer?.({ status: 404, body: refusal("destination_not_found") });
    await settle();
    expect(rowOf(row.id)).toEqual({ ...before, unanswered: 0 });
  });

  it("of trouble says nothing", async () => {
    const { request, row, rowOf } = await withOpenTry();
    await endWith(request, { type: "timed_out" });
    const before = rowOf(row.id);
    request.options.onLateAnswer?.({ status: 503, body: refusal("internal") });
    request.options.onLateAnswer?.({ status: 201, body: {} });
    await settle();
    expect(rowOf(row.id)).toEqual(before);
  });
});

describe("the drain", () => {
  it("claims nothing while the link is down", async () => {
    const { drain, link, accept, clock } = await openDrainWorld();
    await accept();
    clock.advance(60_000);
    await settle();
    expect(link.requests).toEqual([]);
    drain.linkUp();
    drain.linkDown();
    await settle();
    await accept();
    await settle();
    expect(link.ofKind("send").length).toBeLessThanOrEqual(1);
    expect(drain.mode).toEqual({ state: "waiting_for_broker" });
  });

  it("does not try a row that is past its age", async () => {
    const { drain, link, accept, clock } = await openDrainWorld();
    await accept({ enqueuedAt: clock.nowMs() - yearMs });
    const young = await accept({ enqueuedAt: clock.nowMs() - yearMs + 1 });
    drain.linkUp();
    await settle();
    expect(link.ofKind("send").map(({ input }) => input.client_message_id)).toEqual([young.clientMessageId]);
  });

  it("remembers what the broker said while the disk refuses to record it", async () => {
    let failures = 2;
    const world = await openDrainWorld({}, (store) => ({
      ...store,
      endTry: async (...args) => {
        if (failures-- > 0) throw new StorageError("disk_full", "no room");
        return store.endTry(...args);
      },
    }));
    const row = await world.accept();
    world.drain.linkUp();
    (await world.link.requested("send")).answer(201, accepted);
    await settle();
    expect(world.rowOf(row.id).status).toBe("inflight");
    world.clock.advance(500);
    await settle();
    world.clock.advance(500);
    await settle();
    expect(world.rowOf(row.id)).toMatchObject({ status: "done", history_id: 7 });
    expect(world.log.events()).toContain("drain_record_failed");
  });

  it("tries a row again whose failure could only be recorded late", async () => {
    let failures = 2;
    const world = await openDrainWorld({}, (store) => ({
      ...store,
      endTry: async (...args) => {
        if (failures-- > 0) throw new StorageError("disk_full", "no room");
        return store.endTry(...args);
      },
    }));
    await world.accept();
    world.drain.linkUp();
    (await world.link.requested("send")).end({ type: "timed_out" });
    await settle();
    for (let half = 0; half < 2; half++) {
      world.clock.advance(500);
      await settle();
    }
    world.clock.advance(0);
    await settle();
    expect(world.link.ofKind("send")).toHaveLength(2);
  });

  it("rests and goes on after the disk refused to make rows inflight", async () => {
    let failures = 1;
    const world = await openDrainWorld({}, (store) => ({
      ...store,
      claimDue: async (query) => {
        if (failures-- > 0) throw new StorageError("disk_full", "no room");
        return store.claimDue(query);
      },
    }));
    await world.accept();
    world.drain.linkUp();
    await settle();
    expect(world.link.requests).toEqual([]);
    world.clock.advance(500);
    await settle();
    expect(world.link.ofKind("send")).toHaveLength(1);
  });

  it("logs little about a row that keeps failing", async () => {
    const { link, drain, accept, clock, log, rowOf } = await openDrainWorld();
    link.automatic.set("send", () => ({ type: "timed_out" }));
    const row = await accept();
    drain.linkUp();
    for (let round = 0; round < 100; round++) {
      clock.advance(60_000);
      await settle(4);
    }
    const { attempts } = rowOf(row.id);
    expect(attempts).toBeGreaterThan(60);
    expect(log.events().filter((event) => event === "row_pending").length).toBeLessThanOrEqual(8);
  });

  it("stops with every end recorded once its link has ended", async () => {
    const { drain, link, row, rowOf } = await withOpenTry();
    drain.stop();
    await link.close();
    await drain.settled();
    expect(rowOf(row.id)).toMatchObject({ status: "pending", attempts: 1, unanswered: 1 });
    expect(drain.mode).toEqual({ state: "stopped" });
  });
});
