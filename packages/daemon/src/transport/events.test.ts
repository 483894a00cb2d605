import { readFileSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { deliver, delivery } from "../testing/deliveries.ts";
import { EventReader } from "../testing/event-reader.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { settle, testBrokerKey } from "../testing/scripted-link.ts";
import { startTestDaemon, type TestDaemon } from "../testing/test-daemon.ts";

const historyIds = (reader: EventReader) => reader.of("message").map(({ data }) => data.history_id as number);

async function stored(daemon: TestDaemon, count: number): Promise<void> {
  for (;;) {
    const { body } = await daemon.call("GET", "/v1/inbox?limit=1000");
    if (body.items.length >= count) return;
  }
}

describe("GET /v1/events", () => {
  it("tells of each message as the inbox shows it, in the order of arrival, with its id", async () => {
    const daemon = await startTestDaemon();
    const reader = await EventReader.open(daemon);
    expect(reader.status).toBe(200);
    expect(reader.headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    deliver(daemon.link, delivery(1, { body: "line\nbreaks\r\n", meta: { a: 1 } }), delivery(2), delivery(3));
    await reader.untilCount("message", 3);
    const { body } = await daemon.call("GET", "/v1/inbox");
    expect(reader.of("message").map(({ data }) => data)).toEqual(body.items);
    expect(reader.of("message").map(({ id }) => id)).toEqual(body.items.map((item: { id: string }) => item.id));
  });

  it("has no head to ask for alone, since its answer goes on", async () => {
    const daemon = await startTestDaemon();
    expect((await daemon.call("HEAD", "/v1/events")).status).toBe(405);
    expect(await daemon.call("HEAD", "/v1/health")).toMatchObject({ status: 200, body: undefined });
  });

  it("begins with how the broker is, so that every reader has an id to resume from at once", async () => {
    const daemon = await startTestDaemon();
    deliver(daemon.link, delivery(1));
    await stored(daemon, 1);
    const reader = await EventReader.open(daemon);
    await reader.untilCount("broker_status", 1);
    expect(reader.events).toMatchObject([{ kind: "broker_status", data: { state: "connecting" } }]);
    reader.cut();
    deliver(daemon.link, delivery(2));
    await stored(daemon, 2);
    const resumed = await EventReader.open(daemon, { lastEventId: reader.lastEventId ?? "" });
    await resumed.untilCount("message", 1);
    expect(historyIds(resumed)).toEqual([2]);
  });

  it("tells of the broker once for each change, and not of every try to reconnect", async () => {
    const daemon = await startTestDaemon();
    const reader = await EventReader.open(daemon);
    daemon.link.goOnline();
    for (let round = 0; round < 3; round++) {
      daemon.link.goOffline();
      daemon.link.become({ state: "connecting" });
    }
    daemon.link.goOnline();
    await reader.untilCount("broker_status", 4);
    const states = reader.of("broker_status").map(({ data }) => data);
    expect(states).toEqual([
      { state: "connecting" },
      { state: "online", broker_key: testBrokerKey },
      { state: "offline", reason: "lost", detail: "the test said so" },
      { state: "online", broker_key: testBrokerKey },
    ]);
  });

  it("tells of peers that come and go, by name where it is known", async () => {
    const daemon = await startTestDaemon();
    const [bob, carol] = ["ab".repeat(32), "cd".repeat(32)];
    daemon.link.automatic.set("members.list", () => ({
      type: "answered",
      status: 200,
      body: { items: [{ pubkey: bob, name: "bob" }] },
    }));
    daemon.link.goOnline();
    await settle();
    const reader = await EventReader.open(daemon);
    const joined = {
      pubkey: bob,
      name: "bob",
      role: "member",
      connected_at: 5,
      summary: "",
      status: "busy",
      visible: true,
      avatar: "",
      title: "",
      bio: "",
      capabilities: ["build"],
    } as const;
    const asked = daemon.link.ofKind("members.list").length;
    daemon.link.options?.onPush({ type: "peer_join", ...joined });
    daemon.link.options?.onPush({ type: "peer_leave", pubkey: bob });
    expect(daemon.link.ofKind("members.list")).toHaveLength(asked);
    daemon.link.options?.onPush({ type: "peer_leave", pubkey: carol });
    await reader.untilCount("peer_leave", 2);
    const fingerprint = bob.slice(0, 16).replace(/(.{4})(?!$)/g, "$1 ");
    expect(reader.of("peer_join").map(({ data }) => data)).toEqual([{ ...joined, fingerprint, trust: "unpinned" }]);
    expect(reader.of("peer_leave").map(({ data }) => data)).toEqual([
      { pubkey: bob, name: "bob" },
      { pubkey: carol, name: null },
    ]);
    // A member that the list does not have has joined the mesh since it was read.
    expect(daemon.link.ofKind("members.list")).toHaveLength(asked + 1);
  });

  it("tells of every change of an outbox row after it is on disk", async () => {
    const daemon = await startTestDaemon();
    const reader = await EventReader.open(daemon);
    daemon.link.goOnline();
    const sent = await daemon.send({ to: "#general", message: "m", client_message_id: "first" });
    const first = await daemon.link.requested("send");
    await reader.untilCount("outbox", 2);
    first.answer(201, { broker_message_id: "b", history_id: 1 });
    await reader.untilCount("outbox", 3);
    await daemon.send({ to: "#general", message: "m", client_message_id: "second" });
    (await daemon.link.requested("send")).answer(404, {
      error: "destination_not_found",
      message: "",
      retryable: false,
    });
    await reader.untilCount("outbox", 6);
    const changes = reader.of("outbox").map(({ data }) => data);
    expect(changes.slice(0, 3)).toEqual(
      ["pending", "inflight", "done"].map((status) => ({
        id: sent.body.outbox_id,
        client_message_id: "first",
        status,
      })),
    );
    expect(changes.slice(3).map(({ client_message_id, status }) => `${client_message_id} ${status}`)).toEqual([
      "second pending",
      "second inflight",
      "second dead",
    ]);
  });

  it("gives every event an id of its own, from which messages resume", async () => {
    const daemon = await startTestDaemon();
    const reader = await EventReader.open(daemon);
    deliver(daemon.link, delivery(1));
    await reader.untilCount("message", 1);
    await daemon.send({ to: "#general", message: "m" });
    await daemon.send({ to: "#general", message: "m" });
    await reader.untilCount("outbox", 2);
    deliver(daemon.link, delivery(2));
    await reader.untilCount("message", 2);
    const ids = reader.events.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.map((id) => id.split(".")[0])).toEqual([...ids.map((id) => id.split(".")[0] ?? "")].sort());
    for (const { id, kind } of reader.events) {
      const resumed = await EventReader.open(daemon, { path: `/v1/events?last_event_id=${id}` });
      const seenBefore = reader.events.slice(0, ids.indexOf(id) + 1).filter((event) => event.kind === "message").length;
      await resumed.untilCount("message", 2 - seenBefore);
      await settle();
      expect(historyIds(resumed), kind).toEqual([1, 2].slice(seenBefore));
    }
  });

  it("resumes over a restart of the daemon, and the header counts more than the query", async () => {
    const first = await startTestDaemon();
    const reader = await EventReader.open(first);
    deliver(first.link, delivery(1), delivery(2));
    await reader.untilCount("message", 2);
    const [one, two] = reader.of("message").map(({ id }) => id);
    await first.daemon.stop();
    await reader.ended;
    const second = await startTestDaemon({ at: first });
    deliver(second.link, delivery(3));
    const path = `/v1/events?last_event_id=${two}`;
    const resumed = await EventReader.open(second, { path, lastEventId: one ?? "" });
    await resumed.untilCount("message", 2);
    expect(historyIds(resumed)).toEqual([2, 3]);
  });

  it("fires nothing for what a rebuild restored, and fires what the broker had still to deliver", async () => {
    const daemon = await startTestDaemon();
    deliver(daemon.link, delivery(1));
    await stored(daemon, 1);
    const before = await EventReader.open(daemon);
    await before.untilCount("broker_status", 1);
    await daemon.daemon.stop();
    writeFileSync(daemon.paths.inboxDb, "x".repeat(8_192));
    const again = await startTestDaemon({ at: daemon });
    const reader = await EventReader.open(again, { lastEventId: before.lastEventId ?? "" });
    again.link.goOnline();
    const page = { items: [delivery(1), delivery(2)], next_after: null };
    (await again.link.requested("history")).answer(200, page);
    await stored(again, 2);
    deliver(again.link, delivery(2), delivery(3));
    await reader.untilCount("message", 2);
    await settle();
    expect(historyIds(reader)).toEqual([2, 3]);
  });

  it("starts anew for a reader whose id is beyond everything here", async () => {
    const daemon = await startTestDaemon();
    const reader = await EventReader.open(daemon, { lastEventId: "7ZZZZZZZZZZZZZZZZZZZZZZZZZ.5" });
    deliver(daemon.link, delivery(1));
    await reader.untilCount("message", 1);
  });

  it("refuses what is no id of an event", async () => {
    const daemon = await startTestDaemon();
    const zero = "0".repeat(26);
    for (const id of ["x", "01J", `${zero}.x`, `${zero}.1.2`, `${zero}.`, "7zzzzzzzzzzzzzzzzzzzzzzzzz"]) {
      const answer = await daemon.call("GET", `/v1/events?last_event_id=${id}`);
      expect(answer.body, id).toMatchObject({ error: "invalid_request", field: "last_event_id" });
    }
  });

  it("lets in as many readers as max_streams says, beside the requests in flight, and room comes back", async () => {
    const daemon = await startTestDaemon({ overrides: { ipc: { max_streams: 2, max_in_flight: 1 } } });
    const readers = [await EventReader.open(daemon), await EventReader.open(daemon)];
    const refused = await daemon.call("GET", "/v1/events");
    expect([refused.status, refused.body]).toMatchObject([429, { error: "too_many_streams", retryable: true }]);
    expect((await daemon.call("GET", "/v1/version")).status).toBe(200);
    readers[0]?.cut();
    let status = 0;
    for (let tries = 0; status !== 200 && tries < 1_000; tries++) status = (await EventReader.open(daemon)).status;
    expect(status).toBe(200);
  });

  it("does not count readers that left before they were answered", async () => {
    const daemon = await startTestDaemon();
    for (let count = 0; count < 40; count++) {
      await new Promise((resolve) => {
        const socket = connect(daemon.paths.sock, () => {
          socket.write("GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n", () => socket.destroy());
        });
        socket.on("close", resolve);
      });
    }
    const streams = async () => (await daemon.call("GET", "/v1/health")).body.event_streams;
    while ((await streams()) > 0);
    expect((await EventReader.open(daemon)).status).toBe(200);
  });

  it("stands behind the same guards as every route on the loopback", async () => {
    const daemon = await startTestDaemon({ overrides: { ipc: { tcp_enabled: true } } });
    const port = Number(readFileSync(daemon.paths.httpPort, "utf8"));
    const token = readFileSync(daemon.paths.localToken, "utf8").trim();
    const authorization = `Bearer ${token}`;
    expect((await EventReader.open(daemon, { port })).status).toBe(401);
    const origin = "https://evil.example";
    expect((await EventReader.open(daemon, { port, headers: { authorization, origin } })).status).toBe(403);
    const query = `/v1/events?last_event_id=${token}`;
    expect((await EventReader.open(daemon, { port, path: query, headers: { authorization } })).status).toBe(400);
    const reader = await EventReader.open(daemon, { port, headers: { authorization } });
    deliver(daemon.link, delivery(1));
    await reader.untilCount("message", 1);
  });

  it("says that it is still there when nothing happens", async () => {
    const clock = new ManualClock();
    const daemon = await startTestDaemon({ clock });
    const reader = await EventReader.open(daemon);
    await reader.untilCount("broker_status", 1);
    clock.advance(14_999);
    await settle();
    expect(reader.comments).toBe(0);
    clock.advance(1);
    await reader.untilComment();
  });

  it("ends when the daemon stops, without waiting for the reader", async () => {
    const daemon = await startTestDaemon();
    const reader = await EventReader.open(daemon);
    reader.pause();
    await daemon.daemon.stop();
    reader.resume();
    await reader.ended;
  });
});

describe("a reader of events that takes nothing", () => {
  const large = "x".repeat(60_000);

  it("learns where to resume and is disconnected, and then misses no message", async () => {
    const daemon = await startTestDaemon();
    const reader = await EventReader.open(daemon);
    await reader.untilCount("broker_status", 1);
    reader.pause();
    const all = Array.from({ length: 100 }, (_, index) => index + 1);
    for (const id of all) {
      deliver(daemon.link, delivery(id, { body: large }));
      await settle(2);
    }
    await stored(daemon, 60);
    reader.resume();
    await reader.ended;
    const lagged = reader.events.at(-1);
    expect(lagged?.kind).toBe("lagged");
    expect(lagged?.data).toEqual({ resume_after: lagged?.id, events_lost: 0 });
    const resumed = await EventReader.open(daemon, { lastEventId: lagged?.data.resume_after });
    const seen = historyIds(reader);
    expect(seen.length).toBeLessThan(100);
    await resumed.untilCount("message", 100 - seen.length);
    expect([...seen, ...historyIds(resumed)]).toEqual(all);
  });

  it("that reads slowly but steadily is never left", async () => {
    const daemon = await startTestDaemon();
    const all = Array.from({ length: 60 }, (_, index) => index + 1);
    for (const id of all) deliver(daemon.link, delivery(id, { body: large }));
    await stored(daemon, 60);
    const reader = await EventReader.open(daemon, { lastEventId: "0".repeat(26) });
    for (let step = 1; step <= 60; step++) {
      reader.pause();
      await settle(3);
      reader.resume();
      await reader.untilCount("message", step);
    }
    expect(historyIds(reader)).toEqual(all);
    expect(reader.of("lagged")).toEqual([]);
  });
});
