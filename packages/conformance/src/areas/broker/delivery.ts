// 1.6: pushes, acks, redelivery, replay, and which members see a message.
import { eventually, expectAnswer, expectEqual, expectRefusal, fieldOf, itemsOf } from "../../frame/expect.ts";
import { absent, aHistoryId, aList, aTime, aUuidV7 } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { SocketPeer } from "../../transport/socket-peer.ts";
import { accept, type BrokerWorld, type MeshMember, toMember, toQueue, toTopic } from "./world.ts";

const send = async (world: BrokerWorld, from: MeshMember, to: MeshMember, body = "x") =>
  accept(from, { client_message_id: world.fresh("m"), destination: toMember(to), body });

/** Pushes up to the one with this id, acknowledged or not. */
async function readPushes(peer: SocketPeer, lastId: string, ack: boolean): Promise<readonly string[]> {
  const ids: string[] = [];
  do {
    const push = await peer.nextPush();
    ids.push(String(push.client_message_id));
    if (ack) expectAnswer(await peer.request("ack", { history_ids: [push.history_id] }), 200);
  } while (ids.at(-1) !== lastId);
  return ids;
}

/** A member of its own, so that no delivery of another scenario waits for it. */
const receiver = (world: BrokerWorld) => world.join("dora");

const pushes: readonly Scenario<BrokerWorld>[] = [
  scenario("1.6", "push", "a message is pushed to its recipient's daemon as history shows it", async (world) => {
    const dora = await receiver(world);
    const daemon = await dora.connect();
    const id = world.fresh("push");
    const meta = { run: 42 };
    const fields = { client_message_id: id, destination: toMember(dora), body: "hello", meta, priority: "now" };
    const { broker_message_id, history_id } = (await accept(world.alice, { ...fields, reply_to_id: "r-1" })).body;
    const { type: _type, ...push } = await daemon.nextPush();
    const request = `frame push of ${id}`;
    const item = { ...fields, broker_message_id: String(broker_message_id), history_id: Number(history_id) };
    const wanted = {
      ...item,
      sender_pubkey: world.alice.pubkey,
      envelope_version: "1",
      reply_to_id: "r-1",
      accepted_at: aTime,
    };
    expectAnswer({ status: 200, body: push, request }, 200, wanted);
    const page = expectAnswer(await dora.call("GET", `/history?after=${Number(history_id) - 1}`), 200, {
      items: [wanted],
    });
    expectAnswer({ status: 200, body: { ...itemsOf(page)[0] }, request: page.request }, 200, {
      accepted_at: Number(push.accepted_at),
    });
  }),
  scenario("1.6", "settled-by-ack", "a delivery is settled by the receiver's ack, and not before", async (world) => {
    const dora = await receiver(world);
    const daemon = await dora.connect();
    const sent = await send(world, world.alice, dora);
    const push = await daemon.nextPush();
    const state = () => world.alice.call("GET", `/messages/${fieldOf(sent, "broker_message_id")}`);
    const waiting = {
      counts: { unsettled: 1, delivered: 0, expired: 0 },
      deliveries: [{ state: "unsettled", settled_at: null }],
    };
    expectAnswer(await state(), 200, waiting);
    for (let tries = 0; tries < 2; tries++) {
      expectAnswer(await daemon.request("ack", { history_ids: [push.history_id] }), 200);
      const settled = { state: "delivered", recipient_pubkey: dora.pubkey, settled_at: aTime };
      expectAnswer(await state(), 200, { counts: { unsettled: 0, delivered: 1, expired: 0 }, deliveries: [settled] });
    }
  }),
  scenario(
    "1.6",
    "redelivery",
    "what was not acknowledged comes again after the next hello, in history order",
    async (world) => {
      const dora = await receiver(world);
      const ids: string[] = [];
      for (let n = 0; n < 6; n++)
        ids.push(fieldOf(await send(world, n % 2 ? world.alice : world.bob, dora), "client_message_id"));
      const first = await dora.connect();
      const pushed = await readPushes(first, ids[5] ?? "", false);
      expectEqual(pushed, ids, "pushes in history order", first.lastSent);
      await first.drop();
      const second = await dora.connect();
      expectEqual(await readPushes(second, ids[5] ?? "", true), ids, "the same pushes again", second.lastSent);
      await second.drop();
      const third = await dora.connect();
      const marker = await send(world, world.alice, dora);
      const rest = await readPushes(third, fieldOf(marker, "client_message_id"), true);
      expectEqual(rest.length, 1, "pushes after everything was acknowledged", third.lastSent);
    },
  ),
  scenario("1.6", "others-deliveries", "an ack settles nothing of another member", async (world) => {
    const dora = await receiver(world);
    const sent = await send(world, world.alice, dora);
    const other = await world.carol.connect("client");
    await other.request("ack", { history_ids: [Number(fieldOf(sent, "history_id"))] });
    const state = await world.alice.call("GET", `/messages/${fieldOf(sent, "broker_message_id")}`);
    expectAnswer(state, 200, { counts: { unsettled: 1, delivered: 0 } });
  }),
  scenario("1.6", "clients-get-no-pushes", "only a daemon gets delivery pushes", async (world) => {
    const dora = await receiver(world);
    const client = await dora.connect("client");
    const daemon = await dora.connect("daemon");
    const sent = await send(world, world.alice, dora);
    await readPushes(daemon, fieldOf(sent, "client_message_id"), true);
    expectAnswer(await client.request("history", {}), 200, { items: aList });
    expectEqual(
      client.arrived.filter(({ type }) => type === "message").length,
      0,
      "pushes to a client",
      client.lastSent,
    );
  }),
  scenario("1.6", "replay", "history can be read again from any history_id", async (world) => {
    const dora = await receiver(world);
    const sent: { id: string; history: number }[] = [];
    for (let n = 0; n < 5; n++) {
      const answer = await send(world, world.alice, dora);
      sent.push({ id: fieldOf(answer, "client_message_id"), history: Number(fieldOf(answer, "history_id")) });
    }
    for (const [index, { history }] of sent.entries()) {
      const page = expectAnswer(await dora.call("GET", `/history?after=${history}`), 200);
      const ids = itemsOf(page).map((item) => item.client_message_id);
      expectEqual(
        ids,
        sent.slice(index + 1).map(({ id }) => id),
        "what came after",
        page.request,
      );
    }
    const ids: unknown[] = [];
    for (let after: unknown = 0; after !== null; ) {
      const page = expectAnswer(await dora.call("GET", `/history?after=${after}&limit=2`), 200);
      ids.push(...itemsOf(page).map((item) => item.client_message_id));
      after = page.body.next_after;
    }
    expectEqual(
      ids,
      sent.map(({ id }) => id),
      "all pages together",
      "GET /history?after=0&limit=2, and on by next_after",
    );
  }),
];

