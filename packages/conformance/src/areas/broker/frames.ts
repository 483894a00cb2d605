// 5.3: the socket: requests and replies, pipelining, what ends a connection, and pushes about members.
import { closeCodes } from "@claudemesh/protocol/features";
import { expectAnswer, expectEqual, expectRefusal, expectThat, fieldOf } from "../../frame/expect.ts";
import { aList, aTime } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { loseReply } from "../../transport/cutting-proxy.ts";
import type { SocketPeer } from "../../transport/socket-peer.ts";
import { type BrokerWorld, toMember } from "./world.ts";

export async function expectClose(peer: SocketPeer, code: number): Promise<void> {
  const close = await peer.closed();
  expectEqual(close.code, code, "the close code", peer.lastSent);
}

const requests: readonly Scenario<BrokerWorld>[] = [
  scenario("5.3", "hello", "the hello's reply says who the broker takes the peer for", async (world) => {
    const peer = await world.dial();
    const member = { pubkey: world.alice.pubkey, name: world.alice.name, role: "member" };
    expectAnswer(await peer.sayHello(world.alice, "client"), 200, { mesh_id: world.meshRef.meshId, member });
  }),
  scenario(
    "5.3",
    "pipelining",
    "requests may be pipelined; each reply carries the id of its request",
    async (world) => {
      const peer = await world.alice.connect("client");
      const sends = Array.from({ length: 200 }, (_, n) => ({
        client_message_id: world.fresh("pipe"),
        destination: toMember(world.bob),
        body: `message ${n}`,
      }));
      const replies = await Promise.all(sends.map((send) => peer.request("send", send)));
      for (const [n, reply] of replies.entries()) {
        expectAnswer(reply, 201, { client_message_id: sends[n]?.client_message_id ?? "" });
      }
    },
  ),
  scenario("5.3", "same-as-http", "an operation answers on the socket as it does over HTTP", async (world) => {
    const peer = await world.alice.connect("client");
    const send = { client_message_id: world.fresh("both"), destination: toMember(world.bob), body: "x" };
    const { broker_message_id, history_id } = expectAnswer(await peer.request("send", send), 201).body as Record<
      string,
      string
    >;
    const ids = { broker_message_id, history_id, duplicate: true, first_seen_at: aTime };
    expectAnswer(await world.alice.call("POST", "/messages", send), 200, ids);
    expectAnswer(await peer.request("send", send), 200, ids);
    expectRefusal(await peer.request("send", { ...send, body: "y" }), 409, "idempotency_key_reused");
    expectAnswer(await peer.request("members.list", { limit: 1 }), 200, { items: aList });
    expectRefusal(
      await peer.request("message.state", { broker_message_id: "0198c0de-0000-7000-8000-0000000000aa" }),
      404,
      "not_found",
    );
  }),
  scenario(
    "5.3",
    "refusals",
    "an unknown type, field or value is a refusal, and the connection lives on",
    async (world) => {
      const peer = await world.alice.connect("client");
      expectRefusal(await peer.request("launch", {}), 400);
      expectRefusal(await peer.request("topic.list", { colour: 1 }), 400, "unknown_field");
      expectRefusal(await peer.request("history", { limit: 0 }), 400, "invalid_request");
      expectRefusal(await peer.request("send", {}), 400);
      expectAnswer(await peer.request("topic.list"), 200);
    },
  ),
  scenario("5.3", "lost-reply", "a send whose reply was lost is a duplicate on the next connection", async (world) => {
    const send = { client_message_id: world.fresh("lost"), destination: toMember(world.bob), body: "x" };
    await loseReply(world.target, world.alice, { type: "send", ...send }, send.client_message_id);
    const peer = await world.alice.connect("client");
    expectAnswer(await peer.request("send", send), 200, { duplicate: true });
  }),
];

/** WebSocket's own code for a kind of data that the other side does not accept. */
const unsupportedData = 1003;

const endings: readonly Scenario<BrokerWorld>[] = [
  scenario("5.3", "hello-first", "a frame behind the proof that is no hello closes with 4002", async (world) => {
    for (const text of ['{"type":"topic.list","id":1}', "not json", "[]", '{"type":"hello","id":1}', '{"a":1,"a":1}']) {
      const peer = await world.dial();
      peer.sendText(text);
      await expectClose(peer, closeCodes.protocol_error);
    }
  }),
  scenario(
    "5.3",
    "broken-frames",
    "a frame that is no JSON object with a positive id closes with 4002",
    async (world) => {
      for (const text of [
        "not json",
        "[]",
        '{"type":"topic.list"}',
        '{"type":"topic.list","id":0}',
        '{"type":"topic.list","id":"1"}',
      ]) {
        const peer = await world.alice.connect("client");
        peer.sendText(text);
        await expectClose(peer, closeCodes.protocol_error);
      }
    },
  ),
  scenario("5.3", "binary-frames", "a binary frame closes with 1003", async (world) => {
    const peer = await world.alice.connect("client");
    peer.sendBytes(Buffer.from('{"type":"topic.list","id":1}'));
    await expectClose(peer, unsupportedData);
  }),
  scenario(
    "5.3",
    "revoked",
    "a revoked member is notified, cut off with 4005, and not admitted again",
    async (world) => {
      const { owner } = world;
      const dave = await world.join("dave");
      const peers = [await dave.connect("daemon"), await dave.connect("client")];
      expectAnswer(await owner.call("DELETE", `/members/${dave.pubkey}`), 200);
      for (const peer of peers) {
        const push = await peer.next("a member_revoked push", ({ type }) => type === "member_revoked");
        expectEqual(push.pubkey, dave.pubkey, "whose membership ended", `DELETE /members/${dave.pubkey}`);
        await expectClose(peer, closeCodes.member_revoked);
      }
      const peer = await world.dial();
      expectRefusal(await peer.request("hello", peer.helloOf(dave, "daemon")), 401, "unauthorized");
      await expectClose(peer, closeCodes.unauthorized);
      expectRefusal(await dave.call("GET", "/history"), 401, "unauthorized");
    },
  ),
  scenario("5.3", "presence", "daemons hear of daemons that come and go", async (world) => {
    const bystander = await world.bob.connect("daemon");
    const dora = await world.join("dora");
    const daemon = await dora.connect("daemon");
    const about = (type: string) => (frame: Readonly<Record<string, unknown>>) =>
      frame.type === type && frame.pubkey === dora.pubkey;
    const joined = await bystander.next("a peer_join push", about("peer_join"));
    expectAnswer({ status: 200, body: joined, request: "push peer_join" }, 200, {
      name: dora.name,
      role: "member",
      connected_at: aTime,
    });
    const peers = expectAnswer(await world.bob.call("GET", "/peers?limit=1000"), 200);
    expectThat(
      fieldOf(peers, "items") !== "" && JSON.stringify(peers.body.items).includes(dora.pubkey),
      "dora among the peers",
      peers.body,
      peers.request,
    );
    await daemon.drop();
    await bystander.next("a peer_leave push", about("peer_leave"));
  }),
];

export const frameScenarios: readonly Scenario<BrokerWorld>[] = [...requests, ...endings];
