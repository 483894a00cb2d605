// 3.3: messages that go with a commit: accepted in its transaction, or not at all.
import { expectAnswer, expectEqual, expectRefusal, itemsOf } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { fingerprintOf } from "../../vectors.ts";
import { accept, type BrokerWorld, toMember, toTopic } from "../broker/world.ts";
import { confirmed, expectAccepted, patch, read, replace, Session, set, verdictOf } from "./session.ts";

const sendsMax = 32;

export const message = (world: BrokerWorld, more: object = {}) => ({
  client_message_id: world.fresh("told"),
  destination: toMember(world.bob),
  body: "x",
  ...more,
});

type Message = ReturnType<typeof message>;

export async function expectFate(world: BrokerWorld, send: Message, fate: "committed" | "none"): Promise<void> {
  const id = encodeURIComponent(send.client_message_id);
  const path = `/messages/by-client-id/${id}?fingerprint=${fingerprintOf(send)}`;
  expectAnswer(await world.alice.call("GET", path), 200, { fate });
}

export const sendScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.3",
    "sends",
    "a commit's messages are accepted with it, once, and reach their recipients",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const receiver = await world.bob.connect("daemon");
      const sends = [message(world), message(world)];
      const commit = session.build([set("a:1", 1)], { sends });
      expectAccepted(await session.send(commit));
      for (const send of sends) {
        await expectFate(world, send, "committed");
        await receiver.next("the message", ({ client_message_id: id }) => id === send.client_message_id);
      }
      expectAnswer(await session.send(commit), 200, { replayed: true });
      const history = expectAnswer(await world.bob.call("GET", "/history?limit=1000"), 200);
      const ids = itemsOf(history).map(({ client_message_id: id }) => id);
      for (const { client_message_id: id } of sends) {
        expectEqual(ids.filter((each) => each === id).length, 1, `messages ${id} in bob's history`, history.request);
      }
      const alone = session.build([], { sends: [message(world)] });
      expectAccepted(await session.send(alone));
    },
  ),
  scenario(
    "3.3",
    "sends-not-at-all",
    "of a rejected commit no message is sent, and its ids stay free",
    async (world) => {
      const session = await Session.inNewSpace(world);
      await session.accept([set("a:1", 1)]);
      const sends = [message(world)];
      const stale = await session.commit([set("a:1", 2)], { ...confirmed(read("a:1", 0)), sends });
      expectRefusal(stale, 409, "conflict_error");
      expectRefusal(await session.commit([patch("b:1", replace("/value", 1))], { sends }), 422, "patch_error");
      for (const send of sends) await expectFate(world, send, "none");
      expectAccepted(await session.commit([set("a:1", 3)], { sends }));
    },
  ),
  scenario(
    "3.3",
    "sends-rejected",
    "a message that can never be accepted rejects the commit for good, and nothing of it happens",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const used = message(world);
      await accept(world.alice, used);
      const fenced = message(world);
      const fence = `/messages/by-client-id/${fenced.client_message_id}/fence`;
      expectAnswer(await world.alice.call("POST", fence, { fingerprint: fingerprintOf(fenced) }), 200);
      const twice = message(world);
      const nowhere = message(world, { destination: toTopic(world.fresh("none")) });
      const cases: readonly (readonly [Message[], number, string])[] = [
        [[message(world), used], 1, "idempotency_key_reused"],
        [[{ ...used, body: "y" }], 0, "idempotency_key_reused"],
        [[fenced], 0, "fenced"],
        [[twice, message(world), twice], 2, "idempotency_key_reused"],
        [[message(world), nowhere], 1, "destination_not_found"],
      ];
      for (const [sends, index, code] of cases) {
        const commit = session.build([set("a:1", 1)], { sends });
        const rejected = expectRefusal(await session.send(commit), 409, "send_rejected_error", { index, code });
        expectAnswer(await session.send(commit), 409, verdictOf(rejected));
        expectAnswer(await session.verdict(commit.localSeq), 409, verdictOf(rejected));
        const [first] = sends;
        if (first !== undefined && index > 0) await expectFate(world, first, "none");
      }
      expectRefusal(await session.entity("a:1"), 404, "entity_not_found");
      expectAccepted(await session.commit([set("a:1", 1)]), { seq: 1 });
    },
  ),
  scenario("3.3", "sends-bounds", "at most 32 messages, each with an id of its own and sound", async (world) => {
    const session = await Session.inNewSpace(world);
    const many = Array.from({ length: sendsMax + 1 }, () => message(world));
    const { client_message_id: _, ...nameless } = message(world);
    const wrong = [many, [nameless], [message(world, { colour: 1 })], [message(world, { body: undefined })], "x"];
    for (const sends of wrong) {
      expectRefusal(await session.send({ ...session.build([set("a:1", 1)], { localSeq: 1 }), sends }), 400);
    }
    expectAccepted(await session.commit([set("a:1", 1)], { localSeq: 1, sends: many.slice(1) }));
    await Promise.all(many.slice(1).map((send) => expectFate(world, send, "committed")));
  }),
  scenario(
    "3.3",
    "sends-over-budget",
    "a spent budget is 429 and no verdict; what committed is answered without it",
    async (world) => {
      const { budget } = world;
      const spender = await world.createMesh(world.fresh("spender"), "olga");
      const name = world.fresh("space");
      expectAnswer(await spender.call("POST", "/spaces", { name }), 201);
      const session = await Session.open(world, spender, name);
      const spend = () => {
        const sends = Array.from({ length: sendsMax }, () => message(world, { destination: toMember(spender) }));
        return session.build([set("a:1", 1)], { sends });
      };
      const first = spend();
      let [last, answer] = [first, expectAccepted(await session.send(first))];
      // Twice the budget, because a window may end meanwhile.
      for (let spent = 0; answer.status === 200 && spent <= 2 * budget; spent += sendsMax) {
        last = spend();
        answer = await session.send(last);
      }
      expectRefusal(answer, 429, "rate_limited");
      expectRefusal(await session.verdict(last.localSeq), 404, "commit_not_found");
      expectAnswer(await session.send(first), 200, { seq: 1, replayed: true });
      expectAccepted(await session.commit([set("a:1", 2)]));
    },
  ),
];
