// 0: the table of mutating calls. The answer of each is lost between commit and caller; the retry gets the same answer.
import { expectAnswer, expectRefusal, fieldOf, itemsOf } from "../../frame/expect.ts";
import { aUuidV7, type Pattern } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { HttpAnswer } from "../../transport/http.ts";
import { createMemberKeys } from "../../transport/member-keys.ts";
import { fingerprintOf } from "../../vectors.ts";
import { accept, type BrokerWorld, type Caller, meshRequest, toMember, toQueue } from "./world.ts";

type LostCall = { readonly by: Caller; readonly method: string; readonly path: string; readonly json?: unknown };

/** Loses the answer of a call, makes the call again, and compares the two answers. */
async function expectSameAgain(
  { by, method, path, json }: LostCall,
  lostStatus: number,
  again: { readonly status: number; readonly body: (lost: HttpAnswer) => Pattern },
): Promise<void> {
  const lost = expectAnswer(await by.lose(method, path, json), lostStatus);
  for (let tries = 0; tries < 2; tries++) {
    expectAnswer(await by.call(method, path, json), again.status, again.body(lost));
  }
}

/** The whole body of the first answer. */
const sameBody = (lost: HttpAnswer) => lost.body as Pattern;

const messages: readonly Scenario<BrokerWorld>[] = [
  scenario("0", "send", "send: a lost 201 is a 200 duplicate with the same ids", async (world) => {
    const json = { client_message_id: world.fresh("lost"), destination: toMember(world.bob), body: "x" };
    await expectSameAgain({ by: world.alice, method: "POST", path: "/messages", json }, 201, {
      status: 200,
      body: ({ body }) => ({ ...(body as Record<string, string>), duplicate: true }),
    });
  }),
  scenario("0", "fence", "fence: the same fate", async (world) => {
    const send = { client_message_id: world.fresh("lost"), destination: toMember(world.bob), body: "x" };
    const path = `/messages/by-client-id/${send.client_message_id}/fence`;
    const json = { fingerprint: fingerprintOf(send) };
    await expectSameAgain({ by: world.alice, method: "POST", path, json }, 200, { status: 200, body: sameBody });
    expectRefusal(await world.alice.call("POST", "/messages", send), 409, "fenced");
  }),
];

const things: readonly Scenario<BrokerWorld>[] = [
  scenario("0", "topic-create", "topic create: 200 with what exists, 409 if it differs", async (world) => {
    const json = { name: world.fresh("topic"), post_policy: "subscribers" };
    await expectSameAgain({ by: world.alice, method: "POST", path: "/topics", json }, 201, {
      status: 200,
      body: sameBody,
    });
    expectRefusal(await world.alice.call("POST", "/topics", { name: json.name }), 409, "exists_with_other_content");
  }),
  scenario("0", "queue-create", "queue create: 200 with what exists, 409 if it differs", async (world) => {
    const json = { id: world.fresh("queue"), max_deliveries: 3 };
    await expectSameAgain({ by: world.alice, method: "POST", path: "/queues", json }, 201, {
      status: 200,
      body: sameBody,
    });
    expectRefusal(
      await world.alice.call("POST", "/queues", { ...json, max_deliveries: 4 }),
      409,
      "exists_with_other_content",
    );
  }),
  scenario("0", "mesh-create", "mesh create: 200 with what exists, 409 if it differs", async (world) => {
    const name = world.fresh("mesh");
    const call = {
      method: "POST",
      path: "/v1/meshes",
      token: world.admin,
      json: meshRequest(name, "olga", createMemberKeys()),
    };
    const lost = expectAnswer(await world.loseAnswer(call), 201, { mesh: name, mesh_id: aUuidV7, role: "owner" });
    expectAnswer(await world.ask(call), 200, sameBody(lost));
    const other = { ...call, json: meshRequest(name, "olga", createMemberKeys()) };
    expectRefusal(await world.ask(other), 409, "exists_with_other_content");
  }),
  scenario("0", "subscription", "subscribe and unsubscribe: 200, nothing more happens", async (world) => {
    const path = `/topics/${await world.topic()}/subscription`;
    for (const method of ["PUT", "DELETE"]) {
      await expectSameAgain({ by: world.bob, method, path }, 200, { status: 200, body: sameBody });
    }
  }),
  scenario("0", "topic-delete", "deleting a topic: 200, nothing more happens", async (world) => {
    const path = `/topics/${await world.topic()}`;
    await expectSameAgain({ by: world.owner, method: "DELETE", path }, 200, { status: 200, body: sameBody });
  }),
  scenario("0", "profile", "a profile says what it said", async (world) => {
    const json = { summary: world.fresh("summary"), capabilities: ["review"] };
    await expectSameAgain({ by: world.bob, method: "POST", path: "/profile", json }, 200, {
      status: 200,
      body: sameBody,
    });
  }),
];

