// «Where is my message?», asked by every id that a message has, with and without a broker to ask.
import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";
import { describe, expect, it } from "vitest";
import type { InboxArrival } from "../ports.ts";
import { openRequeueWorld } from "../testing/requeue-world.ts";
import { findMessage } from "./find-message.ts";

const own = "aa".repeat(32);
const bob = "bb".repeat(32);
const carol = "cc".repeat(32);
const calm = { rateLimited: undefined, membershipEndedAt: undefined };
const names = new Map([
  [own, "me"],
  [bob, "bob"],
]);
const brokerId = "01890000-0000-7000-8000-00000000000b";
const done = { status: "done", attempts: 1, delivered_at: 50, broker_message_id: brokerId, history_id: 7 };

function countsOf(states: readonly string[]) {
  const count = (wanted: string) => states.filter((state) => state === wanted).length;
  return { unsettled: count("unsettled"), delivered: count("delivered"), expired: count("expired") };
}

async function setUp() {
  const world = await openRequeueWorld();
  const { outbox, entries, search } = world.stores;
  const ports = {
    ownPubkey: own,
    outbox,
    entries,
    search,
    link: world.link,
    way: () => calm,
    nameOf: (pubkey: string) => names.get(pubkey),
    requestTimeoutMs: 1_000,
  };
  const answerState = (fields: (input: Readonly<Record<string, unknown>>) => object) => {
    world.link.goOnline();
    world.link.automatic.set("message.state", (input) => ({
      type: "answered",
      status: 200,
      body: {
        broker_message_id: input.broker_message_id,
        client_message_id: "order-1",
        history_id: 7,
        destination: { kind: "topic", ref: "general" },
        sender_pubkey: own,
        accepted_at: 40,
        ...fields(input),
      },
    }));
  };
  const brokerSays = (...given: readonly (readonly [string, string, number | null])[]) => {
    const deliveries = given.map(([recipient_pubkey, state, settled_at]) => ({ recipient_pubkey, state, settled_at }));
    answerState(() => ({ counts: countsOf(given.map(([, state]) => state)), deliveries, next_cursor: null }));
  };
  const brokerEnds = (outcome: LinkOutcome) => {
    world.link.goOnline();
    world.link.automatic.set("message.state", () => outcome);
  };
  const receive = (given: Partial<InboxArrival> = {}) =>
    world.stores.inbox.insert(
      {
        clientMessageId: "order-1",
        brokerMessageId: brokerId,
        historyId: 7,
        topic: "general",
        senderPubkey: bob,
        priority: "next",
        meta: "",
        replyToId: undefined,
        acceptedAt: 40,
        sealed: false,
        fromAgent: undefined,
        toAgent: undefined,
        unreadable: undefined,
        body: new TextEncoder().encode("hello"),
        senderName: "bob once",
        restored: false,
        ...given,
      },
      60,
    );
  // biome-ignore lint/suspicious/noExplicitAny: the facts are looked at field by field
  const ask = (id: string) => findMessage(ports, id) as Promise<any>;
  return { ...world, ask, answerState, brokerSays, brokerEnds, receive };
}

const queued = (outbox_id: string, at: number) => ({ stage: "queued", at, outbox_id });
const stored = (at: number) => ({ stage: "stored", at, broker_message_id: brokerId, history_id: 7 });
const delivered = (recipient_pubkey: string, recipient_name: string | null, at: number) => ({
  stage: "delivered",
  at,
  recipient_pubkey,
  recipient_name,
});

