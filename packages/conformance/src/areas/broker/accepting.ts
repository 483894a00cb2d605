// 1.5: the answers of an accept, what B2 checks, and which answers come before every limit.
import { limits } from "@claudemesh/protocol/messages/limits";
import { Miss, Skipped } from "../../frame/endings.ts";
import {
  type Answer,
  expectAnswer,
  expectEqual,
  expectRefusal,
  expectThat,
  fieldOf,
  itemsOf,
} from "../../frame/expect.ts";
import { absent, aCount, aHistoryId, aPrefix, aTime, aUuidV7 } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { fingerprintOf } from "../../vectors.ts";
import {
  accept,
  type BrokerWorld,
  type Caller,
  type MeshMember,
  strangersKey,
  toMember,
  toQueue,
  toTopic,
} from "./world.ts";

/** The same send again gets the first ids, and every field of a duplicate's answer. */
async function expectDuplicate(sender: Caller, send: object, first: Answer): Promise<void> {
  const { broker_message_id, client_message_id, history_id } = first.body as Record<string, string>;
  expectAnswer(await sender.call("POST", "/messages", send), 200, {
    broker_message_id,
    client_message_id,
    history_id,
    duplicate: true,
    history_available: true,
    first_seen_at: aTime,
  });
}

async function inlineBytes(world: BrokerWorld): Promise<number> {
  const { features } = (await world.dial()).proof as { features?: Record<string, { inline_bytes?: unknown }> };
  return Number(features?.max_payload?.inline_bytes);
}

const answers: readonly Scenario<BrokerWorld>[] = [
  scenario("1.5", "accepted", "a first accept is 201 with the ids and duplicate false", async (world) => {
    const id = world.fresh("first");
    const answer = await accept(world.alice, { client_message_id: id, destination: toMember(world.bob), body: "x" });
    const none = { history_available: absent, first_seen_at: absent };
    expectAnswer(answer, 201, { broker_message_id: aUuidV7, client_message_id: id, history_id: aHistoryId, ...none });
  }),
  scenario(
    "1.5",
    "duplicate",
    "the same again is 200 with the first ids and duplicate true, however often",
    async (world) => {
      for (const destination of [toMember(world.bob), toTopic(await world.topic()), toQueue(await world.queue())]) {
        const send = { client_message_id: world.fresh("again"), destination, body: "x", meta: { n: 1 } };
        const first = await accept(world.alice, send);
        for (let tries = 0; tries < 3; tries++) await expectDuplicate(world.alice, send, first);
      }
    },
  ),
  scenario("1.5", "mismatch", "the same id with other content is 409, and nothing changes", async (world) => {
    const send = { client_message_id: world.fresh("other"), destination: toMember(world.bob), body: "x" };
    const first = await accept(world.alice, send);
    const others = [{ body: "y" }, { priority: "low" }, { meta: { a: 1 } }, { destination: toMember(world.carol) }];
    for (const other of others) {
      expectRefusal(await world.alice.call("POST", "/messages", { ...send, ...other }), 409, "idempotency_key_reused", {
        conflict: "request_fingerprint_mismatch",
        client_message_id: send.client_message_id,
        broker_fingerprint_prefix: aPrefix,
      });
    }
    await expectDuplicate(world.alice, send, first);
  }),
  scenario("1.5", "one-history-row", "retries add nothing to the history", async (world) => {
    const send = { client_message_id: world.fresh("once"), destination: toMember(world.bob), body: "x" };
    const first = await accept(world.alice, send);
    for (let tries = 0; tries < 3; tries++) await expectDuplicate(world.alice, send, first);
    const after = Number(fieldOf(first, "history_id")) - 1;
    const page = expectAnswer(await world.bob.call("GET", `/history?after=${after}`), 200);
    const rows = itemsOf(page).filter((item) => item.client_message_id === send.client_message_id);
    expectEqual(rows.length, 1, "rows of that id in the history", page.request);
  }),
  scenario(
    "1.5",
    "outsiders-learn-nothing",
    "without a valid token a used and an unused id look alike",
    async (world) => {
      const send = { client_message_id: world.fresh("known"), destination: toMember(world.bob), body: "x" };
      await accept(world.alice, send);
      for (const token of [undefined, "cmt_wrong", `${world.alice.token}x`]) {
        const outsider = world.as(token);
        const known = expectRefusal(await outsider.call("POST", "/messages", send), 401, "unauthorized");
        const unknown = { ...send, client_message_id: world.fresh("unknown") };
        const other = expectRefusal(await outsider.call("POST", "/messages", unknown), 401, "unauthorized");
        expectEqual(known.text, other.text, "the same refusal for both", known.request);
        const path = `/messages/by-client-id/${send.client_message_id}?fingerprint=${fingerprintOf(send)}`;
        expectRefusal(await outsider.call("GET", path), 401, "unauthorized");
      }
    },
  ),
];