const members: readonly Scenario<BrokerWorld>[] = [
  scenario("0", "join", "join: the same key gets the same membership, another key is refused", async (world) => {
    const keys = createMemberKeys();
    const secret = await world.invite();
    const call = world.joinCall(secret, world.fresh("joiner"), keys);
    const lost = expectAnswer(await world.loseAnswer(call), 201, { member_pubkey: keys.pubkey });
    for (let tries = 0; tries < 2; tries++) expectAnswer(await world.ask(call), 200, sameBody(lost));
    const thief = world.joinCall(secret, world.fresh("thief"), createMemberKeys());
    expectRefusal(await world.ask(thief), 403, "invite_refused");
  }),
  scenario("0", "member-revoke", "revoke: 200, nothing more happens", async (world) => {
    const { owner } = world;
    const path = `/members/${(await world.join("dave")).pubkey}`;
    await expectSameAgain({ by: owner, method: "DELETE", path }, 200, { status: 200, body: sameBody });
  }),
  scenario("0", "invite-revoke", "revoking an invite: 200, nothing more happens", async (world) => {
    const created = expectAnswer(await world.owner.call("POST", "/invites", {}), 201);
    const path = `/invites/${fieldOf(created, "invite_id")}`;
    await expectSameAgain({ by: world.owner, method: "DELETE", path }, 200, { status: 200, body: sameBody });
  }),
  scenario("0", "token-revoke", "revoking a token: 200, nothing more happens", async (world) => {
    const created = await world.bob.makeToken("x");
    const path = `/tokens/${fieldOf(created, "token_id")}`;
    await expectSameAgain({ by: world.bob, method: "DELETE", path }, 200, { status: 200, body: sameBody });
    expectRefusal(await world.as(fieldOf(created, "token")).call("GET", "/topics"), 401, "unauthorized");
  }),
];

/** A queue with one message that is leased to bob. */
async function leased(world: BrokerWorld, maxDeliveries?: number) {
  const queue = await world.queue(maxDeliveries);
  await accept(world.alice, { client_message_id: world.fresh("job"), destination: toQueue(queue), body: "x" });
  const wanted = { lease_request_id: world.fresh("lease"), max: 1, lease_s: 600 };
  const lease = expectAnswer(await world.bob.call("POST", `/queues/${queue}/lease`, wanted), 200);
  const ids = itemsOf(lease).map(({ broker_message_id }) => String(broker_message_id));
  return { queue, ids, json: { lease_token: fieldOf(lease, "lease_token"), broker_message_ids: ids } };
}

const queues: readonly Scenario<BrokerWorld>[] = [
  scenario("0", "queue-lease", "lease: the same messages under the same token", async (world) => {
    const queue = await world.queue();
    for (let n = 0; n < 3; n++) {
      await accept(world.alice, { client_message_id: world.fresh("job"), destination: toQueue(queue), body: "x" });
    }
    const json = { lease_request_id: world.fresh("lease"), max: 2, lease_s: 600 };
    const call = { by: world.bob, method: "POST", path: `/queues/${queue}/lease`, json };
    await expectSameAgain(call, 200, { status: 200, body: sameBody });
  }),
  scenario("0", "queue-ack", "ack: 200 for ever", async (world) => {
    const { queue, json } = await leased(world);
    const call = { by: world.bob, method: "POST", path: `/queues/${queue}/ack`, json };
    await expectSameAgain(call, 200, { status: 200, body: sameBody });
  }),
  scenario("0", "queue-nack", "nack: 200 for ever", async (world) => {
    const { queue, json } = await leased(world);
    const call = { by: world.bob, method: "POST", path: `/queues/${queue}/nack`, json };
    await expectSameAgain(call, 200, { status: 200, body: sameBody });
  }),
  scenario("0", "queue-revive", "revive: 200, and nothing is revived twice", async (world) => {
    const { queue, json, ids } = await leased(world, 1);
    expectAnswer(await world.bob.call("POST", `/queues/${queue}/nack`, json), 200);
    const call = { by: world.bob, method: "POST", path: `/queues/${queue}/revive`, json: { broker_message_ids: ids } };
    await expectSameAgain(call, 200, { status: 200, body: () => ({ revived: 0 }) });
  }),
];

export const lostAnswerScenarios: readonly Scenario<BrokerWorld>[] = [...messages, ...things, ...members, ...queues];
