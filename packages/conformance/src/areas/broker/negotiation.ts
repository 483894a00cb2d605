// 1.10 at the broker: what it announces, whom it lets in, and which of two daemons stays.
import { type AnnouncedFeatures, closeCodes, negotiate } from "@claudemesh/protocol/features";
import { Skipped } from "../../frame/endings.ts";
import { expectAnswer, expectEqual, expectRefusal, expectThat } from "../../frame/expect.ts";
import { aText } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { createMemberKeys } from "../../transport/member-keys.ts";
import { expectClose } from "./frames.ts";
import type { BrokerWorld } from "./world.ts";

async function announcedPolicy(world: BrokerWorld): Promise<string> {
  const negotiation = negotiate((await world.dial()).challenge.features as AnnouncedFeatures);
  return negotiation.ok ? negotiation.features.connectionPolicy : "unknown";
}

export const negotiationScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario("1.10", "features", "the challenge announces features that a daemon can live with", async (world) => {
    const { challenge } = await world.dial();
    expectAnswer({ status: 200, body: challenge, request: "GET /v1/connect (upgrade)" }, 200, {
      protocol: 1,
      nonce: aText,
    });
    const negotiation = negotiate((challenge.features ?? {}) as AnnouncedFeatures);
    expectThat(negotiation.ok, "features that negotiate well", negotiation, "GET /v1/connect (upgrade)");
  }),
  scenario("1.10", "fresh-nonce", "every connection gets a nonce of its own", async (world) => {
    const nonces = [(await world.dial()).challenge.nonce, (await world.dial()).challenge.nonce];
    expectThat(nonces[0] !== nonces[1], "two nonces", nonces, "GET /v1/connect (upgrade), twice");
  }),
  scenario(
    "1.10",
    "hello-refused",
    "a wrong signature, key, mesh or kind is 401 and closes with 4001",
    async (world) => {
      const wrong = [
        { keys: createMemberKeys(), meshId: world.place.meshId },
        { keys: world.alice.keys, meshId: "0198c0de-0000-7000-8000-000000000001" },
      ];
      for (const identity of wrong) {
        const peer = await world.dial();
        expectRefusal(await peer.request("hello", peer.helloOf(identity, "client")), 401, "unauthorized");
        await expectClose(peer, closeCodes.unauthorized);
      }
      const peer = await world.dial();
      const signedForClient = peer.helloOf(world.alice, "client");
      expectRefusal(await peer.request("hello", { ...signedForClient, kind: "daemon" }), 401, "unauthorized");
      await expectClose(peer, closeCodes.unauthorized);
    },
  ),
  scenario("1.10", "replayed-hello", "a hello that was signed for another challenge is refused", async (world) => {
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
