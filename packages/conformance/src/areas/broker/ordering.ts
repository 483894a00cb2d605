// 1.5: fences, races for one id, and the order of the history.

import { Miss } from "../../frame/endings.ts";
import {
  type Answer,
  expectAnswer,
  expectEqual,
  expectRefusal,
  expectThat,
  fieldOf,
  itemsOf,
} from "../../frame/expect.ts";
import { show } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { fingerprintOf } from "../../vectors.ts";
import { accept, type BrokerWorld, type Caller, toMember } from "./world.ts";

const byId = (id: string) => `/messages/by-client-id/${id}`;
const fence = (caller: Caller, id: string, fingerprint: string) =>
  caller.call("POST", `${byId(id)}/fence`, { fingerprint });
const fate = (caller: Caller, id: string, fingerprint: string) =>
  caller.call("GET", `${byId(id)}?fingerprint=${fingerprint}`);

const fences: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "1.5",
    "fence-first",
    "a fenced id can never be accepted any more, and every fence says so again",
    async (world) => {
      const send = { client_message_id: world.fresh("fence"), destination: toMember(world.bob), body: "x" };
      const fingerprint = fingerprintOf(send);
      for (let tries = 0; tries < 2; tries++) {
        expectAnswer(await fence(world.alice, send.client_message_id, fingerprint), 200, { fate: "fenced" });
        expectRefusal(await world.alice.call("POST", "/messages", send), 409, "fenced");
        expectAnswer(await fate(world.alice, send.client_message_id, fingerprint), 200, { fate: "fenced" });
      }
      expectRefusal(await world.alice.call("POST", "/messages", { ...send, body: "y" }), 409, "fenced");
    },
  ),
  scenario(
    "1.5",
    "fence-after",
    "a fence of what committed answers committed with the ids, and changes nothing",
    async (world) => {
      const send = { client_message_id: world.fresh("fence"), destination: toMember(world.bob), body: "x" };
      const { broker_message_id, history_id } = (await accept(world.alice, send)).body as Record<string, string>;
      const committed = { fate: "committed", broker_message_id, history_id };
      for (let tries = 0; tries < 2; tries++) {
        expectAnswer(await fence(world.alice, send.client_message_id, fingerprintOf(send)), 200, committed);
        expectAnswer(await fate(world.alice, send.client_message_id, fingerprintOf(send)), 200, committed);
        expectAnswer(await world.alice.call("POST", "/messages", send), 200, { duplicate: true });
      }
    },
  ),
  scenario(
    "1.5",
    "fence-taken",
    "a fence with another fingerprint than what committed answers taken",
    async (world) => {
      const send = { client_message_id: world.fresh("fence"), destination: toMember(world.bob), body: "x" };
      await accept(world.alice, send);
      expectAnswer(await fence(world.alice, send.client_message_id, "a".repeat(64)), 200, { fate: "taken" });
      expectAnswer(await world.alice.call("POST", "/messages", send), 200, { duplicate: true });
    },
  ),
  scenario("1.5", "fence-is-ones-own", "a fence holds for the member who set it alone", async (world) => {
    const send = { client_message_id: world.fresh("fence"), destination: toMember(world.bob), body: "x" };
    expectAnswer(await fence(world.alice, send.client_message_id, fingerprintOf(send)), 200, { fate: "fenced" });
    expectAnswer(await fate(world.carol, send.client_message_id, fingerprintOf(send)), 200, { fate: "none" });
    await accept(world.carol, send);
  }),
  scenario("1.5", "fence-input", "a fence needs 64 hex characters and a sound id", async (world) => {
    const id = world.fresh("fence");
    for (const fingerprint of ["", "a".repeat(16), "A".repeat(64), "g".repeat(64)]) {
      expectRefusal(await fence(world.alice, id, fingerprint), 400);
      expectRefusal(await fate(world.alice, id, fingerprint), 400);
    }
    expectRefusal(
      await world.alice.call("POST", `${byId(id)}/fence`, { fingerprint: "a".repeat(64), x: 1 }),
      400,
      "unknown_field",
    );
    expectRefusal(await fate(world.alice, "a%20b", "a".repeat(64)), 400, "invalid_client_message_id");
  }),
];

const raceWidth = 12;

/** All at once over HTTP and over a socket, so that some pass the look-up together. */
async function sendAllAtOnce(world: BrokerWorld, sends: readonly object[]): Promise<readonly Answer[]> {
  const peer = await world.alice.connect("client");
  return Promise.all(
    sends.map((send, n) => (n % 2 === 0 ? peer.request("send", send) : world.alice.call("POST", "/messages", send))),
  );
}

