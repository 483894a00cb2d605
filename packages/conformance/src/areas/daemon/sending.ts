// 1.3: the eleven rows of the daemon's answer, addresses, and what is answered from a row before any check.
import { randomBytes } from "node:crypto";
import { expectAnswer, expectEqual, expectRefusal, fieldOf } from "../../frame/expect.ts";
import { absent, aHistoryId, aPrefix, aText, aUuidV7, type Pattern } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { readVectors } from "../../vectors.ts";
import type { DaemonWorld } from "./world.ts";

type AddressVectors = { readonly refused: readonly string[] };

const aQueued = { outbox_id: aText, status: "queued", request_fingerprint: aPrefix };

/** 409 with both prefixes: that of this request, and the stored one. */
async function expectConflict(
  world: DaemonWorld,
  send: { readonly client_message_id: string },
  state: string,
  match: boolean,
  more: { readonly [field: string]: Pattern } = {},
): Promise<void> {
  const answer = await world.send(send);
  expectRefusal(answer, 409, "idempotency_key_reused", {
    conflict: `outbox_${state}_fingerprint_${match ? "match" : "mismatch"}`,
    client_message_id: send.client_message_id,
    daemon_fingerprint_prefix: aPrefix,
    stored_fingerprint_prefix: aPrefix,
    ...more,
  });
  const same = answer.body.daemon_fingerprint_prefix === answer.body.stored_fingerprint_prefix;
  expectEqual(same, match, "whether the two prefixes are one", answer.request);
}

