// How a socket opens against a real broker: the broker's proof, and who may say hello.
import { DatabaseSync } from "node:sqlite";
import { verifySignature as isSignedBy } from "@claudemesh/members/credentials";
import { canonicalJson } from "@claudemesh/protocol/canonical";
import type { JsonObject } from "@claudemesh/protocol/json";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  callBroker,
  createTestMesh,
  joinTestMesh,
  startTestBroker,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import { createPeerKeys } from "../../../../tests/support/peer-keys.ts";
import { RawPeer } from "../../../../tests/support/raw-peer.ts";

afterEach(() => {
  vi.useRealTimers();
});

describe("the proof", () => {
  test("carries a fresh nonce and what the broker can do", async () => {
    const flags = { "max-inline-bytes": "2048", "dedupe-retention-days": "30", "connection-policy": "prefer_oldest" };
    const broker = await startTestBroker({ flags });
    const [first, second] = [await RawPeer.dial(broker.url), await RawPeer.dial(broker.url)];
    expect(first.proof).toEqual({
      type: "proof",
      protocol: 2,
      nonce: expect.stringMatching(/^[0-9a-f]{64}$/),
      broker_key: broker.brokerKey,
      signature: expect.stringMatching(/^[0-9a-f]{128}$/),
      features: {
        client_message_id_dedupe: {
          version: 2,
          request_fingerprint: true,
          mode: "retention_scoped",
          dedupe_retention_days: 30,
        },
        concurrent_connection_policy: { version: 1, default_policy: "prefer_oldest" },
        max_payload: { version: 1, inline_bytes: 2048, blob_bytes: 2048 },
      },
    });
    expect(second.proof.nonce).not.toBe(first.proof.nonce);
    expect(second.proof.signature).not.toBe(first.proof.signature);
  });

  test("is signed with the key over both nonces, the mesh, the key and the features, for any mesh alike", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    for (const meshId of [alice.meshId, "0198c0de-0000-7000-8000-000000000001"]) {
      const { proof, session } = await RawPeer.dial(broker.url, meshId);
      const signed = ["claudemesh-proof-2", ...session, canonicalJson(proof.features as JsonObject)].join("\0");
      expect(isSignedBy(broker.brokerKey, Buffer.from(signed), String(proof.signature))).toBe(true);
      const other = ["claudemesh-proof-2", ...session, "{}"].join("\0");
      expect(isSignedBy(broker.brokerKey, Buffer.from(other), String(proof.signature))).toBe(false);
    }
  });

  test("is given over HTTP too, for a nonce of the caller's and with a mesh or without", async () => {
    const { url, brokerKey } = await startTestBroker();
    const nonce = "0d".repeat(32);
    const mesh_id = "0198c0de-0000-7000-8000-000000000001";
    for (const [body, mesh] of [
      [{ nonce }, ""],
      [{ nonce, mesh_id }, mesh_id],
    ] as const) {
      const answer = await callBroker(url, "POST", "/v1/broker/prove", { body });
      expect(answer).toMatchObject({ status: 200, body: { broker_key: brokerKey } });
      const signed = ["claudemesh-http-proof-1", nonce, mesh, brokerKey].join("\0");
      expect(isSignedBy(brokerKey, Buffer.from(signed), String(answer.body.signature))).toBe(true);
    }
    for (const body of [{}, { nonce: "00" }, { nonce: nonce.toUpperCase().replace(/0/g, "A") }, { nonce, more: 1 }]) {
      expect((await callBroker(url, "POST", "/v1/broker/prove", { body })).status).toBe(400);
    }
  });

  test("is given at one path only", async () => {
    const broker = await startTestBroker();
    await expect(RawPeer.dial(`${broker.url}/v2`)).rejects.toThrow("404");
    const plain = await callBroker(broker.url, "GET", "/v1/connect");
    expect(plain.status).toBe(404);
  });

  test("that is not answered in time ends the connection", async () => {
    const broker = await startTestBroker();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const peer = await RawPeer.dial(broker.url);
    vi.advanceTimersByTime(10_000);
    expect(await peer.closed).toEqual({ code: 4002, reason: "no hello in time" });
  });

  const earlier = expect.stringContaining("upgrade this client");
  test("is what a client of the earlier handshake never asks for, so that it hears 4010 and what to do", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const talking = await RawPeer.open(broker.url);
    const { pubkey, meshId: mesh_id } = alice;
    const hello = { type: "hello", id: 1, mesh_id, pubkey, kind: "daemon", signature: "0".repeat(128) };
    talking.sendText(JSON.stringify(hello));
    expect(await talking.closed).toEqual({ code: 4010, reason: earlier });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const waiting = await RawPeer.open(broker.url);
    vi.advanceTimersByTime(5_000);
    expect(await waiting.closed).toEqual({ code: 4010, reason: earlier });
    expect(waiting.arrived).toEqual([]);
  });

  test("is not given to a client of another protocol, which hears which side to upgrade", async () => {
    const broker = await startTestBroker();
    for (const [protocol, side] of [
      [1, "upgrade this client"],
      [3, "upgrade the broker"],
    ]) {
      const peer = await RawPeer.open(broker.url);
      peer.sendText(JSON.stringify({ type: "connect", protocol, from_the_future: true }));
      expect(await peer.closed).toEqual({ code: 4010, reason: expect.stringContaining(String(side)) });
    }
  });

  test("is not given to a connect that is malformed, nor to another first frame", async () => {
    const broker = await startTestBroker();
    const connect = {
      type: "connect",
      protocol: 2,
      mesh_id: "0198c0de-0000-7000-8000-000000000001",
      nonce: "0a".repeat(32),
    };
    const attempts: [change: object, reason: string][] = [
      [{ extra: 1 }, '"extra"'],
      [{ nonce: "0a" }, '"nonce"'],
      [{ nonce: "0A".repeat(32) }, '"nonce"'],
      [{ mesh_id: "acme" }, '"mesh_id"'],
      [{ protocol: "2" }, '"protocol"'],
      [{ type: "history" }, "the first frame is a connect"],
    ];
    for (const [change, reason] of attempts) {
      const peer = await RawPeer.open(broker.url);
      peer.sendText(JSON.stringify({ ...connect, ...change }));
      expect(await peer.closed).toEqual({ code: 4002, reason: expect.stringContaining(reason) });
      expect(peer.arrived).toEqual([]);
    }
    const again = await RawPeer.dial(broker.url);
    again.sendText(JSON.stringify(connect));
    expect(await again.closed).toEqual({ code: 4002, reason: "behind the connect comes a hello" });
  });
});