/** A message of alice to bob that mentions carol, and the word by which search would find it. */
async function secretMessage(world: BrokerWorld) {
  const word = world.fresh("w").replaceAll("-", "");
  const meta = { mentions: [world.carol.pubkey] };
  const fields = { client_message_id: world.fresh("dm"), destination: toMember(world.bob), body: `the ${word} is hid` };
  const sent = await accept(world.alice, { ...fields, meta });
  return {
    word,
    id: fields.client_message_id,
    brokerId: fieldOf(sent, "broker_message_id"),
    after: Number(fieldOf(sent, "history_id")) - 1,
  };
}

async function expectSees(who: MeshMember, path: string, id: string, sees: boolean): Promise<void> {
  const page = expectAnswer(await who.call("GET", path), 200);
  const found = itemsOf(page).some((item) => item.client_message_id === id);
  expectEqual(found, sees, `whether ${who.name} sees ${id}`, page.request);
}

const visibility: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "1.6",
    "history-visibility",
    "a direct message is shown to its sender and its recipient alone",
    async (world) => {
      const { id, after } = await secretMessage(world);
      const path = `/history?after=${after}&limit=1000`;
      for (const who of [world.alice, world.bob]) await expectSees(who, path, id, true);
      await expectSees(world.carol, path, id, false);
    },
  ),
  scenario("1.6", "mention-visibility", "being mentioned does not make a message visible", async (world) => {
    const { id, after } = await secretMessage(world);
    const path = `/mentions?of=${world.carol.pubkey}&after=${after}&limit=1000`;
    await expectSees(world.bob, path, id, true);
    await expectSees(world.carol, path, id, false);
    await expectSees(world.carol, `/mentions?after=${after}&limit=1000`, id, false);
  }),
  scenario("1.6", "search-visibility", "search shows what history would show", async (world) => {
    const { id, word } = await secretMessage(world);
    await eventually("the recipient finds the message by its text", async () => {
      const page = expectAnswer(await world.bob.call("GET", `/search?q=${word}`), 200);
      const found = itemsOf(page).some((item) => item.client_message_id === id);
      return found ? { found } : { got: page.body, request: page.request };
    });
    await expectSees(world.carol, `/search?q=${word}`, id, false);
  }),
  scenario(
    "1.6",
    "state-visibility",
    "a message's state is for who may see it; an owner reads counts alone",
    async (world) => {
      const { brokerId } = await secretMessage(world);
      for (const who of [world.alice, world.bob]) {
        expectAnswer(await who.call("GET", `/messages/${brokerId}`), 200, {
          sender_pubkey: world.alice.pubkey,
          history_id: aHistoryId,
        });
      }
      expectRefusal(await world.carol.call("GET", `/messages/${brokerId}`), 404, "not_found");
      const hidden = { client_message_id: absent, sender_pubkey: absent, destination: absent, deliveries: absent };
      expectAnswer(await world.owner.call("GET", `/messages/${brokerId}`), 200, { counts: { expired: 0 }, ...hidden });
    },
  ),
  scenario("1.6", "topic-visibility", "a topic is read by its subscribers", async (world) => {
    const topic = await world.topic();
    expectAnswer(await world.bob.call("PUT", `/topics/${topic}/subscription`), 200);
    const id = world.fresh("post");
    const sent = await accept(world.alice, { client_message_id: id, destination: toTopic(topic), body: "x" });
    const after = Number(fieldOf(sent, "history_id")) - 1;
    for (const path of [`/history?after=${after}&topic=${topic}`, `/history?after=${after}&limit=1000`]) {
      for (const who of [world.alice, world.bob]) await expectSees(who, path, id, true);
      await expectSees(world.carol, path, id, false);
    }
  }),
  scenario(
    "1.6",
    "queue-visibility",
    "a queue's message never enters an inbox, and is shown to its sender and holder",
    async (world) => {
      const queue = await world.queue();
      const dora = await receiver(world);
      const daemon = await dora.connect();
      const id = world.fresh("job");
      const sent = await accept(world.alice, { client_message_id: id, destination: toQueue(queue), body: "x" });
      const path = `/messages/${fieldOf(sent, "broker_message_id")}`;
      expectRefusal(await world.carol.call("GET", path), 404, "not_found");
      const lease = { lease_request_id: world.fresh("lease"), max: 1, lease_s: 600 };
      expectAnswer(await world.bob.call("POST", `/queues/${queue}/lease`, lease), 200, { lease_token: aUuidV7 });
      for (const who of [world.alice, world.bob])
        expectAnswer(await who.call("GET", path), 200, { queue: { state: "leased" } });
      expectRefusal(await world.carol.call("GET", path), 404, "not_found");
      const marker = await send(world, world.alice, dora);
      const pushed = await readPushes(daemon, fieldOf(marker, "client_message_id"), true);
      expectEqual(pushed.includes(id), false, "a push of the queue's message", daemon.lastSent);
    },
  ),
];

export const deliveryScenarios: readonly Scenario<BrokerWorld>[] = [...pushes, ...visibility];
