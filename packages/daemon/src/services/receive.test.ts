import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, it } from "vitest";
import type { InboxStore } from "../ports.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { ScriptedLink, settle } from "../testing/scripted-link.ts";
import { openTestStores, recordingLog } from "../testing/test-stores.ts";
import { InboxRebuild } from "./rebuild-inbox.ts";
import { Receiver, type StoredDelivery } from "./receive.ts";

const me = "ee".repeat(32);
const sender = "ab".repeat(32);

function message(historyId: number, given: Partial<HistoryItem> = {}): HistoryItem {
  return {
    history_id: historyId,
    broker_message_id: `b-${historyId}`,
    client_message_id: `c-${historyId}`,
    destination: { kind: "topic", ref: "general" },
    sender_pubkey: sender,
    envelope_version: "1",
    body: `text ${historyId}`,
    meta: null,
    priority: "next",
    reply_to_id: null,
    accepted_at: 1_700_000_000_000,
    ...given,
  };
}

async function setUp(
  inboxWith: (store: InboxStore) => InboxStore = (store) => store,
  nextTurn: (run: () => void) => void = setImmediate,
) {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const link = new ScriptedLink();
  const log = recordingLog();
  const inbox = inboxWith(stores.inbox);
  const sealer = { open: () => undefined, openVersion2: () => undefined };
  const nameOf = () => undefined;
  const stored: StoredDelivery[] = [];
  const receiver = new Receiver({
    ownPubkey: me,
    inbox,
    link,
    sealer,
    nameOf,
    clock,
    log,
    nextTurn,
    requestTimeoutMs: 1_000,
    onStored: (delivery) => stored.push(delivery),
  });
  const rebuild = new InboxRebuild({
    ownPubkey: me,
    inbox,
    link,
    sealer,
    nameOf,
    inlineBytes: () => 65_536,
    clock,
    log,
    requestTimeoutMs: 1_000,
  });
  const rows = () =>
    stores.inboxDb
      .sql<{ history_id: number; restored: number }>("SELECT history_id, restored FROM inbox_message ORDER BY id")
      .all();
  return { clock, stores, link, log, receiver, rebuild, rows, stored };
}

describe("a delivery", () => {
  it("is acked only after its row is durable", async () => {
    let store: () => void = () => undefined;
    const { receiver, link, rows } = await setUp((inner) => ({
      ...inner,
      insert: async (...args) => {
        await new Promise<void>((resolve) => {
          store = resolve;
        });
        return inner.insert(...args);
      },
    }));
    receiver.receive(message(1));
    await settle();
    expect(link.requests).toEqual([]);
    store();
    const ack = await link.requested("ack");
    expect(ack.input).toEqual({ history_ids: [1] });
    expect(rows()).toEqual([{ history_id: 1, restored: 0 }]);
  });

  it("is acked in one frame with all that the same turn stored", async () => {
    const turns: (() => void)[] = [];
    const { receiver, link } = await setUp(undefined, (run) => turns.push(run));
    receiver.receive(message(1));
    receiver.receive(message(2));
    await settle();
    expect(link.requests).toEqual([]);
    for (const turn of turns) turn();
    expect(link.requests.map(({ input }) => input)).toEqual([{ history_ids: [1, 2] }]);
  });

  it("that comes again makes no second row and is acked again", async () => {
    const { receiver, link, rows } = await setUp();
    link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
    receiver.receive(message(1));
    receiver.receive(message(1));
    await settle();
    receiver.receive(message(1, { body: "something else under the same id" }));
    await settle();
    expect(rows()).toEqual([{ history_id: 1, restored: 0 }]);
    expect(link.ofKind("ack").map(({ input }) => input.history_ids)).toEqual([[1], [1]]);
  });

  it("of another message under a known client id is stored beside it, acked, and said aloud once", async () => {
    const { receiver, link, rows, log, stored } = await setUp();
    link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
    receiver.receive(message(1));
    await settle();
    const again = message(2, { client_message_id: "c-1", body: "something else under the same id" });
    receiver.receive(again);
    await settle();
    receiver.receive(again);
    receiver.receive(message(1));
    await settle();
    expect(rows()).toEqual([1, 2].map((history_id) => ({ history_id, restored: 0 })));
    expect(stored.map(({ isNews, isReused }) => [isNews, isReused])).toEqual([
      [true, false],
      [true, true],
      [false, false],
      [false, false],
    ]);
    expect(link.ofKind("ack").flatMap(({ input }) => input.history_ids)).toEqual([1, 2, 2, 1]);
    expect(log.events()).toEqual(["client_id_reused"]);
  });

  it("among many is acked in few frames of a bounded size", async () => {
    const { receiver, link } = await setUp();
    link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
    for (let id = 1; id <= 2_500; id++) receiver.receive(message(id));
    await settle(60);
    const sizes = link.ofKind("ack").map(({ input }) => (input.history_ids as number[]).length);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(2_500);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
    expect(sizes.length).toBeLessThanOrEqual(12);
  });

  it("that the disk refuses is not acked, and is stored when the disk takes it", async () => {
    let full = true;
    const { receiver, link, rows, clock, log } = await setUp((inner) => ({
      ...inner,
      insert: async (...args) => {
        if (full) throw new StorageError("disk_full", "no room");
        return inner.insert(...args);
      },
    }));
    receiver.receive(message(1));
    await settle();
    expect(link.requests).toEqual([]);
    expect(log.events()).toEqual(["inbox_insert_failed"]);
    full = false;
    clock.advance(5_000);
    expect((await link.requested("ack")).input).toEqual({ history_ids: [1] });
    expect(rows()).toHaveLength(1);
  });

  it("whose ack the broker did not take is acked again, and after a lost connection is not", async () => {
    const { receiver, link, clock } = await setUp();
    receiver.receive(message(1));
    (await link.requested("ack")).answer(503, {});
    await settle();
    clock.advance(5_000);
    const again = await link.requested("ack");
    expect(again.input).toEqual({ history_ids: [1] });
    again.end({ type: "connection_lost" });
    await settle();
    clock.advance(60_000);
    await settle();
    expect(link.ofKind("ack")).toHaveLength(2);
  });

  it("that cannot be opened is kept, marked and acked", async () => {
    const { receiver, link, stores, log } = await setUp();
    const { body: _, ...sealed } = message(1, { envelope_version: "2", destination: { kind: "dm", ref: me } });
    receiver.receive({ ...sealed, body_base64: "AAEC" });
    await link.requested("ack");
    expect(stores.inboxDb.sql("SELECT unreadable, body FROM inbox").all()).toEqual([
      { unreadable: 1, body: Uint8Array.of(0, 1, 2) },
    ]);
    expect(log.events()).toEqual(["unreadable_message"]);
  });

  it("is not taken in after the stop", async () => {
    const { receiver, link, rows } = await setUp();
    receiver.stop();
    receiver.receive(message(1));
    await receiver.settled();
    expect(rows()).toEqual([]);
    expect(link.requests).toEqual([]);
  });
});

