// What a requeue does to its two rows, and what it refuses. How it meets answers that come meanwhile is in
// requeue-races.test.ts.
import { generateMemberKeys } from "@claudemesh/client/keys";
import { loadSealer } from "@claudemesh/client/seal";
import { MeshError } from "@claudemesh/protocol/errors";
import { describe, expect, it } from "vitest";
import { openRequeueWorld } from "../testing/requeue-world.ts";
import { settle } from "../testing/scripted-link.ts";

const unknown = { attempts: 2, unanswered: 1 };
const refused = { status: "dead", attempts: 1, last_error: "destination_not_found: gone" };
const brokerId = "01890000-0000-7000-8000-00000000000b";
const hourMs = 3_600_000;
const text = (bytes: Uint8Array | undefined) => new TextDecoder().decode(bytes);

async function refusalOf(requeue: Promise<unknown>): Promise<MeshError> {
  const error = await requeue.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof MeshError) return error;
  throw new Error("the requeue was not refused", { cause: error });
}

describe("a requeue", () => {
  it("retires the old row and queues a new one that says the same under a fresh id", async () => {
    const { requeue, insert, rowOf, payloadOf, clock } = await openRequeueWorld();
    const send = { message: "hello", priority: "low", meta: { b: 2, a: 1 }, reply_to_id: "m0" } as const;
    const id = await insert("order-1", refused, send);
    const before = rowOf(id);
    clock.advance(5_000);
    const answer = await requeue({ id, new_client_id: "order-1-again" });
    expect(answer).toEqual({
      old: { id, client_message_id: "order-1", status: "aborted" },
      new: { outbox_id: expect.stringMatching(/^[0-9A-Z]{26}$/), client_message_id: "order-1-again" },
    });
    const newId = answer.new.outbox_id;
    expect(rowOf(id)).toEqual({
      ...before,
      status: "aborted",
      aborted_at: clock.nowMs(),
      aborted_by: "operator",
      superseded_by: newId,
    });
    expect(rowOf(newId)).toEqual({
      ...before,
      id: newId,
      client_message_id: "order-1-again",
      status: "pending",
      enqueued_at: clock.nowMs(),
      next_attempt_at: clock.nowMs(),
      attempts: 0,
      last_error: null,
    });
    expect(payloadOf(newId)).toEqual(payloadOf(id));
    expect(newId > id).toBe(true);
  });

  it("of a sealed message seals the same content anew, because the id is inside the box", async () => {
    const { requeue, insert, rowOf, payloadOf, sealer } = await openRequeueWorld();
    const bob = generateMemberKeys().ed25519.public_key;
    await insert("dm-1", refused, { message: "for bob", meta: { k: 1 }, destination: { kind: "dm", ref: bob } });
    const answer = await requeue({ id: "dm-1", new_client_id: "dm-2" });
    expect(rowOf(answer.new.outbox_id)).toMatchObject({
      request_fingerprint: rowOf("dm-1").request_fingerprint,
      envelope_version: "3",
      meta: '{"k":1}',
      to_address: `dm:${bob}`,
    });
    expect(rowOf("dm-2").wire_fingerprint).not.toEqual(rowOf("dm-1").wire_fingerprint);
    const sealed = payloadOf("dm-2") ?? new Uint8Array();
    const inside = sealer.open({ peer: bob, sealed });
    expect(inside).toMatchObject({ clientMessageId: "dm-2", canonicalMeta: '{"k":1}' });
    expect(text(inside?.body)).toBe("for bob");
  });

  it("of a message that was sealed before there was version 3 keeps its bytes and both fingerprints", async () => {
    const { requeue, insert, rowOf, payloadOf, stores } = await openRequeueWorld();
    const bob = generateMemberKeys().ed25519.public_key;
    await insert("dm-1", refused, { message: "for bob", destination: { kind: "dm", ref: bob } });
    stores.outboxDb.sql("UPDATE outbox SET envelope_version = '2'").run();
    await requeue({ id: "dm-1", new_client_id: "dm-2" });
    expect(payloadOf("dm-2")).toEqual(payloadOf("dm-1"));
    expect(rowOf("dm-2")).toMatchObject({
      request_fingerprint: rowOf("dm-1").request_fingerprint,
      wire_fingerprint: rowOf("dm-1").wire_fingerprint,
      envelope_version: "2",
    });
  });

  it("takes the outbox id or the client id, and mints an id where none is given", async () => {
    const { requeue, insert } = await openRequeueWorld();
    const id = await insert("order-1", refused);
    expect((await requeue({ id: "order-1" })).old.id).toBe(id);
    const second = await insert("order-2", refused);
    const answer = await requeue({ id: second });
    expect(answer.old.client_message_id).toBe("order-2");
    expect(answer.new.client_message_id).toMatch(/^fresh-/);
  });

  it("is what inspecting either row shows as their chain, oldest first", async () => {
    const { requeue, insert, inspect, stores, prune } = await openRequeueWorld();
    await insert("a", refused);
    await requeue({ id: "a", new_client_id: "b" });
    await requeue({ id: "b", new_client_id: "c" });
    for (const id of ["a", "b", "c"]) {
      const { row, chain } = inspect(id);
      expect(row.client_message_id).toBe(id);
      expect(chain.map((link) => [link.client_message_id, link.status])).toEqual([
        ["a", "aborted"],
        ["b", "aborted"],
        ["c", "pending"],
      ]);
    }
    stores.outboxDb
      .sql(
        "UPDATE outbox SET status = 'done', delivered_at = 1, broker_message_id = 'x', history_id = 1 WHERE client_message_id = 'c'",
      )
      .run();
    expect(await prune()).toBe(1);
    expect(inspect("a").chain.map((link) => link.status)).toEqual(["aborted", "aborted", "done"]);
    expect(inspect("c").chain.map((link) => link.client_message_id)).toEqual(["a", "b", "c"]);
  });

  it.each([
    ["never sent", { status: "pending" }],
    ["pending and always refused", { attempts: 3 }],
    ["dead and always refused", refused],
    ["fenced before", { status: "dead", ...unknown, fenced: 1 }],
  ])("of a row that was %s does not ask the broker", async (_, columns) => {
    const { requeue, insert, link, rowOf } = await openRequeueWorld();
    link.goOnline();
    await insert("order-1", columns);
    await requeue({ id: "order-1" });
    expect(rowOf("order-1").status).toBe("aborted");
    expect(link.requests.map(({ operation }) => operation)).not.toContain("fence");
  });

  it("sends the new row, and the old one never again", async () => {
    const { requeue, insert, link, drain } = await openRequeueWorld();
    await insert("order-1");
    await requeue({ id: "order-1", new_client_id: "order-2" });
    link.goOnline();
    drain.linkUp();
    await settle();
    expect(link.ofKind("send").map(({ input }) => input.client_message_id)).toEqual(["order-2"]);
  });
});

