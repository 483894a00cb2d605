// 2.2: the answers of the routes of the local API, and events.
import { eventually, expectAnswer, expectEqual, expectThat, fieldOf } from "../../frame/expect.ts";
import { absent, aCount, aList, anything, aPublicKey, aText, aTime, aUuidV7, oneOf } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { ServerEvent } from "../../transport/event-stream.ts";
import { type DaemonWorld, reconnectBoundMs } from "./world.ts";

const control: readonly Scenario<DaemonWorld>[] = [
  scenario("2.2", "control-plane", "health, version, compat, metrics and openapi answer", async (world) => {
    expectAnswer(await world.get("/v1/health"), 200, { status: aText, mesh: aText, broker: { state: aText } });
    expectAnswer(await world.get("/v1/version"), 200, {
      version: aText,
      mesh: aText,
      mesh_id: aUuidV7,
      member_pubkey: aPublicKey,
    });
    expectAnswer(await world.get("/v1/compat"), 200, { limits: { inline_bytes: aCount, max_age_hours: aCount } });
    const metrics = expectAnswer(await world.get("/v1/metrics"), 200);
    expectThat(
      /^# TYPE cm_daemon_/m.test(metrics.text),
      "numbers named cm_daemon_…",
      metrics.text.slice(0, 200),
      metrics.request,
    );
    const openapi = expectAnswer(await world.get("/openapi.json"), 200, { openapi: aText, paths: anything });
    const paths = Object.keys(openapi.body.paths as object);
    expectThat(paths.includes("/v1/send"), "/v1/send among the paths", paths, openapi.request);
  }),
  scenario("2.2", "outbox", "the outbox lists rows without their payload, by status too", async (world) => {
    const { id } = await world.doneRow();
    const row = await world.untilRow(id, {
      id: aText,
      client_message_id: id,
      to: "@self",
      destination_kind: "dm",
      destination_ref: aPublicKey,
      priority: "next",
      status: "done",
      fate: "committed",
      enqueued_at: aTime,
      attempts: aCount,
      broker_message_id: aUuidV7,
      payload: absent,
    });
    const ids: unknown[] = [];
    for (let cursor = ""; ; ) {
      const page = expectAnswer(await world.get(`/v1/outbox?status=done&limit=1000${cursor}`), 200, { items: aList });
      const items = page.body.items as Record<string, unknown>[];
      for (const item of items)
        expectAnswer({ status: 200, body: item, request: page.request }, 200, { status: "done", payload: absent });
      ids.push(...items.map((item) => item.client_message_id));
      if (page.body.next_cursor === null) break;
      cursor = `&cursor=${encodeURIComponent(String(page.body.next_cursor))}`;
    }
    expectThat(ids.includes(id), "the row among those that are done", ids.length, "GET /v1/outbox?status=done");
    const byOutboxId = expectAnswer(await world.get(`/v1/outbox/${fieldOf(row, "id")}`), 200, {
      row: { client_message_id: id },
      chain: aList,
    });
    expectThat(!byOutboxId.text.includes('"payload"'), "no payload", byOutboxId.text, byOutboxId.request);
  }),
  scenario("2.2", "topics", "topics are listed with what this member receives", async (world) => {
    const topic = world.fresh("topic");
    expectAnswer(await world.peer("POST", "/topics", { name: topic }), 201);
    await world.needBroker();
    for (const name of [topic, `#${topic}`])
      expectAnswer(await world.post("/v1/topic/subscribe", { topic: name }), 200, { name: topic, subscribed: true });
    for (let cursor = ""; ; ) {
      const page = expectAnswer(await world.get(`/v1/topic/list?limit=1000${cursor}`), 200, { items: aList });
      const own = (page.body.items as { name: string }[]).find(({ name }) => name === topic);
      if (own !== undefined) {
        expectAnswer({ status: 200, body: { ...own }, request: page.request }, 200, {
          post_policy: "members",
          subscribed: true,
        });
        return;
      }
      expectThat(page.body.next_cursor !== null, `${topic} in the list`, "not there", page.request);
      cursor = `&cursor=${encodeURIComponent(String(page.body.next_cursor))}`;
    }
  }),
  scenario("2.2", "queues", "lease, ack and nack are passed through to the broker", async (world) => {
    const queue = world.fresh("queue");
    expectAnswer(await world.peer("POST", "/queues", { id: queue }), 201);
    await world.needBroker();
    const send = { client_message_id: world.fresh("job"), destination: { kind: "queue", ref: queue }, body: "job" };
    expectAnswer(await world.peer("POST", "/messages", send), 201);
    const lease = (n: number) =>
      world.post(`/v1/queue/${queue}/lease`, { lease_request_id: `${queue}-${n}`, max: 1, lease_s: 600 });
    const first = expectAnswer(await lease(1), 200, { items: [{ body: "job", deliveries: 1 }], lease_token: aUuidV7 });
    const settle = (how: string, leased: typeof first) => {
      const ids = (leased.body.items as { broker_message_id: string }[]).map(
        ({ broker_message_id }) => broker_message_id,
      );
      return world.post(`/v1/queue/${queue}/${how}`, { lease_token: leased.body.lease_token, broker_message_ids: ids });
    };
    expectAnswer(await settle("nack", first), 200, { items: [{ settlement: "nacked" }] });
    const second = expectAnswer(await lease(2), 200, { items: [{ deliveries: 2 }] });
    expectAnswer(await settle("ack", second), 200, { items: [{ settlement: "acked" }] });
    expectAnswer(await world.get(`/v1/queue/${queue}/parked`), 200, { items: [], next_after: null });
  }),
  scenario("2.2", "peers", "peers has this daemon's member, with the profile that it set", async (world) => {
    await world.needBroker();
    const summary = world.fresh("summary");
    expectAnswer(await world.post("/v1/profile", { summary, visible: true }), 200, { summary });
    const key = await world.ownKey();
    await eventually("this member among the peers", async () => {
      const page = expectAnswer(await world.get("/v1/peers?limit=1000"), 200, { items: aList });
      const own = (page.body.items as { pubkey: string; summary: string }[]).find(({ pubkey }) => pubkey === key);
      return own?.summary === summary ? { found: own } : { got: page.body, request: page.request };
    });
  }),
];

