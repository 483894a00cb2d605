// 1.6 and 1.7 at the daemon: the inbox, redelivery, and the stages of a message.
import {
  type Answer,
  eventually,
  expectAnswer,
  expectEqual,
  expectRefusal,
  expectThat,
  fieldOf,
} from "../../frame/expect.ts";
import { aHistoryId, aList, anything, aPublicKey, aText, aTime, oneOf } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { type DaemonWorld, reconnectBoundMs } from "./world.ts";

type Item = Readonly<Record<string, unknown>>;

/** Everything in the inbox, page by page. */
async function inboxItems(
  world: DaemonWorld,
  query = "",
): Promise<{ readonly items: Item[]; readonly request: string }> {
  const items: Item[] = [];
  for (let cursor = ""; ; ) {
    const page = expectAnswer(await world.get(`/v1/inbox?limit=1000${query}${cursor}`), 200, { items: aList });
    items.push(...(page.body.items as Item[]));
    if (page.body.next_cursor === null) return { items, request: page.request };
    cursor = `&cursor=${encodeURIComponent(String(page.body.next_cursor))}`;
  }
}

export async function untilArrived(world: DaemonWorld, id: string): Promise<Answer> {
  return eventually(`the message ${id} in the inbox`, async () => {
    const { items, request } = await inboxItems(world);
    const own = items.filter((item) => item.client_message_id === id);
    if (own.length === 0) return { got: "not there", request };
    expectEqual(own.length, 1, `messages of ${id} in the inbox`, request);
    return { found: { status: 200, body: { ...own[0] }, request } };
  });
}

const arrivals: readonly Scenario<DaemonWorld>[] = [
  scenario("1.6", "inbox", "what arrives is in the inbox, with every field, and readable", async (world) => {
    const { id, row } = await world.doneRow({ message: "hello", meta: { run: 42 }, priority: "low", reply_to_id: "r" });
    const mesh = fieldOf(await world.get("/v1/version"), "mesh");
    expectAnswer(await untilArrived(world, id), 200, {
      id: aText,
      client_message_id: id,
      broker_message_id: String(row.broker_message_id),
      history_id: aHistoryId,
      mesh,
      topic: null,
      sender_pubkey: await world.ownKey(),
      sender_name: aText,
      body: "hello",
      meta: { run: 42 },
      priority: "low",
      reply_to_id: "r",
      received_at: aTime,
      read_at: null,
    });
  }),
  scenario("1.6", "inbox-bytes", "a body that is no text comes as base64", async (world) => {
    const { id } = await world.doneRow({ message: undefined, message_base64: "//7DKA==" });
    expectAnswer(await untilArrived(world, id), 200, { body: null, body_base64: "//7DKA==" });
  }),
  scenario("1.6", "inbox-order", "the inbox is oldest first, and pages join without a gap", async (world) => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push((await world.doneRow()).id);
    for (const id of ids) await untilArrived(world, id);
    const collected: unknown[] = [];
    for (let cursor = ""; ; ) {
      const page = expectAnswer(await world.get(`/v1/inbox?limit=2${cursor}`), 200);
      collected.push(...(page.body.items as Item[]).map(({ client_message_id }) => client_message_id));
      if (page.body.next_cursor === null) break;
      cursor = `&cursor=${encodeURIComponent(String(page.body.next_cursor))}`;
    }
    const own = collected.filter((id) => ids.includes(String(id)));
    expectEqual(own, ids, "the messages in the order in which they arrived", "GET /v1/inbox?limit=2, and on by cursor");
  }),
  scenario("1.6", "redelivery", "a message that comes twice is in the inbox once", async (world) => {
    const { link } = world;
    await world.needBroker();
    const id = world.fresh("twice");
    let cuts = 0;
    let historyId: unknown;
    link.rule({
      down: (frame) => {
        if (frame.type === "message" && frame.client_message_id === id) historyId = frame.history_id;
        return "pass";
      },
      // The ack is lost, so that the broker has to deliver again.
      up: ({ type, history_ids: ids }) => {
        return type === "ack" && Array.isArray(ids) && ids.includes(historyId) && cuts++ === 0 ? "cut" : "pass";
      },
    });
    expectAnswer(await world.send({ to: "@self", message: id, client_message_id: id }), 202);
    await untilArrived(world, id);
    await world.untilOnline();
    await eventually(
      "the delivery is acknowledged in the end",
      async () => {
        const answer = await world.get(`/v1/messages/${id}`);
        const { delivered } = (answer.body.counts ?? {}) as { delivered?: number };
        return delivered === 1 && cuts > 1
          ? { found: true }
          : { got: { cuts, ...answer.body }, request: answer.request };
      },
      reconnectBoundMs,
    );
    await untilArrived(world, id);
  }),
  scenario("1.6", "topic", "a topic that is subscribed to arrives with its name, from who sent it", async (world) => {
    const topic = world.fresh("topic");
    expectAnswer(await world.peer("POST", "/topics", { name: topic }), 201);
    await world.needBroker();
    expectAnswer(await world.post("/v1/topic/subscribe", { topic }), 200, { name: topic, subscribed: true });
    const id = world.fresh("post");
    const send = { client_message_id: id, destination: { kind: "topic", ref: topic }, body: "news" };
    expectAnswer(await world.peer("POST", "/messages", send), 201);
    expectAnswer(await untilArrived(world, id), 200, { topic, body: "news", sender_pubkey: aPublicKey });
    const { items, request } = await inboxItems(world, `&topic=${topic}`);
    expectEqual(
      items.map((item) => item.client_message_id),
      [id],
      "the inbox of that topic",
      request,
    );
    expectAnswer(await world.post("/v1/topic/unsubscribe", { topic }), 200, { name: topic, subscribed: false });
  }),
];

