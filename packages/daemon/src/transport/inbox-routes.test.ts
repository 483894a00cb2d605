import { describe, expect, it } from "vitest";
import { deliver, delivery } from "../testing/deliveries.ts";
import { EventReader } from "../testing/event-reader.ts";
import { startTestDaemon } from "../testing/test-daemon.ts";

type Daemon = Awaited<ReturnType<typeof startTestDaemon>>;

async function withMessages(count: number) {
  const daemon = await startTestDaemon();
  const events = await EventReader.open(daemon);
  const arrive = async (from: number, upTo: number) => {
    for (let n = from; n <= upTo; n++) deliver(daemon.link, delivery(n, { body: `m${n}` }));
    await events.untilCount("message", upTo);
  };
  await arrive(1, count);
  return { daemon, arrive };
}

const get = async (daemon: Daemon, query: string) => (await daemon.call("GET", `/v1/inbox${query}`)).body;
const bodiesOf = ({ items }: { readonly items: readonly { readonly body: string }[] }) => items.map(({ body }) => body);

describe("GET /v1/inbox", () => {
  it("answers as ever where nothing new is asked for: the oldest first, and no more fields than before", async () => {
    const { daemon } = await withMessages(3);
    const page = await get(daemon, "?limit=2");
    expect(Object.keys(page)).toEqual(["items", "next_cursor"]);
    expect(bodiesOf(page)).toEqual(["m1", "m2"]);
    expect(bodiesOf(await get(daemon, `?cursor=${page.next_cursor}`))).toEqual(["m3"]);
  });

  it("shows the newest page, and the ones before it", async () => {
    const { daemon } = await withMessages(5);
    const newest = await get(daemon, "?newest=true&limit=2");
    expect(bodiesOf(newest)).toEqual(["m4", "m5"]);
    expect(newest).toMatchObject({ next_cursor: null, prev_cursor: newest.items[0].id, older: 3 });
    const before = await get(daemon, `?before=${newest.prev_cursor}&limit=2`);
    expect([bodiesOf(before), before.older]).toEqual([["m2", "m3"], 1]);
    expect(bodiesOf(await get(daemon, `?cursor=${before.next_cursor}`))).toEqual(["m4", "m5"]);
    expect(await get(daemon, `?before=${before.prev_cursor}`)).toMatchObject({ prev_cursor: null, older: 0 });
  });

  it("shows only what is not marked as read with unread", async () => {
    const { daemon } = await withMessages(3);
    const { items } = await get(daemon, "");
    await daemon.call("POST", `/v1/inbox/${items[1].id}/read`);
    expect(bodiesOf(await get(daemon, "?unread=true"))).toEqual(["m1", "m3"]);
    expect(bodiesOf(await get(daemon, "?unread=true&newest=true&limit=1"))).toEqual(["m3"]);
    expect(bodiesOf(await get(daemon, "?unread=false"))).toEqual(["m1", "m2", "m3"]);
  });

  it("refuses two cursors at once, and cursors that are none", async () => {
    const { daemon } = await withMessages(1);
    const [{ id }] = (await get(daemon, "")).items;
    for (const query of [`before=${id}&cursor=${id}`, `before=${id}&newest=true`, "before=nowhere"]) {
      expect(await get(daemon, `?${query}`), query).toMatchObject({ error: "invalid_request", field: "before" });
    }
    expect(await get(daemon, `?cursor=${id}&newest=true`)).toMatchObject({ error: "invalid_request", field: "newest" });
    expect(await get(daemon, "?newest=yes")).toMatchObject({ error: "invalid_request" });
  });
});

describe("GET /v1/outbox", () => {
  it("shows the newest page, and the ones before it", async () => {
    const daemon = await startTestDaemon();
    for (let n = 1; n <= 3; n++) {
      await daemon.send({ to: "@self", message: "x", client_message_id: `order-${n}` });
    }
    const list = async (query: string) => (await daemon.call("GET", `/v1/outbox?${query}`)).body;
    const idsOf = (page: { items: { client_message_id: string }[] }) => page.items.map((row) => row.client_message_id);
    const newest = await list("newest=true&limit=2");
    expect([idsOf(newest), newest.older, newest.next_cursor]).toEqual([["order-2", "order-3"], 1, null]);
    expect(idsOf(await list(`before=${newest.prev_cursor}`))).toEqual(["order-1"]);
    expect(Object.keys(await list(""))).toEqual(["items", "next_cursor"]);
  });
});

describe("POST /v1/inbox/next", () => {
  const next = async (daemon: Daemon, body: object) =>
    (await daemon.call("POST", "/v1/inbox/next", { json: body })).body;

  it("keeps a reader's position through a restart of the daemon", async () => {
    const { daemon } = await withMessages(3);
    const first = await next(daemon, { reader: "web-1", limit: 2 });
    expect(first).toMatchObject({ reader: "web-1", waiting: 0, older: 1, prev_cursor: first.items[0].id });
    expect(bodiesOf(first)).toEqual(["m2", "m3"]);
    expect(bodiesOf(await get(daemon, `?before=${first.prev_cursor}`))).toEqual(["m1"]);
    await daemon.daemon.stop();
    const second = await startTestDaemon({ at: daemon });
    const again = await next(second, { reader: "web-1", limit: 2 });
    expect(again.items).toMatchObject([
      { body: "m2", again: true },
      { body: "m3", again: true },
    ]);
    const done = await next(second, { reader: "web-1", acknowledge: again.acknowledge });
    expect(done).toMatchObject({ items: [], acknowledge: null, position: again.acknowledge, waiting: 0 });
  });

  it("gives each later message once where every answer is acknowledged", async () => {
    const { daemon, arrive } = await withMessages(1);
    const first = await next(daemon, { reader: "web-1" });
    await arrive(2, 5);
    const second = await next(daemon, { reader: "web-1", acknowledge: first.acknowledge, limit: 3 });
    expect([bodiesOf(second), second.waiting]).toEqual([["m2", "m3", "m4"], 1]);
    expect(second.items[0]).not.toHaveProperty("again");
    expect(bodiesOf(await next(daemon, { reader: "web-1", acknowledge: second.acknowledge }))).toEqual(["m5"]);
  });

  it("refuses what is no reader, no cursor and no number of messages", async () => {
    const daemon = await startTestDaemon();
    for (const body of [{}, { reader: "" }, { reader: "a b" }, { reader: "x".repeat(65) }]) {
      expect(await next(daemon, body)).toMatchObject({ error: "invalid_request", field: "reader" });
    }
    expect(await next(daemon, { reader: "a", acknowledge: "1" })).toMatchObject({ field: "acknowledge" });
    expect(await next(daemon, { reader: "a", limit: 1_001 })).toMatchObject({ field: "limit" });
    expect(await next(daemon, { reader: "a", since: 1 })).toMatchObject({ error: "unknown_field" });
  });
});
