// 1.4: what the broker's answers do to a row, requeue, and prune.
import {
  type Answer,
  eventually,
  expectAnswer,
  expectEqual,
  expectRefusal,
  expectThat,
  fieldOf,
} from "../../frame/expect.ts";
import { aHistoryId, aText, aTime, aUuidV7, type Pattern } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { Frame } from "../../transport/socket-peer.ts";
import { fingerprintOf, readVectors } from "../../vectors.ts";
import { untilArrived } from "./arrivals.ts";
import { type DaemonWorld, reconnectBoundMs } from "./world.ts";

const refusal = (status: number, error: string, more: object = {}) => ({
  status,
  body: { error, message: "as the scenario has it", retryable: status >= 429, ...more },
});

/** Answers the first try of a row in place of the broker; further tries pass. */
async function sendAnswered(
  world: DaemonWorld,
  answer: { readonly status: number; readonly body: object },
): Promise<string> {
  const { link } = world;
  await world.needBroker();
  const id = world.fresh("answer");
  let tries = 0;
  link.rule({
    up: (frame) => {
      if (frame.type !== "send" || frame.client_message_id !== id || tries++ > 0) return "pass";
      return { instead: { type: "reply", id: frame.id, ...answer } };
    },
  });
  expectAnswer(await world.send({ to: "@self", message: "x", client_message_id: id }), 202);
  return id;
}

const isSendOf = (id: string) => (frame: Frame) => frame.type === "send" && frame.client_message_id === id;

/** The wire fingerprint of each try of a row. */
function triesOf(world: DaemonWorld, id: string): string[] {
  return world.link.sentByDaemon
    .map((text) => JSON.parse(text) as Frame)
    .filter(isSendOf(id))
    .map(({ type: _type, id: _id, ...send }) => fingerprintOf(send));
}

const answers: readonly Scenario<DaemonWorld>[] = [
  scenario("1.4", "answer-done", "201 makes a row done, with the broker's ids", async (world) => {
    const { row } = await world.doneRow();
    const wanted = { broker_message_id: aUuidV7, history_id: aHistoryId, delivered_at: aTime, fate: "committed" };
    expectAnswer({ status: 200, body: row, request: "GET /v1/outbox/:id" }, 200, wanted);
  }),
  scenario("1.4", "answer-dead", "409 and other refusals make a row dead, refused, with last_error", async (world) => {
    for (const answer of [
      refusal(409, "idempotency_key_reused"),
      refusal(404, "destination_not_found"),
      refusal(400, "invalid_request"),
    ]) {
      const id = await sendAnswered(world, answer);
      await world.untilRow(id, { status: "dead", fate: "refused", last_error: aText });
    }
  }),
  scenario(
    "1.4",
    "answer-again",
    "429, 408 and 5xx put a row back, and it is tried again until it is done",
    async (world) => {
      const passing = [
        refusal(429, "rate_limited", { retry_after_s: 1 }),
        refusal(408, "request_timeout"),
        refusal(500, "internal"),
        refusal(503, "storage_unavailable"),
      ];
      for (const answer of passing) {
        const id = await sendAnswered(world, answer);
        await world.untilRow(id, { status: "done" }, reconnectBoundMs);
        const tries = triesOf(world, id);
        expectThat(tries.length >= 2, "a second try", tries.length, `frames send ${id}`);
      }
    },
  ),
  scenario(
    "1.4",
    "answer-unauthorized",
    "401 is about the link: the row waits for the next hello and is sent then",
    async (world) => {
      const id = await sendAnswered(world, refusal(401, "unauthorized"));
      await world.untilRow(id, { status: "done" }, reconnectBoundMs);
    },
  ),
  scenario("1.4", "retry-after", "429 honours Retry-After", async (world) => {
    const id = await sendAnswered(world, refusal(429, "rate_limited", { retry_after_s: 3 }));
    const row = await eventually("the row waits for its next try", async () => {
      const answer = await world.get(`/v1/outbox/${id}`);
      const { attempts } = (answer.body.row ?? {}) as { attempts?: number };
      return attempts === 1
        ? { found: answer.body.row as Answer["body"] }
        : { got: answer.body, request: answer.request };
    });
    const waits = Number(row.next_attempt_at) - Number(row.enqueued_at);
    expectThat(waits >= 3_000, "a next try 3 s later at least", waits, `GET /v1/outbox/${id}`);
    await world.untilRow(id, { status: "done" }, reconnectBoundMs);
  }),
  scenario(
    "1.4",
    "lost-answer",
    "a try whose answer was lost is repeated byte for byte, and the message lands once",
    async (world) => {
      const { link } = world;
      await world.needBroker();
      const id = world.fresh("lost");
      let requestId: unknown;
      let lost = false;
      link.rule({
        up: (frame) => {
          if (isSendOf(id)(frame)) requestId = frame.id;
          return "pass";
        },
        down: (frame) => {
          if (lost || frame.type !== "reply" || requestId === undefined || frame.id !== requestId) return "pass";
          lost = true;
          return "cut";
        },
      });
      expectAnswer(await world.send({ to: "@self", message: id, client_message_id: id }), 202);
      await world.untilRow(id, { status: "done", broker_message_id: aUuidV7 }, reconnectBoundMs);
      const tries = triesOf(world, id);
      expectThat(tries.length >= 2, "a second try", tries.length, `frames send ${id}`);
      expectEqual(new Set(tries).size, 1, "different envelopes among the tries", tries[1] ?? "");
      await untilArrived(world, id);
    },
  ),
];