describe("a message that was sent from here", () => {
  it("is queued while it waits, with what its tries have met", async () => {
    const { ask, insert, clock } = await setUp();
    const id = await insert("order-1", { attempts: 2, last_error: "rate_limited: wait", next_attempt_at: 99 });
    expect(await ask("order-1")).toEqual({
      id: "order-1",
      client_message_id: "order-1",
      outbox_id: id,
      inbox_id: null,
      broker_message_id: null,
      history_id: null,
      to: "#general",
      destination: { kind: "topic", ref: "general" },
      sender_pubkey: own,
      sender_name: "me",
      state: "queued",
      fate: "refused",
      attempts: 2,
      next_attempt_at: 99,
      last_error: "rate_limited: wait",
      broker: "not_asked",
      stages: [queued(id, clock.nowMs())],
      counts: null,
      deliveries: null,
      queue: null,
      dismissed: null,
      notes: [],
      chain: [
        {
          outbox_id: id,
          client_message_id: "order-1",
          status: "pending",
          fate: "refused",
          enqueued_at: clock.nowMs(),
          broker_message_id: null,
          superseded_by: null,
          accept_duplicate: false,
        },
      ],
    });
  });

  it("is inflight during a try", async () => {
    const { ask, insert } = await setUp();
    await insert("order-1", { status: "inflight" });
    const facts = await ask("order-1");
    expect(facts).toMatchObject({ state: "inflight", fate: "unknown", next_attempt_at: null });
    expect(facts.stages.at(-1)).toEqual({ stage: "inflight", at: null });
  });

  it("is found by client, outbox and broker id, with the broker and without", async () => {
    const { ask, insert, brokerSays, link } = await setUp();
    const id = await insert("order-1", done);
    await insert("order-2");
    const { id: _, ...facts } = await ask("order-1");
    expect(facts).toMatchObject({ state: "stored", fate: "committed", broker: "not_reachable", deliveries: null });
    expect(facts.stages.at(-1)).toEqual(stored(50));
    expect(await ask(id)).toEqual({ id, ...facts });
    expect(await ask(brokerId)).toEqual({ id: brokerId, ...facts });
    brokerSays();
    const { id: __, ...asked } = await ask("order-1");
    expect(asked).toMatchObject({ state: "stored", broker: "asked", deliveries: [] });
    expect(asked.stages.at(-1)).toEqual(stored(40));
    expect(await ask(brokerId)).toEqual({ id: brokerId, ...asked });
    expect(link.requests.at(-1)).toMatchObject({
      operation: "message.state",
      input: { broker_message_id: brokerId, limit: 1_000 },
    });
  });

  it("is found by its broker id as a tombstone too", async () => {
    const { ask, insert, prune } = await setUp();
    const id = await insert("order-1", done);
    expect(await prune()).toBe(1);
    expect(await ask(brokerId)).toMatchObject({ outbox_id: id, state: "stored", fate: "committed" });
  });

  it("is delivered for each recipient on its own, and as a whole only when no recipient waits any more", async () => {
    const { ask, insert, brokerSays } = await setUp();
    const id = await insert("order-1", done);
    brokerSays([bob, "delivered", 45], [carol, "unsettled", null]);
    const half = await ask(id);
    expect([half.state, half.counts]).toEqual(["stored", { unsettled: 1, delivered: 1, expired: 0 }]);
    expect(half.stages.slice(1)).toEqual([stored(40), delivered(bob, "bob", 45)]);
    expect(half.deliveries).toEqual([
      { recipient_pubkey: bob, recipient_name: "bob", state: "delivered", settled_at: 45 },
      { recipient_pubkey: carol, recipient_name: null, state: "unsettled", settled_at: null },
    ]);
    brokerSays([bob, "delivered", 45], [carol, "expired", 46]);
    const whole = await ask(id);
    expect(whole.state).toBe("delivered");
    expect(whole.stages.at(-1)).toMatchObject({ stage: "expired", at: 46, recipient_pubkey: carol });
    brokerSays([bob, "expired", 45], [carol, "expired", 46]);
    expect((await ask(id)).state).toBe("expired");
  });

  it("to very many is read page by page, and judged by the broker's own numbers", async () => {
    const { ask, insert, answerState, link } = await setUp();
    const id = await insert("order-1", done);
    const keys = [bob, carol, "dd".repeat(32)];
    answerState(({ after }) => {
      const at = keys.indexOf(String(after)) + 1;
      const delivery = { recipient_pubkey: keys[at], state: "delivered", settled_at: 45 };
      const next_cursor = at + 1 < keys.length ? keys[at] : null;
      return { counts: { unsettled: 0, delivered: 3, expired: 0 }, deliveries: [delivery], next_cursor };
    });
    const facts = await ask(id);
    expect(facts.deliveries.map((each: { recipient_pubkey: string }) => each.recipient_pubkey)).toEqual(keys);
    expect(facts.state).toBe("delivered");
    expect(link.ofKind("message.state")).toHaveLength(3);
    answerState(() => ({ counts: { unsettled: 1, delivered: 0, expired: 0 }, deliveries: [], next_cursor: bob }));
    expect((await ask(id)).state).toBe("stored");
    expect(link.ofKind("message.state")).toHaveLength(3 + 10);
  });

  it.each([
    ["leased", { unsettled: 1, delivered: 0, expired: 0 }, "stored", undefined],
    ["parked", { unsettled: 1, delivered: 0, expired: 0 }, "stored", undefined],
    ["acked", { unsettled: 0, delivered: 1, expired: 0 }, "delivered", { stage: "delivered", at: 48 }],
    ["expired", { unsettled: 0, delivered: 0, expired: 1 }, "expired", { stage: "expired", at: 48 }],
  ])("to a queue is what its state there says: %s", async (queueState, counts, state, stage) => {
    const { ask, insert, answerState } = await setUp();
    await insert("order-1", { ...done, destination_kind: "queue", destination_ref: "jobs" });
    const settled_at = stage === undefined ? null : 48;
    answerState(() => ({ counts, queue: { state: queueState, deliveries: 2, settled_at } }));
    const facts = await ask("order-1");
    expect([facts.state, facts.queue]).toEqual([state, { state: queueState, deliveries: 2, settled_at }]);
    expect(facts.stages[2]).toEqual(stage);
  });

  it("to oneself is delivered and read as this inbox says, also while the broker is away", async () => {
    const { ask, insert, receive, stores } = await setUp();
    await insert("order-1", { ...done, destination_kind: "dm", destination_ref: own });
    await receive({ senderPubkey: own, topic: undefined });
    const facts = await ask("order-1");
    expect(facts).toMatchObject({ state: "delivered", inbox_id: expect.any(String), broker: "not_reachable" });
    expect(facts.stages.slice(1)).toEqual([stored(40), delivered(own, "me", 60)]);
    await stores.entries.markRead(facts.inbox_id, 70);
    const read = await ask("order-1");
    expect(read.state).toBe("read");
    expect(read.stages.at(-1)).toEqual({ stage: "read", at: 70, recipient_pubkey: own, recipient_name: "me" });
  });

  it("is dead with its fate and its reason, and aborted with its successor and the whole chain", async () => {
    const { ask, insert, requeue, clock } = await setUp();
    await insert("order-1", { status: "dead", attempts: 1, unanswered: 1, last_error: "timed_out: x" });
    const dead = await ask("order-1");
    expect(dead).toMatchObject({ state: "dead", fate: "unknown", last_error: "timed_out: x", broker: "not_asked" });
    expect(dead.stages.at(-1)).toEqual({ stage: "dead", at: null, fate: "unknown", last_error: "timed_out: x" });
    const answer = await requeue({ id: "order-1", new_client_id: "order-2", accept_duplicate: true });
    const aborted = await ask("order-1");
    expect(aborted.state).toBe("aborted");
    expect(aborted.stages.at(-1)).toEqual({
      stage: "aborted",
      at: clock.nowMs(),
      by: "operator",
      superseded_by: answer.new.outbox_id,
      fate: "unknown",
    });
    const chain = [
      ["order-1", "aborted", true],
      ["order-2", "pending", true],
    ];
    for (const id of ["order-1", "order-2"]) {
      const facts = await ask(id);
      const links = facts.chain as { client_message_id: string; status: string; accept_duplicate: boolean }[];
      expect(links.map((link) => [link.client_message_id, link.status, link.accept_duplicate])).toEqual(chain);
    }
  });

  it.each<[string, LinkOutcome, string]>([
    ["no longer keeps it", { type: "answered", status: 404, body: {} }, "not_found"],
    ["does not answer", { type: "timed_out" }, "not_reachable"],
    ["has trouble", { type: "answered", status: 500, body: {} }, "not_reachable"],
    ["answers something else", { type: "answered", status: 200, body: {} }, "not_reachable"],
  ])("is shown as it is known here where the broker %s", async (_, outcome, broker) => {
    const { ask, insert, brokerEnds } = await setUp();
    await insert("order-1", done);
    brokerEnds(outcome);
    const facts = await ask("order-1");
    expect(facts).toMatchObject({ state: "stored", broker, deliveries: null });
    expect(facts.stages.at(-1)).toEqual(stored(50));
  });
});