const rows: readonly Scenario<DaemonWorld>[] = [
  scenario("1.3", "new", "a new id is 202 queued, not a duplicate", async (world) => {
    const id = world.fresh("new");
    const answer = await world.send({ to: "@self", message: "x", client_message_id: id });
    expectAnswer(answer, 202, { ...aQueued, client_message_id: id, duplicate: false, broker_message_id: absent });
  }),
  scenario(
    "1.3",
    "pending-match",
    "a pending row with the same content is 202 queued, a duplicate of the same row",
    async (world) => {
      world.link.goAway();
      const send = { to: "@self", message: "x", client_message_id: world.fresh("pending") };
      const first = expectAnswer(await world.send(send), 202, { duplicate: false });
      const row = {
        outbox_id: fieldOf(first, "outbox_id"),
        request_fingerprint: fieldOf(first, "request_fingerprint"),
      };
      expectAnswer(await world.send(send), 202, { status: "queued", duplicate: true, ...row });
    },
  ),
  scenario("1.3", "pending-mismatch", "a pending row with other content is 409", async (world) => {
    world.link.goAway();
    const send = { to: "@self", message: "x", client_message_id: world.fresh("pending") };
    expectAnswer(await world.send(send), 202);
    await expectConflict(world, { ...send, message: "y" } as typeof send, "pending", false);
  }),
  scenario(
    "1.3",
    "inflight-match",
    "an inflight row with the same content is 202 inflight, a duplicate of the same row",
    async (world) => {
      const send = await inflight(world);
      const again = await world.send(send);
      expectAnswer(again, 202, { status: "inflight", duplicate: true, outbox_id: aText, request_fingerprint: aPrefix });
    },
  ),
  scenario("1.3", "inflight-mismatch", "an inflight row with other content is 409", async (world) => {
    const send = await inflight(world);
    await expectConflict(world, { ...send, message: "y" } as typeof send, "inflight", false);
  }),
  scenario("1.3", "done-match", "a done row with the same content is 200 with the broker's ids", async (world) => {
    const { id, row } = await world.doneRow();
    expectAnswer(await world.send({ to: "@self", message: "x", client_message_id: id }), 200, {
      client_message_id: id,
      outbox_id: String(row.id),
      status: "done",
      duplicate: true,
      broker_message_id: aUuidV7,
      history_id: aHistoryId,
      request_fingerprint: aPrefix,
    });
  }),
  scenario(
    "1.3",
    "done-mismatch",
    "a done row with other content is 409 and names the broker's message",
    async (world) => {
      const { id, row } = await world.doneRow();
      const send = { to: "@self", message: "y", client_message_id: id };
      await expectConflict(world, send, "done", false, { broker_message_id: String(row.broker_message_id) });
    },
  ),
  scenario(
    "1.3",
    "dead-match",
    "a dead row with the same content is 409 with the reason; it is never tried again",
    async (world) => {
      const { id, to, message } = await world.deadRow();
      await expectConflict(
        world,
        { to, message, client_message_id: id } as { client_message_id: string },
        "dead",
        true,
        { reason: aText },
      );
      await world.untilRow(id, { status: "dead" });
    },
  ),
  scenario("1.3", "dead-mismatch", "a dead row with other content is 409", async (world) => {
    const { id, to } = await world.deadRow();
    const send = { to, message: "y", client_message_id: id };
    await expectConflict(world, send, "dead", false);
  }),
  scenario("1.3", "aborted", "an aborted row is 409 with the same and with other content, for ever", async (world) => {
    const { id, to, message } = await world.deadRow();
    expectAnswer(await world.post("/v1/outbox/requeue", { id }), 200);
    for (let tries = 0; tries < 2; tries++) {
      const send = { to, message, client_message_id: id };
      await expectConflict(world, send, "aborted", true);
      await expectConflict(world, { ...send, message: "y" } as typeof send, "aborted", false);
    }
  }),
  scenario("1.3", "race", "of many sends of one id at once exactly one is new", async (world) => {
    for (let round = 0; round < 10; round++) {
      const send = { to: "@self", message: "x", client_message_id: world.fresh("race") };
      const answers = await Promise.all(Array.from({ length: 12 }, () => world.send(send)));
      for (const answer of answers) expectAnswer(answer, [200, 202]);
      const fresh = answers.filter(({ body }) => body.duplicate === false);
      expectEqual(fresh.length, 1, "answers with duplicate false", answers[0]?.request ?? "");
      const rowIds = new Set(answers.map((answer) => fieldOf(answer, "outbox_id")));
      expectEqual(rowIds.size, 1, "outbox rows", answers[0]?.request ?? "");
    }
  }),
  scenario(
    "1.3",
    "race-other-content",
    "of many contents under one id at once exactly one is taken; the others are 409",
    async (world) => {
      for (let round = 0; round < 10; round++) {
        const id = world.fresh("race");
        const send = (n: number) => world.send({ to: "@self", message: `content ${n}`, client_message_id: id });
        const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => send(n)));
        expectEqual(
          answers.filter(({ status }) => status === 202).length,
          1,
          "answers with 202",
          answers[0]?.request ?? "",
        );
        for (const answer of answers.filter(({ status }) => status !== 202)) {
          expectRefusal(answer, 409, "idempotency_key_reused");
        }
      }
    },
  ),
];

/** A row whose try gets no answer of the broker. */
async function inflight(world: DaemonWorld) {
  const { link } = world;
  await world.needBroker();
  const send = { to: "@self", message: "x", client_message_id: world.fresh("inflight") };
  link.rule({ up: (frame) => (frame.client_message_id === send.client_message_id ? "swallow" : "pass") });
  expectAnswer(await world.send(send), 202);
  await world.untilRow(send.client_message_id, { status: "inflight" });
  return send;
}

