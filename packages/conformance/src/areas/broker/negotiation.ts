// 1.10 at the broker: what it announces, which members it admits, and which of two daemons stays.
import { type AnnouncedFeatures, closeCodes, negotiate } from "@claudemesh/protocol/features";
import { provePath } from "@claudemesh/protocol/wire/frames";
import { httpProofBytes, proofBytes } from "@claudemesh/protocol/wire/signing";
import { Skipped } from "../../frame/endings.ts";
import { expectAnswer, expectEqual, expectRefusal, expectThat, fieldOf } from "../../frame/expect.ts";
import { aText } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { createMemberKeys, isSignedBy } from "../../transport/member-keys.ts";
import { SocketPeer } from "../../transport/socket-peer.ts";
import { expectClose } from "./frames.ts";
import type { BrokerWorld } from "./world.ts";

const earlierHello = { type: "hello", id: 1, kind: "client", signature: "0".repeat(128) };

async function announcedPolicy(world: BrokerWorld): Promise<string> {
  const negotiation = negotiate((await world.dial()).proof.features as AnnouncedFeatures);
  return negotiation.ok ? negotiation.features.connectionPolicy : "unknown";
}

export const negotiationScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario("1.10", "features", "the proof announces features that a daemon can live with", async (world) => {
    const { proof } = await world.dial();
    expectAnswer({ status: 200, body: proof, request: "frame connect" }, 200, {
      protocol: 2,
      nonce: aText,
      broker_key: aText,
    });
    const negotiation = negotiate((proof.features ?? {}) as AnnouncedFeatures);
    expectThat(negotiation.ok, "features that negotiate well", negotiation, "frame connect");
  }),
  scenario(
    "8.3",
    "broker-proof",
    "the broker signs both nonces, the mesh, its key and what it announces",
    async (world) => {
      const stranger = "0198c0de-0000-7000-8000-000000000001";
      for (const meshId of [world.meshRef.meshId, stranger]) {
        const { proof, session } = await world.dial(meshId);
        const features = (proof.features ?? {}) as AnnouncedFeatures;
        const isProven = isSignedBy(session.broker_key, proofBytes({ ...session, features }), String(proof.signature));
        expectThat(isProven, "a signature by broker_key", proof, "frame connect");
      }
    },
  ),
  scenario(
    "8.3",
    "one-broker-key",
    "the key is the same on every connection, over HTTP and in invites",
    async (world) => {
      const keys = [(await world.dial()).session.broker_key, (await world.dial()).session.broker_key];
      const nonce = "0a".repeat(32);
      const answer = await world.ask({ method: "POST", path: provePath, json: { nonce } });
      const proven = expectAnswer(answer, 200, { broker_key: keys[0] ?? "", signature: aText });
      const bytes = httpProofBytes({ nonce, mesh_id: "", broker_key: fieldOf(proven, "broker_key") });
      expectThat(
        isSignedBy(keys[0] ?? "", bytes, fieldOf(proven, "signature")),
        "its signature",
        proven.body,
        answer.request,
      );
      expectEqual(keys[1], keys[0], "the key of another connection", "frame connect");
      expectEqual((await world.inviteRead()).broker_key, keys[0], "broker_key of an invite", "POST /invites");
    },
  ),
  scenario("8.3", "earlier-handshake", "a client of the earlier handshake is closed with 4010", async (world) => {
    const peer = await SocketPeer.open(world.url);
    peer.sendText(JSON.stringify({ ...earlierHello, pubkey: world.alice.pubkey, mesh_id: world.meshRef.meshId }));
    await expectClose(peer, closeCodes.feature_unavailable);
  }),
  scenario("1.10", "fresh-nonce", "every connection gets a nonce of its own", async (world) => {
    const nonces = [(await world.dial()).proof.nonce, (await world.dial()).proof.nonce];
    expectThat(nonces[0] !== nonces[1], "two nonces", nonces, "frame connect, twice");
  }),
  scenario(
    "1.10",
    "hello-refused",
    "a wrong signature, key, mesh or kind is 401 and closes with 4001",
    async (world) => {
      const wrong = [
        { keys: createMemberKeys(), meshId: world.meshRef.meshId },
        { keys: world.alice.keys, meshId: "0198c0de-0000-7000-8000-000000000001" },
      ];
      for (const identity of wrong) {
        const peer = await world.dial(identity.meshId);
        expectRefusal(await peer.request("hello", peer.helloOf(identity, "client")), 401, "unauthorized");
        await expectClose(peer, closeCodes.unauthorized);
      }
      const peer = await world.dial();
      const signedForClient = peer.helloOf(world.alice, "client");
      expectRefusal(await peer.request("hello", { ...signedForClient, kind: "daemon" }), 401, "unauthorized");
      await expectClose(peer, closeCodes.unauthorized);
    },
  ),
  scenario("1.10", "replayed-hello", "a hello that was signed for another connection is refused", async (world) => {
    const [first, second] = [await world.dial(), await world.dial()];
    const hello = first.helloOf(world.alice, "client");
    expectRefusal(await second.request("hello", hello), 401, "unauthorized");
    await expectClose(second, closeCodes.unauthorized);
  }),
  scenario("1.10", "prefer-newest", "among daemons of one member the older gets 4003", async (world) => {
    const policy = await announcedPolicy(world);
    if (policy !== "prefer_newest") throw new Skipped(`the broker announces ${policy}`);
    const older = await world.alice.connect("daemon");
    const newer = await world.alice.connect("daemon");
    await expectClose(older, closeCodes.replaced_by_newer);
    expectAnswer(await newer.request("topic.list"), 200);
  }),
  scenario("1.10", "prefer-oldest", "with prefer_oldest the newer daemon gets 4004", async (world) => {
    const policy = await announcedPolicy(world);
    if (policy !== "prefer_oldest") throw new Skipped(`the broker announces ${policy}`);
    const older = await world.alice.connect("daemon");
    const newer = await world.dial();
    newer.sendText(JSON.stringify({ ...newer.helloOf(world.alice, "daemon"), type: "hello", id: 1 }));
    await expectClose(newer, closeCodes.older_connection_kept);
    expectAnswer(await older.request("topic.list"), 200);
  }),
  scenario(
    "1.10",
    "policy-is-for-daemons",
    "clients of one member, and daemons of others, live side by side",
    async (world) => {
      const peers = [
        await world.alice.connect("daemon"),
        await world.alice.connect("client"),
        await world.alice.connect("client"),
        await world.bob.connect("daemon"),
      ];
      for (const peer of peers) expectAnswer(await peer.request("topic.list"), 200);
      expectEqual(peers.length, 4, "connections", "frame topic.list");
    },
  ),
];