const races: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "1.5",
    "race-same-content",
    "of many sends of one id at once exactly one is 201; all have its ids",
    async (world) => {
      for (let round = 0; round < 10; round++) {
        const send = { client_message_id: world.fresh("race"), destination: toMember(world.bob), body: "x" };
        const replies = await sendAllAtOnce(
          world,
          Array.from({ length: raceWidth }, () => send),
        );
        const first = replies.filter(({ status }) => status === 201);
        const request = replies[0]?.request ?? "";
        expectEqual(first.length, 1, "answers with 201", request);
        for (const reply of replies) {
          const { broker_message_id, history_id } = (first[0]?.body ?? {}) as Record<string, string>;
          const duplicate = reply.status === 200;
          expectAnswer(reply, [200, 201], { broker_message_id, history_id, duplicate });
        }
        const page = expectAnswer(
          await world.bob.call("GET", `/history?after=${Number(first[0]?.body.history_id) - 1}`),
          200,
        );
        const rows = itemsOf(page).filter((item) => item.client_message_id === send.client_message_id);
        expectEqual(rows.length, 1, "rows of that id in the history", page.request);
      }
    },
  ),
  scenario(
    "1.5",
    "race-other-content",
    "of many contents under one id at once exactly one is accepted; the others are 409",
    async (world) => {
      for (let round = 0; round < 10; round++) {
        const id = world.fresh("race");
        const sends = Array.from({ length: raceWidth }, (_, n) => ({
          client_message_id: id,
          destination: toMember(world.bob),
          body: `content ${n}`,
        }));
        const replies = await sendAllAtOnce(world, sends);
        expectEqual(
          replies.filter(({ status }) => status === 201).length,
          1,
          "answers with 201",
          replies[0]?.request ?? "",
        );
        for (const reply of replies.filter(({ status }) => status !== 201)) {
          expectRefusal(reply, 409, "idempotency_key_reused", { conflict: "request_fingerprint_mismatch" });
        }
      }
    },
  ),
  scenario("1.5", "race-fence", "of a send and its fence at once, both tell one story, for ever", async (world) => {
    for (let round = 0; round < 20; round++) {
      const send = { client_message_id: world.fresh("race"), destination: toMember(world.bob), body: "x" };
      const fingerprint = fingerprintOf(send);
      const first = () => world.alice.call("POST", "/messages", send);
      const second = () => fence(world.alice, send.client_message_id, fingerprint);
      const [sent, fenced] =
        round % 2 === 0 ? await Promise.all([first(), second()]) : (await Promise.all([second(), first()])).reverse();
      if (sent === undefined || fenced === undefined) throw new Error("two answers");
      if (fieldOf(fenced, "fate") === "fenced") expectRefusal(sent, 409, "fenced");
      else
        expectAnswer(sent, 201, {
          broker_message_id: fieldOf(expectAnswer(fenced, 200, { fate: "committed" }), "broker_message_id"),
        });
      const now = await fate(world.alice, send.client_message_id, fingerprint);
      expectAnswer(now, 200, { fate: fieldOf(fenced, "fate") });
    }
  }),
];

const history: readonly Scenario<BrokerWorld>[] = [
  scenario("1.5", "history-order", "a reader that has seen n never later finds a row below n", async (world) => {
    const start = await accept(world.alice, {
      client_message_id: world.fresh("start"),
      destination: toMember(world.bob),
      body: "x",
    });
    const seen: number[] = [];
    let after = Number(fieldOf(start, "history_id"));
    let open = 0;
    const writers = [world.alice, world.carol, world.alice, world.carol].map(async (sender) => {
      open++;
      for (let n = 0; n < 25; n++) {
        await accept(sender, { client_message_id: world.fresh("order"), destination: toMember(world.bob), body: "x" });
      }
      open--;
    });
    const reader = async () => {
      for (let last = false; !last; ) {
        last = open === 0;
        const page = expectAnswer(await world.bob.call("GET", `/history?after=${after}&limit=1000`), 200);
        for (const { history_id } of itemsOf(page)) {
          expectThat(Number(history_id) > after, `ids above ${after}, rising`, history_id, page.request);
          after = Number(history_id);
          seen.push(after);
        }
      }
    };
    await Promise.all([...writers, reader()]);
    const all = expectAnswer(
      await world.bob.call("GET", `/history?after=${fieldOf(start, "history_id")}&limit=1000`),
      200,
    );
    const ids = itemsOf(all).map(({ history_id }) => Number(history_id));
    const missed = ids.filter((id) => !seen.includes(id));
    if (missed.length > 0) {
      throw new Miss({
        expected: "nothing but what the reader had seen",
        got: `also ${show(missed)}`,
        request: all.request,
      });
    }
    expectEqual(seen.length, 100, "rows that the reader saw", all.request);
  }),
  scenario(
    "1.5",
    "history-grows",
    "a message that was accepted after another's answer has a greater history_id",
    async (world) => {
      let before = 0;
      for (let n = 0; n < 5; n++) {
        const sender = n % 2 === 0 ? world.alice : world.carol;
        const answer = await accept(sender, {
          client_message_id: world.fresh("grow"),
          destination: toMember(world.bob),
          body: "x",
        });
        const now = Number(fieldOf(answer, "history_id"));
        expectThat(now > before, `a history_id above ${before}`, now, answer.request);
        before = now;
      }
    },
  ),
];

export const orderingScenarios: readonly Scenario<BrokerWorld>[] = [...fences, ...races, ...history];
