// 1.6: queues with leases, for competing consumers.
import {
  type Answer,
  eventually,
  expectAnswer,
  expectEqual,
  expectRefusal,
  expectThat,
  fieldOf,
  itemsOf,
} from "../../frame/expect.ts";
import { aTime, aUuidV7 } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { accept, type BrokerWorld, type Caller, toQueue } from "./world.ts";

async function fill(world: BrokerWorld, queue: string, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const send = { client_message_id: world.fresh("job"), destination: toQueue(queue), body: `job ${n}` };
    ids.push(fieldOf(await accept(world.alice, send), "broker_message_id"));
  }
  return ids;
}

type LeaseRequest = { readonly lease_request_id: string; readonly max: number; readonly lease_s: number };

const lease = (who: Caller, queue: string, request: LeaseRequest) =>
  who.call("POST", `/queues/${queue}/lease`, request);

const settle = (who: Caller, queue: string, how: "ack" | "nack", leased: Answer, ids: readonly string[]) =>
  who.call("POST", `/queues/${queue}/${how}`, { lease_token: fieldOf(leased, "lease_token"), broker_message_ids: ids });

const idsOf = (leased: Answer) => itemsOf(leased).map((item) => String(item.broker_message_id));

const request = (world: BrokerWorld, max: number, leaseSeconds = 600): LeaseRequest => {
  return { lease_request_id: world.fresh("lease"), max, lease_s: leaseSeconds };
};

const leasing: readonly Scenario<BrokerWorld>[] = [
  scenario("1.6", "lease", "a lease has messages in history order, one token and an end", async (world) => {
    const queue = await world.queue();
    const ids = await fill(world, queue, 3);
    const leased = await lease(world.bob, queue, request(world, 2));
    const item = {
      destination: { kind: "queue", ref: queue },
      body: "job 0",
      deliveries: 1,
      sender_pubkey: world.alice.pubkey,
    };
    expectAnswer(leased, 200, { items: [item, { body: "job 1" }], lease_token: aUuidV7, expires_at: aTime });
    expectEqual(idsOf(leased), ids.slice(0, 2), "the oldest two", leased.request);
  }),
  scenario(
    "1.6",
    "lease-again",
    "the same lease_request_id gets the same messages, less those settled, and the same token",
    async (world) => {
      const queue = await world.queue();
      const ids = await fill(world, queue, 3);
      const wanted = request(world, 3);
      const first = expectAnswer(await lease(world.bob, queue, wanted), 200);
      const again = expectAnswer(await lease(world.bob, queue, wanted), 200, {
        lease_token: fieldOf(first, "lease_token"),
      });
      expectEqual(idsOf(again), ids, "the same messages", again.request);
      expectAnswer(await settle(world.bob, queue, "ack", first, ids.slice(0, 1)), 200);
      const rest = expectAnswer(await lease(world.bob, queue, wanted), 200, {
        lease_token: fieldOf(first, "lease_token"),
      });
      expectEqual(idsOf(rest), ids.slice(1), "what is not settled", rest.request);
      expectRefusal(await lease(world.bob, queue, { ...wanted, max: 2 }), 409, "exists_with_other_content");
    },
  ),
  scenario("1.6", "lease-excludes", "a message is in one live lease at most", async (world) => {
    const queue = await world.queue();
    const ids = await fill(world, queue, 12);
    const leases = await Promise.all(
      Array.from({ length: 8 }, (_, n) => lease(n % 2 ? world.bob : world.carol, queue, request(world, 3))),
    );
    const handed = leases.flatMap((each) => idsOf(expectAnswer(each, 200)));
    expectEqual([...handed].sort(), [...ids].sort(), "each message handed out once", leases[0]?.request ?? "");
    expectAnswer(await lease(world.bob, queue, request(world, 3)), 200, {
      items: [],
      lease_token: null,
      expires_at: null,
    });
  }),
  scenario("1.6", "empty-lease", "an empty answer claims nothing, not even the request id", async (world) => {
    const queue = await world.queue();
    const wanted = request(world, 2);
    expectAnswer(await lease(world.bob, queue, wanted), 200, { items: [], lease_token: null, expires_at: null });
    const ids = await fill(world, queue, 1);
    const leased = expectAnswer(await lease(world.bob, queue, wanted), 200, { lease_token: aUuidV7 });
    expectEqual(idsOf(leased), ids, "what has come since", leased.request);
  }),
  scenario(
    "1.6",
    "lease-ids-are-ones-own",
    "a lease_request_id is one member's; another's is another lease",
    async (world) => {
      const queue = await world.queue();
      await fill(world, queue, 2);
      const wanted = request(world, 1);
      const [bobs, carols] = [await lease(world.bob, queue, wanted), await lease(world.carol, queue, wanted)];
      expectThat(idsOf(bobs)[0] !== idsOf(carols)[0], "two messages", idsOf(carols), carols.request);
      const stolen = await settle(world.carol, queue, "ack", bobs, idsOf(bobs));
      expectRefusal(stolen, 409, "lease_lost");
      expectAnswer(await settle(world.bob, queue, "ack", bobs, idsOf(bobs)), 200);
    },
  ),
];