describe("a patch", () => {
  it("changes what it names and gives the new row a fingerprint of its own; the old row keeps everything", async () => {
    const { requeue, insert, rowOf, payloadOf } = await openRequeueWorld();
    await insert("order-1", refused, { message: "old", priority: "low", meta: { a: 1 }, reply_to_id: "m0" });
    const before = rowOf("order-1");
    await requeue({ id: "order-1", new_client_id: "order-2", patch_payload: { message: "new", meta: null } });
    expect(text(payloadOf("order-2"))).toBe("new");
    expect(rowOf("order-2")).toMatchObject({ meta: "", priority: "low", reply_to_id: "m0", to_address: "#general" });
    expect(rowOf("order-2").request_fingerprint).not.toEqual(before.request_fingerprint);
    expect(text(payloadOf("order-1"))).toBe("old");
    expect(rowOf("order-1")).toMatchObject({ request_fingerprint: before.request_fingerprint, meta: '{"a":1}' });
  });

  it("makes the row that a send of the patched content would have made", async () => {
    const { requeue, insert, rowOf, payloadOf } = await openRequeueWorld();
    const bob = generateMemberKeys().ed25519.public_key;
    const destination = { kind: "dm", ref: bob } as const;
    await insert("dm-1", refused, { message: "for bob", destination });
    await requeue({ id: "dm-1", new_client_id: "dm-2", patch_payload: { priority: "now", meta: { k: 1 } } });
    const twin = await openRequeueWorld();
    await twin.insert("dm-2", {}, { message: "for bob", priority: "now", meta: { k: 1 }, destination });
    expect(rowOf("dm-2").request_fingerprint).toEqual(twin.rowOf("dm-2").request_fingerprint);
    expect(payloadOf("dm-2")).not.toEqual(payloadOf("dm-1"));
  });

  it("of a sealed message opens it, changes it and seals it anew, with another nonce", async () => {
    const { requeue, insert, rowOf, payloadOf, sealer } = await openRequeueWorld();
    const bob = generateMemberKeys().ed25519.public_key;
    await insert("dm-1", refused, { message: "for bob", destination: { kind: "dm", ref: bob } });
    await requeue({ id: "dm-1", new_client_id: "meta-only", patch_payload: { meta: { k: 1 } } });
    const sealed = payloadOf("meta-only") ?? new Uint8Array();
    expect(text(sealer.open({ peer: bob, sealed })?.body)).toBe("for bob");
    expect(sealed.subarray(0, 24)).not.toEqual(payloadOf("dm-1")?.subarray(0, 24));
    expect(rowOf("meta-only")).toMatchObject({ envelope_version: "3", meta: '{"k":1}' });
    expect(rowOf("meta-only").wire_fingerprint).not.toEqual(rowOf("dm-1").wire_fingerprint);
  });

  it("that keeps a message sealed with other keys is refused; one that brings its own message is not", async () => {
    const { requeue, insert, payloadOf, rowOf, sealer: ownSealer } = await openRequeueWorld();
    const bob = generateMemberKeys().ed25519.public_key;
    await insert("dm-1", refused, { message: "for bob", destination: { kind: "dm", ref: bob } });
    const sealer = await loadSealer(generateMemberKeys());
    const kept = requeue({ id: "dm-1", patch_payload: { priority: "now" } }, { sealer });
    expect((await refusalOf(kept)).code).toBe("payload_unreadable");
    expect((await refusalOf(requeue({ id: "dm-1" }, { sealer }))).code).toBe("payload_unreadable");
    expect(rowOf("dm-1").status).toBe("dead");
    await requeue({ id: "dm-1", new_client_id: "dm-2", patch_payload: { message: "again" } }, { sealer });
    const box = { peer: bob, sealed: payloadOf("dm-2") ?? new Uint8Array() };
    expect(text(ownSealer.open(box)?.body)).toBe("again");
  });

  it("that is too large for the broker is refused, and nothing is consumed", async () => {
    const { requeue, insert, rows, link } = await openRequeueWorld({ inlineBytes: 1_024 });
    link.goOnline();
    await insert("order-1", unknown);
    const patch_payload = { message: "x".repeat(1_025) };
    const refusal = await refusalOf(requeue({ id: "order-1", new_client_id: "order-2", patch_payload }));
    expect(refusal).toMatchObject({ code: "payload_too_large", details: { limit_bytes: 1_024 } });
    expect(rows().map(({ status }) => status)).toEqual(["pending"]);
    expect(link.requests).toEqual([]);
  });
});

