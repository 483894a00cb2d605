// The policy that lets a member's first daemon stay, on brokers side by side: it holds between them as within one, and a
// broker that died keeps no daemon out.
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { joinTestMesh } from "./support/broker-harness.ts";
import { Brokers, createMeshOn, findServers } from "./support/brokers.ts";
import { RawPeer } from "./support/raw-peer.ts";

const servers = await findServers("oldest");
afterAll(() => servers.stop());

describe.skipIf(!servers.found)("prefer_oldest on brokers side by side", () => {
  test("the newer daemon gets 4004 wherever it connects, until the older one or its broker is gone", async () => {
    const flags = ["--connection-policy", "prefer_oldest"];
    const brokers = new Brokers({ ...servers.urls, flags });
    onTestFinished(() => brokers.end());
    const [a, b] = await Promise.all([brokers.add(), brokers.add()]);
    const alice = await createMeshOn(brokers, a, "acme");
    const bob = await joinTestMesh(alice, "bob");
    const connectAt = (url: string) => {
      bob.url = url;
      return bob.connect("daemon");
    };
    const older = await connectAt(a.url);
    // The refusal comes from the other broker, before its hello is answered or after it.
    const newer = await RawPeer.dial(b.url, bob.meshId);
    newer.sendText(JSON.stringify({ ...newer.helloOf(bob, "daemon"), type: "hello", id: 1 }));
    expect(await newer.closed).toEqual({ code: 4004, reason: "older_connection_kept" });
    await alice.send("m1", bob);
    expect(await older.next((frame) => frame.type === "message")).toMatchObject({ client_message_id: "m1" });

    await a.kill();
    expect((await older.closed).code).toBe(1006);
    const next = await connectAt(b.url);
    alice.url = b.url;
    await alice.send("m2", bob);
    const arrived = await next.next((frame) => frame.type === "message" && frame.client_message_id === "m2");
    expect(arrived).toMatchObject({ sender_pubkey: alice.pubkey });
    expect(next.socket.readyState).toBe(next.socket.OPEN);
  });
});