const whereabouts: readonly Scenario<DaemonWorld>[] = [
  scenario(
    "1.7",
    "by-every-id",
    "a message is found by client, outbox and broker id, with the same facts",
    async (world) => {
      const { id, row } = await world.doneRow();
      for (const wanted of [id, String(row.id), String(row.broker_message_id)]) {
        expectAnswer(await world.get(`/v1/messages/${wanted}`), 200, {
          client_message_id: id,
          outbox_id: String(row.id),
          broker_message_id: String(row.broker_message_id),
          history_id: aHistoryId,
          fate: "committed",
          stages: aList,
        });
      }
      expectRefusal(await world.get(`/v1/messages/${world.fresh("none")}`), 404, "not_found");
    },
  ),
  scenario(
    "1.7",
    "stages",
    "queued, stored, delivered and read are reported as they happen, each once",
    async (world) => {
      const { id } = await world.doneRow();
      await untilArrived(world, id);
      const stagesOf = (answer: Answer) => (answer.body.stages as { stage: string }[]).map(({ stage }) => stage);
      await eventually("the message is delivered", async () => {
        const answer = expectAnswer(await world.get(`/v1/messages/${id}`), 200);
        return answer.body.state === "delivered" ? { found: true } : { got: answer.body, request: answer.request };
      });
      expectAnswer(await world.post(`/v1/inbox/${id}/read`), 200, { client_message_id: id, read_at: aTime });
      const answer = expectAnswer(await world.get(`/v1/messages/${id}`), 200, { state: "read" });
      expectEqual(stagesOf(answer), ["queued", "stored", "delivered", "read"], "the stages", answer.request);
    },
  ),
  scenario("1.7", "queued", "a message that waits for the broker is queued, and no more is claimed", async (world) => {
    world.link.goAway();
    const id = world.fresh("waits");
    expectAnswer(await world.send({ to: "@self", message: "x", client_message_id: id }), 202);
    const answer = expectAnswer(await world.get(`/v1/messages/${id}`), 200, {
      state: oneOf("queued", "inflight"),
      broker_message_id: null,
      history_id: null,
    });
    expectEqual(
      (answer.body.stages as Item[]).map(({ stage }) => stage),
      ["queued"],
      "the stages",
      answer.request,
    );
  }),
  scenario("1.7", "dead", "a dead message says so, with fate, reason and chain", async (world) => {
    const { id } = await world.deadRow();
    const chain = [{ client_message_id: id, status: "dead" }];
    expectAnswer(await world.get(`/v1/messages/${id}`), 200, {
      state: "dead",
      fate: "refused",
      last_error: aText,
      chain,
    });
    const requeued = expectAnswer(await world.post("/v1/outbox/requeue", { id }), 200);
    const next = (requeued.body.new as { client_message_id: string }).client_message_id;
    const answer = expectAnswer(await world.get(`/v1/messages/${id}`), 200, { state: "aborted" });
    const ids = (answer.body.chain as Item[]).map(({ client_message_id }) => client_message_id);
    expectEqual(ids, [id, next], "the chain", answer.request);
  }),
  scenario("1.7", "read-mark", "the first read mark stays", async (world) => {
    const { id } = await world.doneRow();
    const arrived = await untilArrived(world, id);
    const first = expectAnswer(await world.post(`/v1/inbox/${fieldOf(arrived, "id")}/read`), 200, { read_at: aTime });
    expectAnswer(await world.post(`/v1/inbox/${id}/read`), 200, { read_at: Number(first.body.read_at) });
    expectAnswer(await untilArrived(world, id), 200, { read_at: Number(first.body.read_at) });
    expectRefusal(await world.post(`/v1/inbox/${world.fresh("none")}/read`), 404, "not_found");
  }),
  scenario("1.7", "search", "the inbox is searched by words", async (world) => {
    const word = world.fresh("w").replaceAll("-", "");
    const { id } = await world.doneRow({ message: `the ${word} is green` });
    await untilArrived(world, id);
    const page = expectAnswer(await world.get(`/v1/inbox/search?q=${word}%20green`), 200, {
      items: [{ client_message_id: id }],
    });
    expectAnswer(await world.get(`/v1/inbox/search?q=${word}%20purple`), 200, { items: [], next_cursor: anything });
    expectThat(page.text.includes(word), "the text in the answer", page.text, page.request);
  }),
];

export const arrivalScenarios: readonly Scenario<DaemonWorld>[] = [...arrivals, ...whereabouts];