describe("a requeue is refused", () => {
  it("for a row that is not there", async () => {
    const { requeue } = await openRequeueWorld();
    expect((await refusalOf(requeue({ id: "missing" }))).code).toBe("not_found");
  });

  it("for a new id that is none", async () => {
    const { requeue, insert } = await openRequeueWorld();
    await insert("order-1");
    const refusal = await refusalOf(requeue({ id: "order-1", new_client_id: "with space" }));
    expect(refusal).toMatchObject({ code: "invalid_client_message_id", details: { field: "new_client_id" } });
  });

  it.each(["inflight", "done", "aborted"])("for a row that is %s", async (status) => {
    const { requeue, insert, rowOf, rows } = await openRequeueWorld();
    const id = await insert("order-1", { status, attempts: 1 });
    const before = rowOf(id);
    const refusal = await refusalOf(requeue({ id, accept_duplicate: true }));
    expect(refusal).toMatchObject({
      code: "not_requeueable",
      details: { outbox_id: id, client_message_id: "order-1", status },
    });
    expect(refusal.details).not.toHaveProperty("successor");
    expect([rowOf(id), rows().length]).toEqual([before, 1]);
  });

  it("for a tombstone, with the message that it stands for", async () => {
    const { requeue, insert, prune } = await openRequeueWorld();
    await insert("order-1", { status: "done", delivered_at: 1, broker_message_id: brokerId, history_id: 7 });
    expect(await prune()).toBe(1);
    expect(await refusalOf(requeue({ id: "order-1" }))).toMatchObject({
      code: "not_requeueable",
      details: { status: "done", broker_message_id: brokerId },
    });
  });

  it("when it comes again, and then names the successor, whatever has become of it", async () => {
    const { requeue, insert, stores, prune } = await openRequeueWorld();
    await insert("order-1", refused);
    const request = { id: "order-1", new_client_id: "order-2", patch_payload: { message: "x" } };
    const first = await requeue(request);
    const successor = { outbox_id: first.new.outbox_id, client_message_id: "order-2" };
    const full = {
      gauge: { admit: () => expect.unreachable("a retry needs no room"), makeRoom: async () => false },
    };
    expect(await refusalOf(requeue(request, full))).toMatchObject({
      code: "not_requeueable",
      details: { status: "aborted", successor: { ...successor, status: "pending" } },
    });
    const done = "status = 'done', delivered_at = 1, broker_message_id = 'b', history_id = 1";
    stores.outboxDb.sql(`UPDATE outbox SET ${done} WHERE client_message_id = 'order-2'`).run();
    expect(await prune()).toBe(1);
    const late = await refusalOf(requeue(request));
    expect(late.details).toMatchObject({ successor: { ...successor, status: "done" } });
  });

  it.each(["order-1", "other", "pruned"])("when the new id is consumed: %s", async (new_client_id) => {
    const { requeue, insert, prune, rowOf, link } = await openRequeueWorld();
    link.goOnline();
    await insert("pruned", { status: "done", delivered_at: 1, broker_message_id: "b", history_id: 1 });
    expect(await prune()).toBe(1);
    await insert("order-1", unknown);
    await insert("other");
    const refusal = await refusalOf(requeue({ id: "order-1", new_client_id }));
    expect(refusal).toMatchObject({ code: "client_id_consumed", details: { new_client_id } });
    expect(rowOf("order-1").status).toBe("pending");
    expect(link.requests).toEqual([]);
  });

  it("when the outbox is full, before the broker is asked", async () => {
    const { requeue, insert, link, rows } = await openRequeueWorld();
    link.goOnline();
    await insert("order-1", unknown);
    const admitted: number[] = [];
    const admit = (bytes: number) => {
      admitted.push(bytes);
      throw new MeshError("insufficient_storage");
    };
    expect((await refusalOf(requeue({ id: "order-1" }, { gauge: { admit, makeRoom: async () => false } }))).code).toBe(
      "insufficient_storage",
    );
    expect(admitted).toEqual(["hello".length]);
    expect([rows().length, link.requests.length]).toEqual([1, 0]);
  });
});