describe("a message that was received here", () => {
  it("is delivered, then read, with its sender, by inbox, client and broker id", async () => {
    const { ask, receive, stores } = await setUp();
    await receive();
    const { id: _, ...facts } = await ask("order-1");
    expect(facts).toEqual({
      client_message_id: "order-1",
      outbox_id: null,
      inbox_id: expect.stringMatching(/^[0-9A-Z]{26}$/),
      broker_message_id: brokerId,
      history_id: 7,
      to: null,
      destination: { kind: "topic", ref: "general" },
      sender_pubkey: bob,
      sender_name: "bob",
      state: "delivered",
      fate: null,
      attempts: null,
      next_attempt_at: null,
      last_error: null,
      broker: "not_reachable",
      stages: [stored(40), delivered(own, "me", 60)],
      counts: null,
      deliveries: [{ recipient_pubkey: own, recipient_name: "me", state: "delivered", settled_at: 60 }],
      queue: null,
      dismissed: null,
      notes: [],
      chain: [],
    });
    expect(await ask(facts.inbox_id)).toEqual({ id: facts.inbox_id, ...facts });
    expect(await ask(brokerId)).toEqual({ id: brokerId, ...facts });
    await stores.entries.markRead("order-1", 70);
    expect((await ask(brokerId)).state).toBe("read");
  });

  it("is known here before the broker has heard of it", async () => {
    const { ask, receive, brokerSays } = await setUp();
    await receive();
    brokerSays([own, "unsettled", null], [carol, "delivered", 45]);
    const facts = await ask("order-1");
    expect(facts.stages.slice(1)).toEqual([delivered(own, "me", 60), delivered(carol, null, 45)]);
  });

  it("answers from what retention has left of it", async () => {
    const { ask, receive, stores } = await setUp();
    await receive();
    await stores.entries.markRead("order-1", 70);
    expect(await stores.inbox.removeReceivedBefore(Number.MAX_SAFE_INTEGER / 100, 80, 10)).toBe(1);
    expect(await ask("order-1")).toMatchObject({
      state: "read",
      sender_pubkey: null,
      destination: null,
      history_id: 7,
    });
  });

  it("of another member that used an id of ours is not mistaken for our own", async () => {
    const { ask, insert, receive } = await setUp();
    await insert("order-1", { status: "dead", attempts: 1, last_error: "idempotency_key_reused: taken" });
    await receive();
    expect(await ask("order-1")).toMatchObject({ state: "dead", inbox_id: null, broker_message_id: null });
    expect(await ask(brokerId)).toMatchObject({ state: "delivered", outbox_id: null, sender_pubkey: bob });
  });
});