describe("a hello", () => {
  test("of a member who signed it for this connection opens the connection", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const peer = await RawPeer.dial(broker.url, alice.meshId);
    expect(await peer.request("hello", { ...peer.helloOf(alice, "client"), agent: "test/1" })).toEqual({
      status: 200,
      body: {
        mesh: "acme",
        mesh_id: alice.meshId,
        member: { pubkey: alice.pubkey, name: "alice", role: "owner" },
        brokers: [],
      },
    });
  });

  test("is refused in one way, whatever is wrong with it: 401, then 4001", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const bob = await joinTestMesh(alice, "bob");
    revokeMember(broker.storePath, bob);
    const other = await createTestMesh(broker, "other", "olga");
    const named = await createTestMesh(broker, "a-name-that-is-as-long-as-an-id-36ch", "nora");
    expect(named.mesh).toHaveLength(named.meshId.length);
    const elsewhere = await RawPeer.dial(broker.url, alice.meshId);
    const foreign = await startTestBroker();
    const elsewhereHeld = await RawPeer.dial(foreign.url, alice.meshId);
    const stranger = { meshId: alice.meshId, keys: createPeerKeys() };
    const attempts: ((peer: RawPeer) => object)[] = [
      (peer) => ({ ...peer.helloOf(alice, "client"), signature: "0".repeat(128) }),
      (peer) => ({ ...peer.helloOf(alice, "client"), kind: "daemon" }),
      (peer) => ({ ...peer.helloOf(alice, "client"), pubkey: other.pubkey }),
      (peer) => ({ ...peer.helloOf(alice, "client"), pubkey: "f".repeat(64) }),
      (peer) => ({ ...peer.helloOf(alice, "client"), mesh_id: other.meshId }),
      () => elsewhere.helloOf(alice, "client"),
      // What it signed for another broker is no good here, even with this connection's nonces.
      (peer) => hellosWith(peer, [peer.session[0], peer.session[1], alice.meshId, foreign.brokerKey], alice),
      () => elsewhereHeld.helloOf(alice, "client"),
      // Nor is any half of it replaced.
      (peer) => hellosWith(peer, [elsewhere.session[0], peer.session[1], alice.meshId, broker.brokerKey], alice),
      (peer) => hellosWith(peer, [peer.session[0], elsewhere.session[1], alice.meshId, broker.brokerKey], alice),
      (peer) => peer.helloOf(stranger, "client"),
      (peer) => peer.helloOf({ ...alice, meshId: other.meshId, keys: alice.keys }, "client"),
      (peer) => peer.helloOf({ meshId: "0".repeat(36), keys: alice.keys }, "client"),
      (peer) => peer.helloOf({ meshId: named.mesh, keys: named.keys }, "client"),
    ];
    for (const attempt of attempts) {
      const peer = await RawPeer.dial(broker.url, alice.meshId);
      expect(await peer.request("hello", attempt(peer))).toEqual({
        status: 401,
        body: { error: "unauthorized", message: "The credentials are missing, wrong or revoked.", retryable: false },
      });
      expect(await peer.closed).toEqual({ code: 4001, reason: "unauthorized" });
    }
    // One who holds a former member's key may know that the membership has ended, and hears nothing else either.
    const former = await RawPeer.dial(broker.url, alice.meshId);
    expect(await former.request("hello", former.helloOf(bob, "client"))).toMatchObject({
      status: 401,
      body: { error: "unauthorized", membership: "ended" },
    });
    expect(await former.closed).toEqual({ code: 4001, reason: "unauthorized" });
  });

  test("for another mesh than the one that was connected to is refused, though its member signed it", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const other = await createTestMesh(broker, "other", "olga");
    const peer = await RawPeer.dial(broker.url, alice.meshId);
    expect(await peer.request("hello", peer.helloOf(other, "client"))).toMatchObject({ status: 401 });
    const again = await RawPeer.dial(broker.url, alice.meshId);
    const signedForThis = again.helloOf({ ...other, meshId: alice.meshId, keys: other.keys }, "client");
    expect(await again.request("hello", { ...signedForThis, mesh_id: other.meshId })).toMatchObject({ status: 401 });
  });

  test("that is malformed ends the connection and says what is wrong", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const attempts: [change: object, reason: string][] = [
      [{ extra: 1 }, '"extra"'],
      [{ pubkey: alice.pubkey.toUpperCase() }, '"pubkey"'],
      [{ kind: "server" }, '"kind"'],
      [{ signature: "00" }, '"signature"'],
      [{ mesh_id: "acme" }, '"mesh_id"'],
      [{ mesh_id: undefined }, '"mesh_id"'],
      [{ id: 0 }, '"id"'],
      [{ id: "1" }, '"id"'],
      [{ type: "send" }, "behind the connect comes a hello"],
      // A close frame holds 123 bytes, and a name that is longer must neither break it nor the broker.
      [{ ["€".repeat(200)]: 1 }, "€€€"],
    ];
    for (const [change, reason] of attempts) {
      const peer = await RawPeer.dial(broker.url, alice.meshId);
      const hello = { type: "hello", id: 1, ...peer.helloOf(alice, "client"), ...change };
      peer.sendText(JSON.stringify(hello));
      const closed = await peer.closed;
      expect(closed).toEqual({ code: 4002, reason: expect.stringContaining(reason) });
      expect(Buffer.byteLength(closed.reason)).toBeLessThanOrEqual(123);
    }
    expect((await callBroker(broker.url, "GET", "/healthz")).status).toBe(200);
  });

  test("must come first, and nothing may follow before its answer", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const early = await RawPeer.dial(broker.url);
    early.sendText('{"type":"history","id":1}');
    expect(await early.closed).toEqual({ code: 4002, reason: "behind the connect comes a hello" });

    const eager = await RawPeer.dial(broker.url, alice.meshId);
    eager.sendText(JSON.stringify({ type: "hello", id: 1, ...eager.helloOf(alice, "client") }));
    eager.sendText('{"type":"history","id":2}');
    expect(await eager.closed).toEqual({ code: 4002, reason: "a frame before the hello was answered" });
  });

  test("is said once: again it is an unknown frame type", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    expect((await peer.request("hello", peer.helloOf(alice, "client"))).status).toBe(400);
  });
});

function hellosWith(peer: RawPeer, session: readonly (string | undefined)[], member: TestMember): object {
  const signed = ["claudemesh-hello-2", ...session, member.pubkey, "client"].join("\0");
  return { ...peer.helloOf(member, "client"), signature: member.keys.sign(Buffer.from(signed)) };
}

function revokeMember(storePath: string, member: TestMember): void {
  const db = new DatabaseSync(storePath);
  db.prepare("UPDATE member SET revoked_at = 1 WHERE pubkey = ?").run(member.pubkey);
  db.close();
}