type MaxAgeVectors = {
  readonly cases: readonly {
    readonly dedupe: Readonly<Record<string, unknown>> | null;
    readonly override_hours: number | null;
    readonly hours: number | null;
  }[];
};

const ages: readonly Scenario<DaemonWorld>[] = [
  scenario(
    "1.4",
    "max-age",
    "max age follows from the announced window as the published vectors say",
    async (world) => {
      const derived = readVectors<MaxAgeVectors>("max-age").cases.filter((each) => each.override_hours === null);
      // One of each kind: the floor, a margin that is rounded up, and a broker that never forgets.
      const shown = derived.filter(
        ({ dedupe }) => [7, 11].includes(Number(dedupe?.dedupe_retention_days)) || dedupe?.mode === "permanent",
      );
      expectEqual(shown.length, 3, "vectors to try", "packages/protocol/vectors/max-age.json");
      for (const { dedupe, hours } of shown) {
        await world.whileAnnounced(
          "client_message_id_dedupe",
          dedupe ?? {},
          { max_age_hours: hours },
          async () => undefined,
        );
      }
    },
  ),
];

const requeue = (world: DaemonWorld, json: object) => world.post("/v1/outbox/requeue", json);

/** A row whose only try got no answer, with a broker that cannot be reached since. */
async function unknownFate(world: DaemonWorld, reached: boolean): Promise<string> {
  const { link } = world;
  await world.needBroker();
  const id = world.fresh("unknown");
  let requestId: unknown;
  link.rule({
    up: (frame) => {
      if (!isSendOf(id)(frame)) return "pass";
      requestId ??= frame.id;
      return reached ? "pass" : "swallow";
    },
    down: (frame) => (frame.type === "reply" && requestId !== undefined && frame.id === requestId ? "swallow" : "pass"),
  });
  expectAnswer(await world.send({ to: "@self", message: "x", client_message_id: id }), 202);
  await eventually("the row's frame has left", async () =>
    triesOf(world, id).length > 0 ? { found: true } : { got: "no frame", request: `POST /v1/send ${id}` },
  );
  return id;
}