describe("an id that is not known here", () => {
  it.each(["missing", "01ARZ3NDEKTSV4RRFFQ69G5FAV"])(
    "is not found, without asking, and how to ask is said: %s",
    async (id) => {
      const { ask, link } = await setUp();
      link.goOnline();
      const message = expect.stringMatching(/sent without this daemon is found by its broker id.*commit.*space log/);
      await expect(ask(id)).rejects.toMatchObject({ code: "not_found", message });
      expect(link.requests).toEqual([]);
    },
  );

  it("is answered by the broker where it is the broker's and this member may see it", async () => {
    const { ask, brokerSays } = await setUp();
    brokerSays([bob, "delivered", 45]);
    expect(await ask(brokerId)).toMatchObject({
      client_message_id: "order-1",
      outbox_id: null,
      inbox_id: null,
      sender_pubkey: own,
      state: "delivered",
      fate: null,
      broker: "asked",
      chain: [],
    });
  });

  it("is no more than numbers where this member owns the mesh and may not see the message", async () => {
    const { ask, brokerEnds } = await setUp();
    const counts = { unsettled: 0, delivered: 2, expired: 0 };
    const body = { broker_message_id: brokerId, accepted_at: 40, counts };
    brokerEnds({ type: "answered", status: 200, body });
    const facts = await ask(brokerId);
    expect(facts).toMatchObject({ client_message_id: null, history_id: null, destination: null, sender_pubkey: null });
    expect(facts).toMatchObject({ state: "delivered", counts, deliveries: null });
    expect(facts.stages).toEqual([{ stage: "stored", at: 40, broker_message_id: brokerId, history_id: null }]);
  });

  it("is not found where the broker knows it as little, and open where it cannot be asked", async () => {
    const { ask, brokerEnds, link } = await setUp();
    brokerEnds({ type: "answered", status: 404, body: {} });
    await expect(ask(brokerId)).rejects.toMatchObject({ code: "not_found" });
    link.goOffline();
    await expect(ask(brokerId)).rejects.toMatchObject({ code: "broker_unreachable" });
  });

  it("is looked for through the whole outbox, step by step", async () => {
    const { ask, stores, link } = await setUp();
    const rows = 4_500;
    const insert = `INSERT INTO outbox (id, client_message_id, request_fingerprint, wire_fingerprint, to_address,
        destination_kind, destination_ref, priority, meta, envelope_version, enqueued_at, next_attempt_at, status,
        broker_message_id, payload)
      VALUES (?, ?, zeroblob(32), zeroblob(32), '#a', 'topic', 'a', 'next', '', '1', 1, 1, 'done', ?, zeroblob(1))`;
    stores.outboxDb.transaction(() => {
      for (let row = 0; row < rows; row++) {
        stores.outboxDb.sql(insert).run(stores.nextOutboxId(), `c-${row}`, row === 0 ? brokerId : `b-${row}`);
      }
    });
    let steps = 0;
    const counting = {
      ...stores.search,
      outbox: (id: string, before: string | undefined) => {
        steps++;
        return stores.search.outbox(id, before);
      },
    };
    const world = { ...stores, search: counting, ownPubkey: own, link, requestTimeoutMs: 1 };
    const facts = await findMessage({ ...world, way: () => calm, nameOf: () => undefined }, brokerId);
    expect([facts.client_message_id, steps]).toEqual(["c-0", 3]);
    await expect(ask("01890000-0000-7000-8000-0000000000ff")).rejects.toMatchObject({ code: "broker_unreachable" });
  });
});