const destinations: readonly Scenario<BrokerWorld>[] = [
  scenario("1.5", "destinations", "a topic, member or queue that is not there is 404", async (world) => {
    const missing = [toTopic(world.fresh("none")), toQueue(world.fresh("none")), { kind: "dm", ref: strangersKey() }];
    for (const destination of missing) {
      const send = { client_message_id: world.fresh("to"), destination, body: "x" };
      expectRefusal(await world.alice.call("POST", "/messages", send), 404, "destination_not_found");
    }
  }),
  scenario("1.5", "post-policy", "a topic for subscribers takes posts of subscribers alone", async (world) => {
    const topic = await world.topic("subscribers");
    const send = { client_message_id: world.fresh("policy"), destination: toTopic(topic), body: "x" };
    expectRefusal(await world.bob.call("POST", "/messages", send), 403, "not_subscribed");
    expectAnswer(await world.bob.call("PUT", `/topics/${topic}/subscription`), 200);
    const first = await accept(world.bob, send);
    expectAnswer(await world.bob.call("DELETE", `/topics/${topic}/subscription`), 200);
    await expectDuplicate(world.bob, send, first);
    const next = { ...send, client_message_id: world.fresh("policy") };
    expectRefusal(await world.bob.call("POST", "/messages", next), 403, "not_subscribed");
  }),
  scenario("1.5", "sender-gets-no-copy", "the sender of a topic message is not among its recipients", async (world) => {
    const topic = await world.topic();
    for (const member of [world.alice, world.bob]) {
      expectAnswer(await member.call("PUT", `/topics/${topic}/subscription`), 200);
    }
    const sent = await accept(world.alice, {
      client_message_id: world.fresh("own"),
      destination: toTopic(topic),
      body: "x",
    });
    const state = await world.alice.call("GET", `/messages/${fieldOf(sent, "broker_message_id")}`);
    expectAnswer(state, 200, { deliveries: [{ recipient_pubkey: world.bob.pubkey }] });
  }),
  scenario(
    "1.5",
    "retry-after-topic-is-gone",
    "a committed retry is 200 after its topic was deleted",
    async (world) => {
      const topic = await world.topic();
      const send = { client_message_id: world.fresh("gone"), destination: toTopic(topic), body: "x" };
      const first = await accept(world.alice, send);
      expectAnswer(await world.owner.call("DELETE", `/topics/${topic}`), 200);
      await expectDuplicate(world.alice, send, first);
      const next = { ...send, client_message_id: world.fresh("gone") };
      expectRefusal(await world.alice.call("POST", "/messages", next), 404, "destination_not_found");
    },
  ),
  scenario(
    "1.5",
    "retry-after-recipient-is-gone",
    "a committed retry is 200 after its recipient was revoked",
    async (world) => {
      const { owner } = world;
      const dave = await world.join("dave");
      const send = { client_message_id: world.fresh("left"), destination: toMember(dave), body: "x" };
      const first = await accept(world.alice, send);
      expectAnswer(await owner.call("DELETE", `/members/${dave.pubkey}`), 200);
      await expectDuplicate(world.alice, send, first);
      const next = { ...send, client_message_id: world.fresh("left") };
      expectRefusal(await world.alice.call("POST", "/messages", next), 404, "destination_not_found");
    },
  ),
];