describe("where the fate is unknown", () => {
  it.each([
    ["pending", unknown],
    ["dead", { status: "dead", ...unknown }],
  ])(
    "the broker is asked first, by the wire fingerprint, and a %s row that it fenced is requeued",
    async (_, columns) => {
      const { requeue, insert, link, rowOf, fate } = await openRequeueWorld();
      link.goOnline();
      await insert("order-1", columns);
      const running = requeue({ id: "order-1", new_client_id: "order-2" });
      const fence = await link.requested("fence");
      expect(fence.input).toEqual({
        client_message_id: "order-1",
        fingerprint: Buffer.from(rowOf("order-1").wire_fingerprint).toString("hex"),
      });
      expect(rowOf("order-1").status).not.toBe("aborted");
      fence.answer(200, { fate: "fenced" });
      await running;
      expect(rowOf("order-1")).toMatchObject({ status: "aborted", fenced: 1, accept_duplicate: 0 });
      expect(fate("order-1")).toBe("refused");
      expect(rowOf("order-2")).toMatchObject({ status: "pending", fenced: 0 });
    },
  );

  it("an id that stands for something else at the broker proves that this row never got there", async () => {
    const { requeue, insert, link, rowOf } = await openRequeueWorld();
    link.goOnline();
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body: { fate: "taken" } }));
    await insert("order-1", unknown);
    await requeue({ id: "order-1" });
    expect(rowOf("order-1").status).toBe("aborted");
  });

  it.each([false, true])(
    "a row that was committed is done, and nothing is requeued (accepting duplicates: %s)",
    async (accept_duplicate) => {
      const { requeue, insert, link, rowOf, rows } = await openRequeueWorld();
      link.goOnline();
      const body = { fate: "committed", broker_message_id: brokerId, history_id: 9 };
      link.automatic.set("fence", () => ({ type: "answered", status: 200, body }));
      const id = await insert("order-1", { status: "dead", ...unknown });
      expect(await refusalOf(requeue({ id, accept_duplicate }))).toMatchObject({
        code: "already_accepted",
        details: {
          outbox_id: id,
          client_message_id: "order-1",
          status: "done",
          broker_message_id: brokerId,
          history_id: 9,
        },
      });
      expect(rowOf(id)).toMatchObject({ status: "done", broker_message_id: brokerId, history_id: 9 });
      expect(rows()).toHaveLength(1);
    },
  );

  it.each([
    ["is away", undefined, "broker_not_reachable"],
    ["does not answer", { type: "timed_out" }, "broker_gave_no_answer"],
    ["is lost meanwhile", { type: "connection_lost" }, "broker_gave_no_answer"],
    ["refuses to say", { type: "answered", status: 503, body: {} }, "broker_gave_no_answer"],
    ["answers something else", { type: "answered", status: 200, body: { fate: "none" } }, "broker_gave_no_answer"],
  ] as const)(
    "and the broker %s, the requeue is refused and the row stays due as it was",
    async (_, outcome, reason) => {
      const { requeue, insert, link, rowOf, rows } = await openRequeueWorld();
      if (outcome !== undefined) {
        link.goOnline();
        link.automatic.set("fence", () => outcome);
      }
      const id = await insert("order-1", unknown);
      const before = rowOf(id);
      expect(await refusalOf(requeue({ id, new_client_id: "order-2" }))).toMatchObject({
        code: "fate_unknown",
        details: { outbox_id: id, status: "pending", reason },
      });
      expect([rowOf(id), rows().length]).toEqual([before, 1]);
    },
  );

  it.each([
    ["a pending row", unknown],
    ["a dead row", { status: "dead", ...unknown }],
  ])("accepting a duplicate requeues %s all the same, and both rows say so", async (_, columns) => {
    const { requeue, insert, rowOf, fate } = await openRequeueWorld();
    await insert("order-1", columns);
    await requeue({ id: "order-1", new_client_id: "order-2", accept_duplicate: true });
    expect(rowOf("order-1")).toMatchObject({ status: "aborted", accept_duplicate: 1, fenced: 0 });
    expect(fate("order-1")).toBe("unknown");
    expect(rowOf("order-2")).toMatchObject({ status: "pending", accept_duplicate: 1 });
  });

  it("accepting a duplicate is no reason not to ask: what can be fenced is", async () => {
    const { requeue, insert, link, rowOf, fate } = await openRequeueWorld();
    link.goOnline();
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body: { fate: "fenced" } }));
    await insert("order-1", unknown);
    await requeue({ id: "order-1", new_client_id: "order-2", accept_duplicate: true });
    expect(fate("order-1")).toBe("refused");
    expect(rowOf("order-1").accept_duplicate + rowOf("order-2").accept_duplicate).toBe(2);
  });
});