const isMessage =
  (id: string) =>
  ({ event, data }: ServerEvent) =>
    event === "message" && data.includes(id);

const events: readonly Scenario<DaemonWorld>[] = [
  scenario("2.2", "events", "events has what arrives and what becomes of a row, each with an id", async (world) => {
    await world.needBroker();
    const stream = await world.events();
    expectEqual(stream.status, 200, "the status", stream.request);
    expectThat(
      String(stream.headers["content-type"]).startsWith("text/event-stream"),
      "text/event-stream",
      stream.headers,
      stream.request,
    );
    const { id } = await world.doneRow({ message: "as an event" });
    const message = await stream.next(`a message event of ${id}`, isMessage(id));
    expectThat(message.id !== "", "an event with an id", message, stream.request);
    const { body } = JSON.parse(message.data) as { body?: unknown };
    expectEqual(body, "as an event", "the message's body", stream.request);
    const other = await world.events();
    const { id: dead } = await world.deadRow();
    const row = await other.next(
      `an outbox event of ${dead}`,
      ({ event, data }) => event === "outbox" && data.includes(dead),
    );
    expectThat(row.id !== "", "an event with an id", row, other.request);
  }),
  scenario(
    "2.2",
    "events-resume",
    "Last-Event-ID resumes messages without a gap and without a repeat",
    async (world) => {
      await world.needBroker();
      const first = await world.events();
      const { id: seen } = await world.doneRow();
      const last = await first.next(`a message event of ${seen}`, isMessage(seen));
      first.close();
      const missed: string[] = [];
      for (let n = 0; n < 4; n++) missed.push((await world.doneRow()).id);
      const second = await world.events({ lastEventId: last.id });
      const { id: later } = await world.doneRow();
      const got: string[] = [];
      for (let id = ""; id !== later; ) {
        const event = await second.next("the messages since then", ({ event: kind }) => kind === "message");
        id = String((JSON.parse(event.data) as { client_message_id?: unknown }).client_message_id);
        got.push(id);
      }
      expectEqual(got, [...missed, later], "every message since, once", second.request);
    },
  ),
  scenario("2.2", "events-broker", "events tells when the broker goes away and comes back", async (world) => {
    const { link } = world;
    await world.needBroker();
    const stream = await world.events();
    link.goAway();
    const states = oneOf("offline", "connecting");
    await stream.next("a broker_status that is not online", ({ event, data }) => {
      return event === "broker_status" && states.accepts((JSON.parse(data) as { state?: unknown }).state);
    });
    link.reset();
    await stream.next(
      "a broker_status online",
      ({ event, data }) => event === "broker_status" && data.includes('"online"'),
      reconnectBoundMs,
    );
  }),
];

export const routeScenarios: readonly Scenario<DaemonWorld>[] = [...control, ...events];