const addresses: readonly Scenario<DaemonWorld>[] = [
  scenario("1.3", "addresses-refused", "what has none of the known forms is no address", async (world) => {
    for (const to of readVectors<AddressVectors>("addresses").refused) {
      const answer = await world.send({ to, message: "x" });
      // A text longer than any address may be refused for its length.
      if (to.length > 192) expectRefusal(answer, 400);
      else expectRefusal(answer, 400, to.includes("\0") ? undefined : "invalid_address");
    }
  }),
  scenario(
    "1.3",
    "address-forms",
    "#name and topic:name are one destination; queue:id and dm:key are others",
    async (world) => {
      const name = await world.topic();
      const id = world.fresh("forms");
      expectAnswer(await world.send({ to: `#${name}`, message: "x", client_message_id: id }), 202);
      const again = await world.send({ to: `topic:${name}`, message: "x", client_message_id: id });
      expectAnswer(again, [200, 202], { duplicate: true });
      const other = await world.send({ to: `queue:${name}`, message: "x", client_message_id: id });
      expectRefusal(other, 409, "idempotency_key_reused");
    },
  ),
  scenario(
    "1.3",
    "missing-destination",
    "with the broker connected, a topic, queue or key that is not there is 404, and consumes nothing",
    async (world) => {
      await world.needBroker();
      const id = world.fresh("missing");
      const stranger = `dm:${randomBytes(32).toString("hex")}`;
      for (const to of [`topic:${world.fresh("none")}`, `queue:${world.fresh("none")}`, stranger]) {
        const answer = await world.send({ to, message: "x", client_message_id: id });
        expectRefusal(answer, 404, "destination_not_found");
      }
      expectAnswer(await world.send({ to: "@self", message: "x", client_message_id: id }), 202, { duplicate: false });
    },
  ),
  scenario("1.3", "unknown-name", "a name that no member has is 404, and consumes nothing", async (world) => {
    await world.needBroker();
    const id = world.fresh("name");
    const answer = await world.send({ to: `@${world.fresh("no-member")}`, message: "x", client_message_id: id });
    expectRefusal(answer, 404, "destination_not_found");
    expectAnswer(await world.send({ to: "@self", message: "x", client_message_id: id }), 202, { duplicate: false });
  }),
  scenario(
    "1.3",
    "row-before-checks",
    "an id that has a row is answered from it before name and size are checked",
    async (world) => {
      const { id } = await world.doneRow();
      const unknown = await world.send({ to: `@${world.fresh("no-member")}`, message: "x", client_message_id: id });
      expectRefusal(unknown, 409, "idempotency_key_reused", { conflict: "outbox_done_fingerprint_mismatch" });
      const large = await world.send({ to: "@self", message: "x".repeat(900_000), client_message_id: id });
      expectRefusal(large, 409, "idempotency_key_reused", { conflict: "outbox_done_fingerprint_mismatch" });
    },
  ),
  scenario("1.3", "lowered-limit", "a limit that was lowered refuses new sends, and no exact retry", async (world) => {
    const message = "x".repeat(2_000);
    // The link first: without it there is nothing to reduce.
    world.link.reset();
    const { id } = await world.doneRow({ message });
    await world.whileAnnounced(
      "max_payload",
      { inline_bytes: 1_024, blob_bytes: 1_024 },
      { inline_bytes: 1_024 },
      async () => {
        expectRefusal(await world.send({ to: "@self", message }), 413, "payload_too_large");
        const again = await world.send({ to: "@self", message, client_message_id: id });
        expectAnswer(again, 200, { status: "done", duplicate: true });
      },
    );
  }),
  scenario("1.3", "size", "a wire body above the broker's inline_bytes is 413", async (world) => {
    await world.needBroker();
    const { limits } = expectAnswer(await world.get("/v1/compat"), 200).body as { limits?: { inline_bytes?: number } };
    const bytes = Number(limits?.inline_bytes);
    const to = `#${await world.topic()}`;
    const body = (length: number) => ({ to, message_base64: Buffer.alloc(length, 7).toString("base64") });
    expectRefusal(await world.send(body(bytes + 1)), 413, "payload_too_large");
    if (bytes * 1.4 < 1_000_000) expectAnswer(await world.send(body(bytes)), 202);
  }),
  scenario("1.3", "topic-post", "/v1/topic/post is a send to #topic, under the same rules", async (world) => {
    const topic = await world.topic();
    const post = { topic, message: "x", client_message_id: world.fresh("post") };
    const first = expectAnswer(await world.post("/v1/topic/post", post), 202, { ...aQueued, duplicate: false });
    const { client_message_id, message } = post;
    const same = await world.send({ to: `#${topic}`, message, client_message_id });
    const prefix = fieldOf(first, "request_fingerprint");
    expectAnswer(same, [200, 202], { duplicate: true, request_fingerprint: prefix });
    expectRefusal(await world.post("/v1/topic/post", { ...post, to: "@self" }), 400, "unknown_field");
  }),
];

export const sendingScenarios: readonly Scenario<DaemonWorld>[] = [...rows, ...addresses];