describe("a rebuild from history", () => {
  const page = (items: HistoryItem[], nextAfter: number | null) => ({ items, next_after: nextAfter });

  it("restores what this member received, page by page, and fires nothing for it", async () => {
    const { rebuild, link, rows, stores } = await setUp();
    await stores.inbox.setRebuildAfter(0);
    const done = rebuild.run();
    const first = await link.requested("history");
    expect(first.input).toEqual({ after: 0, limit: 13 });
    first.answer(
      200,
      page(
        [
          message(1),
          message(2, { sender_pubkey: me }),
          message(3, { destination: { kind: "dm", ref: me } }),
          message(4, { destination: { kind: "dm", ref: sender }, sender_pubkey: me }),
          message(5, { destination: { kind: "queue", ref: "jobs" } }),
        ],
        5,
      ),
    );
    const second = await link.requested("history");
    expect(second.input).toMatchObject({ after: 5 });
    expect(stores.inbox.rebuildAfter()).toBe(5);
    second.answer(200, page([message(6), { odd: true } as unknown as HistoryItem], null));
    expect(await done).toBe(true);
    expect(rows()).toEqual([1, 3, 6].map((history_id) => ({ history_id, restored: 1 })));
    expect(stores.inbox.rebuildAfter()).toBeUndefined();
    expect(link.ofKind("ack")).toEqual([]);
  });

  it("goes on where it was interrupted, with smaller pages", async () => {
    const { rebuild, link, stores } = await setUp();
    await stores.inbox.setRebuildAfter(100);
    const interrupted = rebuild.run();
    (await link.requested("history")).end({ type: "connection_lost" });
    expect(await interrupted).toBe(false);
    const resumed = rebuild.run();
    const request = await link.requested("history");
    expect(request.input).toEqual({ after: 100, limit: 6 });
    request.answer(200, page([], null));
    expect(await resumed).toBe(true);
  });

  it("asks for nothing where nothing was lost", async () => {
    const { rebuild, link } = await setUp();
    expect(await rebuild.run()).toBe(true);
    expect(link.requests).toEqual([]);
  });

  it("restores every message that had a client id, whichever is here already", async () => {
    const { rebuild, receiver, link, rows, stores, log } = await setUp();
    link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
    const reused = [1, 2, 3].map((historyId) => message(historyId, { client_message_id: "c-1" }));
    receiver.receive(message(2, { client_message_id: "c-1" }));
    await settle();
    await stores.inbox.setRebuildAfter(0);
    const done = rebuild.run();
    (await link.requested("history")).answer(200, page(reused, null));
    await done;
    expect(rows().map(({ history_id }) => history_id)).toEqual([2, 1, 3]);
    expect(stores.entries.find("c-1")?.historyId).toBe(3);
    expect(log.events()).toEqual(["inbox_rebuilt"]);
  });

  it("leaves a message that is there already as it is", async () => {
    const { rebuild, receiver, link, rows, stores } = await setUp();
    link.automatic.set("ack", () => ({ type: "answered", status: 200, body: {} }));
    receiver.receive(message(1));
    await settle();
    await stores.inbox.setRebuildAfter(0);
    const done = rebuild.run();
    (await link.requested("history")).answer(200, page([message(1)], null));
    await done;
    expect(rows()).toEqual([{ history_id: 1, restored: 0 }]);
  });
});
