// Deliveries over real sockets: pushed after commit, again until acknowledged, in history order, never further ahead of
// the acks than the window allows, and to slow or large receivers too.
import { describe, expect, test } from "vitest";
import {
  createTestMesh,
  joinTestMesh,
  startTestBroker,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import type { RawPeer } from "../../../../tests/support/raw-peer.ts";
import { DeliveryPump } from "./delivery-pump.ts";

/** All accepted, in this order. */
async function sendMany(sender: RawPeer, to: TestMember, ids: readonly string[], body: object = { body: "x" }) {
  const destination = { kind: "dm", ref: to.pubkey };
  const replies = await Promise.all(
    ids.map((client_message_id) =>
      sender.request("send", { client_message_id, destination, envelope_version: "2", ...body }),
    ),
  );
  for (const { status } of replies) expect(status).toBe(201);
}

const idsOf = (count: number, prefix = "m") => Array.from({ length: count }, (_, id) => `${prefix}${id}`);

async function pushesOf(peer: RawPeer, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push((await peer.nextPush()).client_message_id);
  return ids;
}

/** Everything that the broker had written before this question has arrived when it is answered. */
async function unaskedPushes(peer: RawPeer): Promise<number> {
  await peer.request("topic.list");
  return peer.arrived.filter(({ type }) => type === "message").length;
}

async function twoMembers(flags: Record<string, string> = {}) {
  const broker = await startTestBroker({ flags });
  const alice = await createTestMesh(broker);
  return { broker, alice, bob: await joinTestMesh(alice, "bob") };
}

describe("a pump", () => {
  test("reads when the turn comes, once for however many wakes", async () => {
    const turns: (() => void)[] = [];
    const asked: number[] = [];
    const pump = new DeliveryPump({
      store: {
        unsettled: async (_mesh, _recipient, after) => {
          asked.push(after);
          return [];
        },
      },
      meshId: "mesh",
      recipient: "ab".repeat(32),
      push: () => 0,
      onFailure: (error) => {
        throw error;
      },
      nextTurn: (run) => turns.push(run),
    });
    pump.wake();
    pump.wake();
    expect([turns.length, asked]).toEqual([1, []]);
    turns[0]?.();
    expect(asked).toEqual([0]);
  });
});

describe("a push", () => {
  test("brings the committed message to a connected receiver, as history has it", async () => {
    const { alice, bob } = await twoMembers();
    const receiver = await bob.connect();
    const sent = await alice.send("m1", bob, "grüße");
    const push = await receiver.nextPush();
    expect(push).toMatchObject({
      history_id: 1,
      broker_message_id: sent.body.broker_message_id,
      envelope_version: "2",
    });
    expect(Buffer.from(String(push.body_base64), "base64").toString()).toBe("grüße");
    expect((await receiver.request("history")).body).toEqual({ items: [push], next_after: null });
  });

  test("comes again after every reconnect, in history order, until it is acknowledged", async () => {
    const { alice, bob } = await twoMembers();
    await sendMany(await alice.connect("client"), bob, ["m1", "m2", "m3"]);
    for (let round = 0; round < 3; round++) {
      const receiver = await bob.connect();
      expect(await pushesOf(receiver, 3)).toEqual(["m1", "m2", "m3"]);
      await receiver.drop();
    }
    const receiver = await bob.connect();
    expect(await pushesOf(receiver, 3)).toEqual(["m1", "m2", "m3"]);
    await receiver.ack(2);
    await receiver.drop();
    const last = await bob.connect();
    expect(await pushesOf(last, 2)).toEqual(["m1", "m3"]);
    await last.ack(1, 3);
    await last.drop();
    const idle = await bob.connect();
    expect(await unaskedPushes(idle)).toBe(0);
  });

  test("is made once per connection, however often it is woken", async () => {
    const { alice, bob } = await twoMembers();
    const receiver = await bob.connect();
    const sender = await alice.connect("client");
    await sendMany(sender, bob, ["m1"]);
    expect(await pushesOf(receiver, 1)).toEqual(["m1"]);
    await sendMany(sender, bob, ["m2"]);
    expect(await pushesOf(receiver, 1)).toEqual(["m2"]);
    expect(await unaskedPushes(receiver)).toBe(0);
  });

  test("goes to the recipient alone, and an ack settles only what is one's own", async () => {
    const { alice, bob } = await twoMembers();
    const carol = await joinTestMesh(alice, "carol");
    const [receiver, bystander] = [await bob.connect(), await carol.connect()];
    await alice.send("m1", bob);
    expect(await pushesOf(receiver, 1)).toEqual(["m1"]);
    await bystander.ack(1);
    expect(await unaskedPushes(bystander)).toBe(0);
    await receiver.drop();
    expect(await pushesOf(await bob.connect(), 1)).toEqual(["m1"]);
  });

  test("is settled also by an ack over another connection of the member", async () => {
    const { alice, bob } = await twoMembers();
    await alice.send("m1", bob);
    const client = await bob.connect("client");
    await client.ack(1);
    expect(await unaskedPushes(await bob.connect())).toBe(0);
  });

  test("an ack of nothing, or of too much, is refused", async () => {
    const { bob } = await twoMembers();
    const receiver = await bob.connect();
    for (const history_ids of [[], [0], [1.5], ["1"], Array.from({ length: 1_001 }, (_, id) => id + 1)]) {
      expect((await receiver.request("ack", { history_ids })).status).toBe(400);
    }
    expect((await receiver.request("ack", { history_ids: [1, 1, 99] })).status).toBe(200);
  });
});

describe("the window", () => {
  test("stops after 256 messages and goes on with every ack, to the last of a long backlog", async () => {
    const { alice, bob } = await twoMembers();
    await sendMany(await alice.connect("client"), bob, idsOf(700));
    const receiver = await bob.connect();
    expect(await pushesOf(receiver, 256)).toEqual(idsOf(256));
    expect(await unaskedPushes(receiver)).toBe(0);
    await receiver.ack(1, 2, 3);
    expect(await pushesOf(receiver, 3)).toEqual(["m256", "m257", "m258"]);
    expect(await unaskedPushes(receiver)).toBe(0);
    await receiver.ack(...Array.from({ length: 256 }, (_, id) => id + 4));
    const rest: string[] = [];
    while (rest.length < 700 - 259) {
      const { client_message_id, history_id } = await receiver.nextPush();
      rest.push(client_message_id);
      if (rest.length % 50 === 0) await receiver.ack(...Array.from({ length: 50 }, (_, back) => history_id - back));
    }
    expect(rest).toEqual(idsOf(700).slice(259));
  });

  test("lets messages that come while it is full follow in order", async () => {
    const { alice, bob } = await twoMembers();
    const sender = await alice.connect("client");
    const receiver = await bob.connect();
    await sendMany(sender, bob, idsOf(300));
    expect(await pushesOf(receiver, 256)).toEqual(idsOf(256));
    await sendMany(sender, bob, ["late"]);
    await receiver.ack(...Array.from({ length: 256 }, (_, id) => id + 1));
    expect(await pushesOf(receiver, 45)).toEqual([...idsOf(300).slice(256), "late"]);
  });

  test("is bounded in bytes too, so that a backlog of large messages arrives over one connection", async () => {
    const { alice, bob } = await twoMembers({ "max-inline-bytes": "1048576" });
    const sender = await alice.connect("client");
    const large = { body_base64: Buffer.alloc(1_000_000, 0xff).toString("base64") };
    await sendMany(sender, bob, idsOf(20), large);
    const receiver = await bob.connect();
    const arrived: string[] = [];
    while (arrived.length < 20) {
      const { client_message_id, history_id } = await receiver.nextPush();
      arrived.push(client_message_id);
      await receiver.ack(history_id);
    }
    expect(arrived).toEqual(idsOf(20));
  });
});

describe("a slow receiver", () => {
  test("that takes nothing is dropped, and loses nothing", async () => {
    const { alice, bob } = await twoMembers({ "connection-policy": "prefer_oldest" });
    const sender = await alice.connect("client");
    const large = { body_base64: Buffer.alloc(60_000, 0xff).toString("base64") };
    await sendMany(sender, bob, idsOf(16), large);
    const slow = await bob.connect();
    slow.socket.pause();
    // Each answer is most of a megabyte, and the client reads none of them.
    for (let id = 100; id < 140; id++) slow.sendText(JSON.stringify({ type: "history", id }));
    // The older connection stays for as long as it lives.
    await expect
      .poll(
        () =>
          bob.connect().then(
            () => "open",
            () => "refused",
          ),
        { timeout: 20_000 },
      )
      .toBe("open");
    slow.socket.resume();
    expect((await slow.closed).code).toBe(1006);
  });
});
