// 0 at the daemon: the answer of each mutating call is lost between commit and caller; the retry gets the same answer.
import { expectAnswer, expectRefusal, fieldOf } from "../../frame/expect.ts";
import { aCount, type Pattern } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { untilArrived } from "./arrivals.ts";
import type { DaemonWorld } from "./world.ts";

/** A call whose retry gets exactly the same answer. */
async function expectSameAgain(world: DaemonWorld, path: string, json: unknown): Promise<void> {
  const lost = expectAnswer(await world.lose(path, json), 200);
  for (let tries = 0; tries < 2; tries++) {
    expectAnswer(await world.post(path, json), 200, lost.body as Pattern);
  }
}

async function expectSameRow(world: DaemonWorld, path: string, json: object): Promise<void> {
  const lost = expectAnswer(await world.lose(path, json), 202, { duplicate: false });
  const { outbox_id, request_fingerprint, client_message_id } = lost.body as Record<string, string>;
  for (let tries = 0; tries < 2; tries++) {
    const row = { outbox_id, request_fingerprint, client_message_id, duplicate: true };
    expectAnswer(await world.post(path, json), [200, 202], row);
  }
}

/** A queue of the mesh with one message. */
async function filledQueue(world: DaemonWorld): Promise<string> {
  const queue = world.fresh("queue");
  expectAnswer(await world.peer("POST", "/queues", { id: queue }), 201);
  const send = { client_message_id: world.fresh("job"), destination: { kind: "queue", ref: queue }, body: "job" };
  expectAnswer(await world.peer("POST", "/messages", send), 201);
  await world.needBroker();
  return queue;
}

export const lostAnswerScenarios: readonly Scenario<DaemonWorld>[] = [
  scenario("0", "send", "send: the row's current answer, a duplicate of the same row", async (world) => {
    await expectSameRow(world, "/v1/send", { to: "@self", message: "x", client_message_id: world.fresh("lost") });
  }),
  scenario("0", "topic-post", "a post: the row's current answer, a duplicate of the same row", async (world) => {
    // The topic must exist, or the row would be dead by the time of the retry.
    const topic = await world.topic();
    await expectSameRow(world, "/v1/topic/post", { topic, message: "x", client_message_id: world.fresh("lost") });
  }),
  scenario("0", "requeue", "requeue: 409 naming the successor that the lost answer named", async (world) => {
    const { id } = await world.deadRow();
    const json = { id, new_client_id: world.fresh("successor") };
    const lost = expectAnswer(await world.lose("/v1/outbox/requeue", json), 200);
    const newRow = lost.body.new as { outbox_id: string; client_message_id: string };
    for (let tries = 0; tries < 2; tries++) {
      const { outbox_id, client_message_id } = newRow;
      const answer = await world.post("/v1/outbox/requeue", json);
      expectRefusal(answer, 409, "not_requeueable", { successor: { outbox_id, client_message_id } });
    }
  }),
  scenario("0", "prune", "prune: 200, nothing more happens", async (world) => {
    await world.doneRow();
    expectAnswer(await world.lose("/v1/outbox/prune", { older_than_days: 0 }), 200, { tombstones_made: aCount });
    expectAnswer(await world.post("/v1/outbox/prune", { older_than_days: 36_500 }), 200, { tombstones_made: 0 });
  }),
  scenario("0", "read-mark", "a read mark: 200, and the first mark stays", async (world) => {
    const { id } = await world.doneRow();
    const arrived = await untilArrived(world, id);
    await expectSameAgain(world, `/v1/inbox/${fieldOf(arrived, "id")}/read`, {});
  }),
  scenario("0", "subscription", "subscribe and unsubscribe: 200, nothing more happens", async (world) => {
    const topic = world.fresh("topic");
    expectAnswer(await world.peer("POST", "/topics", { name: topic }), 201);
    await world.needBroker();
    await expectSameAgain(world, "/v1/topic/subscribe", { topic });
    await expectSameAgain(world, "/v1/topic/unsubscribe", { topic });
  }),
  scenario("0", "profile", "a profile says what it said", async (world) => {
    await world.needBroker();
    await expectSameAgain(world, "/v1/profile", { summary: world.fresh("summary") });
  }),
  scenario("0", "queue-lease", "lease: the same messages under the same token", async (world) => {
    const queue = await filledQueue(world);
    await expectSameAgain(world, `/v1/queue/${queue}/lease`, {
      lease_request_id: world.fresh("l"),
      max: 1,
      lease_s: 600,
    });
  }),
  ...["ack", "nack"].map((how) =>
    scenario<DaemonWorld>("0", `queue-${how}`, `${how}: 200 for ever`, async (world) => {
      const queue = await filledQueue(world);
      const wanted = { lease_request_id: world.fresh("l"), max: 1, lease_s: 600 };
      const lease = expectAnswer(await world.post(`/v1/queue/${queue}/lease`, wanted), 200);
      const ids = (lease.body.items as { broker_message_id: string }[]).map(
        ({ broker_message_id }) => broker_message_id,
      );
      await expectSameAgain(world, `/v1/queue/${queue}/${how}`, {
        lease_token: fieldOf(lease, "lease_token"),
        broker_message_ids: ids,
      });
    }),
  ),
];
