// Our own broker and daemon, held against the contract by the kit that others use: over their public API alone.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tryArea } from "./support/conformance-runs.ts";
import {
  type BrokerTarget,
  createMeshWithOwner,
  findFreePort,
  startBrokerTarget,
  startDaemonTarget,
} from "./support/conformance-targets.ts";

let broker: BrokerTarget;

beforeAll(async () => {
  broker = await startBrokerTarget();
});

afterAll(() => broker.stop());

describe("the conformance kit", () => {
  it("finds our broker in keeping with the contract", async () => {
    const { url, adminToken, budget } = broker;
    const { missed, skipped, passed } = await tryArea("broker", {
      url: [url],
      "admin-token": [adminToken],
      budget: [String(budget)],
    });
    expect(missed).toEqual([]);
    // Only one of the two policies can be in force.
    expect(skipped).toEqual(["1.10-prefer-oldest"]);
    expect(passed).toBeGreaterThan(100);
  });

  it("finds a broker that prefers the oldest daemon in keeping with the contract", async () => {
    const other = await startBrokerTarget({ "connection-policy": "prefer_oldest" });
    try {
      const given = { url: [other.url], "admin-token": [other.adminToken] };
      const { missed, skipped } = await tryArea("broker", given, ["1.10"]);
      expect(missed).toEqual([]);
      expect(skipped).toEqual(["1.10-prefer-newest"]);
    } finally {
      await other.stop();
    }
  });

  it("needs no more than an owner's token, or invites", async () => {
    const { mesh, ownerToken, invites } = await createMeshWithOwner(broker, 3);
    const byToken = await tryArea("broker", { url: [broker.url], mesh: [mesh], "owner-token": [ownerToken] }, ["1.2"]);
    expect(byToken).toMatchObject({ missed: [], skipped: ["1.2-id-is-per-mesh"] });
    const headers = { authorization: `Bearer ${ownerToken}` };
    const { items } = (await (await fetch(`${broker.url}/v1/meshes/${mesh}/members`, { headers })).json()) as {
      items: object[];
    };
    expect(items, "the kit's members are gone").toMatchObject([{ role: "owner" }]);
    const byInvite = await tryArea("broker", { url: [broker.url], mesh: [mesh], invite: invites }, ["1.5"]);
    expect(byInvite.missed).toEqual([]);
    expect(byInvite.skipped).toEqual([
      "1.5-retry-after-topic-is-gone",
      "1.5-retry-after-recipient-is-gone",
      "1.5-rate-limit",
    ]);
  });

  it("finds our daemon in keeping with the contract", async () => {
    const port = await findFreePort();
    const daemon = await startDaemonTarget(broker, `ws://127.0.0.1:${port}`);
    try {
      const { missed, skipped, passed } = await tryArea("daemon", {
        socket: [daemon.socket],
        url: [daemon.url()],
        token: [daemon.token()],
        broker: [broker.url],
        between: [`127.0.0.1:${port}`],
        "broker-key": [broker.keySeed()],
        "peer-token": [daemon.peerToken],
        // This one comes back by itself.
        restart: ["true"],
      });
      expect(missed).toEqual([]);
      expect(skipped).toEqual([]);
      expect(passed).toBeGreaterThan(90);
    } finally {
      await daemon.stop();
    }
  });
});