const requeues: readonly Scenario<DaemonWorld>[] = [
  scenario(
    "1.4",
    "requeue",
    "a dead row becomes aborted and names its successor, which is pending with a fresh id",
    async (world) => {
      const { id } = await world.deadRow({ meta: { n: 1 }, priority: "now", reply_to_id: "r" });
      const old = (await world.untilRow(id, {})).body;
      const newId = world.fresh("again");
      const answer = await requeue(world, { id, new_client_id: newId });
      expectAnswer(answer, 200, {
        old: { id: String(old.id), client_message_id: id, status: "aborted" },
        new: { outbox_id: aText, client_message_id: newId },
      });
      const successor = String((answer.body.new as { outbox_id: unknown }).outbox_id);
      const aborted = await world.untilRow(id, {
        status: "aborted",
        aborted_at: aTime,
        aborted_by: aText,
        superseded_by: successor,
      });
      const kept = await world.untilRow(newId, { id: successor });
      for (const column of [
        "to",
        "destination_kind",
        "destination_ref",
        "priority",
        "meta",
        "reply_to_id",
        "request_fingerprint",
      ]) {
        expectEqual(kept.body[column], aborted.body[column], `the successor's ${column}`, kept.request);
      }
      const chain = expectAnswer(await world.get(`/v1/outbox/${newId}`), 200);
      const ids = (chain.body.chain as { client_message_id: string }[]).map((row) => row.client_message_id);
      expectEqual(ids, [id, newId], "the chain, oldest first", chain.request);
    },
  ),
  scenario("1.4", "requeue-fresh-id", "a requeue without an id of its own makes one", async (world) => {
    const { id } = await world.deadRow();
    const answer = expectAnswer(await requeue(world, { id }), 200);
    const newId = (answer.body.new as { client_message_id: string }).client_message_id;
    expectThat(newId !== id && newId !== "", "a fresh client_message_id", newId, answer.request);
  }),
  scenario(
    "1.4",
    "requeue-refused",
    "only dead or pending rows are requeued; a consumed id is no new id",
    async (world) => {
      const [done, dead] = [await world.doneRow(), await world.deadRow()];
      expectRefusal(await requeue(world, { id: done.id }), 409, "not_requeueable");
      expectRefusal(await requeue(world, { id: dead.id, new_client_id: done.id }), 409, "client_id_consumed");
      expectRefusal(await requeue(world, { id: dead.id, new_client_id: "a b" }), 400, "invalid_client_message_id");
      expectRefusal(await requeue(world, { id: dead.id, colour: 1 }), 400, "unknown_field");
      expectRefusal(await requeue(world, { id: world.fresh("none") }), 404, "not_found");
      await world.untilRow(dead.id, { status: "dead" });
    },
  ),
  scenario(
    "1.4",
    "requeue-patched",
    "a patched payload has a new fingerprint; the old row keeps its own",
    async (world) => {
      const { id } = await world.deadRow();
      const before = (await world.untilRow(id, {})).body.request_fingerprint as Pattern;
      const newId = world.fresh("patched");
      expectAnswer(await requeue(world, { id, new_client_id: newId, patch_payload: { message: "changed" } }), 200);
      await world.untilRow(id, { request_fingerprint: before });
      const after = (await world.untilRow(newId, {})).body.request_fingerprint;
      expectThat(after !== before, "another fingerprint", after, `GET /v1/outbox/${newId}`);
    },
  ),
  scenario(
    "1.4",
    "requeue-fate-unknown",
    "a row that may have been accepted is not requeued while the broker is away",
    async (world) => {
      const id = await unknownFate(world, false);
      world.link.goAway();
      await world.untilRow(id, { status: "pending", fate: "unknown" });
      expectRefusal(await requeue(world, { id }), 409, "fate_unknown");
      await world.untilRow(id, { status: "pending" });
      const answer = expectAnswer(await requeue(world, { id, accept_duplicate: true }), 200);
      const { client_message_id } = answer.body.new as { client_message_id: string };
      await world.untilRow(id, { status: "aborted", accept_duplicate: true });
      await world.untilRow(client_message_id, { accept_duplicate: true });
    },
  ),
  scenario(
    "1.4",
    "requeue-already-accepted",
    "a row that the broker has after all becomes done, and its requeue is 409",
    async (world) => {
      const id = await unknownFate(world, true);
      const { link } = world;
      // The row itself is not tried again, so that the fence settles it.
      const holdBack = { up: (frame: Frame) => (isSendOf(id)(frame) ? ("swallow" as const) : ("pass" as const)) };
      link.rule(holdBack);
      link.cut();
      await world.untilOnline();
      await world.untilRow(id, { fate: "unknown" });
      const answer = await eventually(
        "the requeue is decided",
        async () => {
          const tried = await requeue(world, { id });
          return tried.body.error === "not_requeueable" && tried.body.status === "inflight"
            ? { got: tried.body, request: tried.request }
            : { found: tried };
        },
        reconnectBoundMs,
      );
      expectRefusal(answer, 409, "already_accepted", { broker_message_id: aUuidV7 });
      await world.untilRow(id, { status: "done" });
    },
  ),
];

const prune: readonly Scenario<DaemonWorld>[] = [
  scenario("1.4", "tombstone", "a pruned row answers like a done row, for ever", async (world) => {
    const { id, row } = await world.doneRow();
    expectAnswer(await world.post("/v1/outbox/prune", { older_than_days: 0 }), 200, { tombstones_made: aHistoryId });
    const send = { to: "@self", message: "x", client_message_id: id };
    const same = {
      status: "done",
      duplicate: true,
      broker_message_id: String(row.broker_message_id),
      outbox_id: String(row.id),
    };
    expectAnswer(await world.send(send), 200, same);
    expectRefusal(await world.send({ ...send, message: "y" }), 409, "idempotency_key_reused", {
      conflict: "outbox_done_fingerprint_mismatch",
    });
    await world.untilRow(id, { status: "done", client_message_id: id });
    expectEqual(
      fieldOf(await world.get(`/v1/messages/${id}`), "client_message_id"),
      id,
      "what is known of it",
      `GET /v1/messages/${id}`,
    );
  }),
  scenario("1.4", "prune-input", "prune takes a whole number of days and nothing else", async (world) => {
    for (const json of [
      {},
      { older_than_days: -1 },
      { older_than_days: "1" },
      { older_than_days: 1.5 },
      { older_than_days: 1, x: 1 },
    ]) {
      expectRefusal(await world.post("/v1/outbox/prune", json), 400);
    }
  }),
];

export const outboxScenarios: readonly Scenario<DaemonWorld>[] = [...answers, ...ages, ...requeues, ...prune];