const settling: readonly Scenario<BrokerWorld>[] = [
  scenario("1.6", "ack", "an acked message is out for good, and the same ack is 200 for ever", async (world) => {
    const queue = await world.queue();
    const ids = await fill(world, queue, 1);
    const leased = expectAnswer(await lease(world.bob, queue, request(world, 1)), 200);
    for (let tries = 0; tries < 3; tries++) {
      const items = [{ broker_message_id: ids[0] ?? "", settlement: "acked" }];
      expectAnswer(await settle(world.bob, queue, "ack", leased, ids), 200, { items });
      expectAnswer(await lease(world.carol, queue, request(world, 1)), 200, { items: [] });
    }
  }),
  scenario("1.6", "nack", "a nacked message is available at once, and counts as delivered once more", async (world) => {
    const queue = await world.queue();
    const ids = await fill(world, queue, 1);
    const leased = expectAnswer(await lease(world.bob, queue, request(world, 1)), 200);
    expectAnswer(await settle(world.bob, queue, "nack", leased, ids), 200, { items: [{ settlement: "nacked" }] });
    const next = await lease(world.carol, queue, request(world, 1));
    expectAnswer(next, 200, { items: [{ broker_message_id: ids[0] ?? "", deliveries: 2 }] });
    expectAnswer(await settle(world.bob, queue, "nack", leased, ids), 200, { items: [{ settlement: "nacked" }] });
    expectAnswer(await settle(world.carol, queue, "ack", next, ids), 200);
  }),
  scenario(
    "1.6",
    "unknown-token",
    "a token that never held a message gets lease_lost, which names it",
    async (world) => {
      const queue = await world.queue();
      const ids = await fill(world, queue, 2);
      const leased = expectAnswer(await lease(world.bob, queue, request(world, 1)), 200);
      const answer = await settle(world.bob, queue, "ack", leased, ids);
      expectRefusal(answer, 409, "lease_lost", { lost: [ids[1] ?? ""] });
      const wanted = await lease(world.carol, queue, request(world, 2));
      expectEqual(idsOf(wanted), [ids[1]], "that nothing of the call was applied", answer.request);
    },
  ),
  scenario(
    "1.6",
    "lease-ends",
    "after its end a lease is lost: request id, ack and nack are 409, what it settled stays 200",
    async (world) => {
      const queue = await world.queue();
      const ids = await fill(world, queue, 2);
      const short = request(world, 2, 1);
      const leased = expectAnswer(await lease(world.bob, queue, short), 200);
      expectAnswer(await settle(world.bob, queue, "ack", leased, ids.slice(0, 1)), 200);
      await eventually("the message is available again", async () => {
        const next = expectAnswer(await lease(world.carol, queue, request(world, 1)), 200);
        return idsOf(next).length === 1 ? { found: next } : { got: next.body, request: next.request };
      });
      expectRefusal(await lease(world.bob, queue, short), 409, "lease_lost");
      expectRefusal(await settle(world.bob, queue, "ack", leased, ids.slice(1)), 409, "lease_lost");
      expectRefusal(await settle(world.bob, queue, "nack", leased, ids.slice(1)), 409, "lease_lost");
      expectAnswer(await settle(world.bob, queue, "ack", leased, ids.slice(0, 1)), 200, {
        items: [{ settlement: "acked" }],
      });
    },
  ),
  scenario("1.6", "revoked-holder", "a revoked member's leases end at once", async (world) => {
    const { owner } = world;
    const queue = await world.queue();
    const ids = await fill(world, queue, 1);
    const dave = await world.join("dave");
    expectEqual(
      idsOf(await lease(dave, queue, request(world, 1))),
      ids,
      "a lease of dave",
      `POST /queues/${queue}/lease`,
    );
    expectAnswer(await owner.call("DELETE", `/members/${dave.pubkey}`), 200);
    const next = await lease(world.bob, queue, request(world, 1));
    expectEqual(idsOf(next), ids, "the message, free again", next.request);
  }),
  scenario(
    "1.6",
    "parked",
    "after max_deliveries a message is parked, listed, and revived with a fresh count",
    async (world) => {
      const queue = await world.queue(2);
      const ids = await fill(world, queue, 1);
      for (let tries = 0; tries < 2; tries++) {
        const leased = expectAnswer(await lease(world.bob, queue, request(world, 1)), 200, {
          items: [{ deliveries: tries + 1 }],
        });
        expectAnswer(await settle(world.bob, queue, "nack", leased, ids), 200);
      }
      expectAnswer(await lease(world.bob, queue, request(world, 1)), 200, { items: [] });
      const parked = { broker_message_id: ids[0] ?? "", parked_at: aTime, body: "job 0" };
      expectAnswer(await world.bob.call("GET", `/queues/${queue}/parked`), 200, { items: [parked], next_after: null });
      const revive = (messageIds: readonly string[]) =>
        world.bob.call("POST", `/queues/${queue}/revive`, { broker_message_ids: messageIds });
      expectRefusal(await revive([...ids, "0198c0de-0000-7000-8000-0000000000aa"]), 404, "not_found");
      expectAnswer(await revive(ids), 200, { revived: 1 });
      expectAnswer(await revive(ids), 200, { revived: 0 });
      expectAnswer(await lease(world.carol, queue, request(world, 1)), 200, { items: [{ deliveries: 1 }] });
    },
  ),
  scenario(
    "1.6",
    "default-deliveries",
    "a queue parks after five deliveries unless it says otherwise",
    async (world) => {
      const id = world.fresh("queue");
      expectAnswer(await world.alice.call("POST", "/queues", { id }), 201, { id, max_deliveries: 5 });
      expectAnswer(await world.alice.call("POST", "/queues", { id, max_deliveries: 5 }), 200);
      expectRefusal(
        await world.alice.call("POST", "/queues", { id, max_deliveries: 6 }),
        409,
        "exists_with_other_content",
      );
    },
  ),
];

export const queueScenarios: readonly Scenario<BrokerWorld>[] = [...leasing, ...settling];