describe("a row as old as the dedupe window less its margin", () => {
  const aged = async (ageMs: number) => {
    const world = await openRequeueWorld();
    world.link.goOnline();
    await world.insert("order-1", { status: "dead", ...unknown, enqueued_at: world.clock.nowMs() - ageMs });
    return world;
  };

  it("is not requeued on the broker's word, and is not fenced for nothing", async () => {
    const { requeue, link, rowOf } = await aged(144 * hourMs);
    link.automatic.set("fate", () => ({ type: "answered", status: 200, body: { fate: "none" } }));
    expect(await refusalOf(requeue({ id: "order-1" }))).toMatchObject({
      code: "fate_unknown",
      details: { reason: "older_than_dedupe_window" },
    });
    expect(rowOf("order-1").status).toBe("dead");
    expect(link.requests.map(({ operation }) => operation)).toEqual(["fate"]);
  });

  it("is fenced and requeued while it is a millisecond younger", async () => {
    const { requeue, link, rowOf } = await aged(144 * hourMs - 1);
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body: { fate: "fenced" } }));
    await requeue({ id: "order-1" });
    expect(rowOf("order-1").status).toBe("aborted");
  });

  it("is done where the broker still remembers that it has it", async () => {
    const { requeue, link, rowOf } = await aged(1_000 * hourMs);
    const body = { fate: "committed", broker_message_id: brokerId, history_id: 9 };
    link.automatic.set("fate", () => ({ type: "answered", status: 200, body }));
    expect((await refusalOf(requeue({ id: "order-1" }))).code).toBe("already_accepted");
    expect(rowOf("order-1").status).toBe("done");
  });

  it("is requeued where a duplicate is accepted, which is counted", async () => {
    const { requeue, link, rowOf } = await aged(1_000 * hourMs);
    link.automatic.set("fate", () => ({ type: "answered", status: 200, body: { fate: "none" } }));
    let counted = 0;
    const onDespiteForgotten = () => counted++;
    const wanted = { id: "order-1", new_client_id: "order-2", accept_duplicate: true };
    await requeue(wanted, { onDespiteForgotten });
    expect([rowOf("order-2").accept_duplicate, counted]).toEqual([1, 1]);
  });

  it("is nothing that a broker without a window knows", async () => {
    const { requeue, insert, link, rowOf, clock } = await openRequeueWorld({ dedupe: { mode: "permanent" } });
    link.goOnline();
    link.automatic.set("fence", () => ({ type: "answered", status: 200, body: { fate: "fenced" } }));
    await insert("order-1", { status: "dead", ...unknown, enqueued_at: clock.nowMs() - 50_000 * hourMs });
    await requeue({ id: "order-1" });
    expect(rowOf("order-1").status).toBe("aborted");
  });
});