/**
 * Sends over one socket until the budget is spent; returns the answer that says so, and a send that was accepted
 * before.
 */
async function spendBudget(world: BrokerWorld, sender: MeshMember, budget: number) {
  const peer = await sender.connect("client");
  const first = { client_message_id: world.fresh("spend"), destination: toMember(sender), body: "x" };
  const accepted = expectAnswer(await peer.request("send", first), 201);
  for (let sent = 0; sent <= budget * 3; sent += 256) {
    const batch = Array.from({ length: 256 }, () => ({ ...first, client_message_id: world.fresh("spend") }));
    const replies = await Promise.all(batch.map((send) => peer.request("send", send)));
    const index = replies.findIndex(({ status }) => status === 429);
    const refused = replies[index];
    const refusedSend = batch[index];
    if (refused !== undefined && refusedSend !== undefined) return { first, accepted, refused, refusedSend };
  }
  const request = "frames send, each with a fresh id";
  throw new Miss({ expected: `429 after about ${budget} sends`, got: "none", request });
}

const bounds: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "1.5",
    "size",
    "a body above inline_bytes is 413 and consumes nothing; one at the limit is accepted",
    async (world) => {
      const bytes = await inlineBytes(world);
      expectThat(Number.isSafeInteger(bytes) && bytes >= 1_024, "inline_bytes in the proof", bytes, "proof");
      const send = { client_message_id: world.fresh("size"), destination: toMember(world.bob) };
      const large = await world.alice.call("POST", "/messages", {
        ...send,
        body_base64: Buffer.alloc(bytes + 1, 7).toString("base64"),
      });
      expectRefusal(large, 413, "payload_too_large");
      await accept(world.alice, { ...send, body_base64: Buffer.alloc(bytes, 7).toString("base64") });
    },
  ),
  scenario("1.5", "retry-before-size", "an id is looked up before its size is judged", async (world) => {
    const bytes = await inlineBytes(world);
    const send = { client_message_id: world.fresh("b0"), destination: toMember(world.bob), body: "x" };
    await accept(world.alice, send);
    const large = { ...send, body: "y".repeat(bytes + 1) };
    if (large.body.length > limits.requestBytes) throw new Skipped("the broker takes bodies as large as a request");
    expectRefusal(await world.alice.call("POST", "/messages", large), 409, "idempotency_key_reused");
  }),
  scenario(
    "1.5",
    "rate-limit",
    "a spent budget is 429 with Retry-After and consumes no id; committed retries are 200",
    async (world) => {
      const { budget } = world;
      const spender = await world.createMesh(world.fresh("spender"), "olga");
      const { first, accepted, refused, refusedSend } = await spendBudget(world, spender, budget);
      expectRefusal(refused, 429, "rate_limited", { retry_after_s: aCount });
      const path = `/messages/by-client-id/${refusedSend.client_message_id}?fingerprint=${fingerprintOf(refusedSend)}`;
      expectAnswer(await spender.call("GET", path), 200, { fate: "none" });
      await expectDuplicate(spender, first, accepted);
      const next = { ...first, client_message_id: world.fresh("spend") };
      const answer = await spender.call("POST", "/messages", next);
      // The window may have ended meanwhile.
      if (answer.status === 201) return;
      expectRefusal(answer, 429, "rate_limited");
      const retryAfter = answer.headers["retry-after"];
      expectThat(/^[1-9][0-9]*$/.test(retryAfter ?? ""), "Retry-After in whole seconds", retryAfter, answer.request);
    },
  ),
];

export const acceptScenarios: readonly Scenario<BrokerWorld>[] = [...answers, ...destinations, ...bounds];
