// `once` over HTTP and WebSocket, against a real broker: routes, statuses and bodies. What the rules are is tested on
// the protocol, and that both stores keep them on the stores.
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import {
  createTestMesh,
  makeTemporaryFolder,
  startTestBroker,
  startTestPair,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";

const inputs = "a".repeat(64);
const claim = (member: TestMember, claim_id: string, more: object = {}, key = "k") =>
  member.call("POST", `/once/${key}/claim`, { claim_id, inputs_fingerprint: inputs, lease_s: 60, ...more });

/** Alice and bob; `expire` ends every lease, as passing time would. */
async function start() {
  const folder = makeTemporaryFolder();
  const { broker, alice, bob } = await startTestPair({ folder });
  const expire = () => {
    const db = new DatabaseSync(`${folder}/broker.db`, { timeout: 5_000 });
    db.exec("DROP TRIGGER IF EXISTS once_claim_stands; UPDATE once_claim SET lease_until = 1");
    db.close();
  };
  return { broker, alice, bob, expire };
}

describe("a claim", () => {
  test("is 201 with its epoch and lease, the same again for the same id, and 409 running for another", async () => {
    const { alice, bob } = await start();
    const first = await claim(alice, "c1");
    expect(first).toMatchObject({ status: 201, body: { epoch: 1, lease_until: expect.any(Number) } });
    expect(await claim(alice, "c1")).toMatchObject({ status: 201, body: first.body });
    for (const other of [await claim(alice, "c2"), await claim(bob, "c1")]) {
      expect(other).toMatchObject({
        status: 409,
        body: { error: "running", lease_until: first.body.lease_until, epoch: 1, holder_pubkey: alice.pubkey },
      });
    }
  });

  test("of what is done is 200 with the result, whatever JSON it is", async () => {
    const { alice, bob } = await start();
    const results = [null, false, 1e300, "\u0000ü", [1, { a: [] }], { result: {} }];
    for (const [index, result] of results.entries()) {
      await claim(alice, "c1", {}, `k${index}`);
      expect(await alice.call("POST", `/once/k${index}/record`, { epoch: 1, result })).toMatchObject({ status: 200 });
      const found = await claim(bob, "c2", {}, `k${index}`);
      expect([found.status, found.body]).toEqual([200, { epoch: 1, result }]);
    }
  });

  test("with other inputs is 409 inputs_mismatch", async () => {
    const { alice } = await start();
    await claim(alice, "c1");
    const refused = await claim(alice, "c2", { inputs_fingerprint: "b".repeat(64) });
    expect(refused).toMatchObject({ status: 409, body: { error: "inputs_mismatch", epoch: 1 } });
  });

  test("cannot be made with a field of the wrong form, or with one that it does not know", async () => {
    const { alice } = await start();
    const wrong: [object, string][] = [
      [{ claim_id: "" }, "claim_id"],
      [{ claim_id: "two words" }, "claim_id"],
      [{ claim_id: 1 }, "claim_id"],
      [{ inputs_fingerprint: "A".repeat(64) }, "inputs_fingerprint"],
      [{ lease_s: 0 }, "lease_s"],
      [{ lease_s: 43_201 }, "lease_s"],
      [{ lease_s: 1.5 }, "lease_s"],
    ];
    for (const [more, field] of wrong) {
      const refused = await claim(alice, "c1", more);
      expect(refused).toMatchObject({ status: 400, body: { error: "invalid_request", field } });
    }
    for (const key of ["two%20words", "x".repeat(129), "%C3%BC"]) {
      expect(await claim(alice, "c1", {}, key)).toMatchObject({ status: 400, body: { field: "key" } });
    }
    const unknown = await claim(alice, "c1", { epoch: 1 });
    expect(unknown).toMatchObject({ status: 400, body: { error: "unknown_field", field: "epoch" } });
  });

  test("may have a key with a slash, in its escaped form", async () => {
    const { alice } = await start();
    expect(await claim(alice, "c1", {}, "a%2Fb")).toMatchObject({ status: 201 });
    expect(await alice.call("GET", "/once/a%2Fb")).toMatchObject({ body: { key: "a/b", state: "running" } });
  });
});

describe("a holder", () => {
  test("renews and records; again with the same result is the first answer, with another 409", async () => {
    const { alice, bob } = await start();
    const { body } = await claim(alice, "c1");
    const renewed = await alice.call("POST", "/once/k/renew", { epoch: 1 });
    expect(renewed).toMatchObject({ status: 200, body: { epoch: 1, lease_until: expect.any(Number) } });
    expect(Number(renewed.body.lease_until)).toBeGreaterThanOrEqual(Number(body.lease_until));
    expect(await bob.call("POST", "/once/k/record", { epoch: 1, result: 1 })).toMatchObject({
      status: 403,
      body: { error: "forbidden" },
    });
    const recorded = await alice.call("POST", "/once/k/record", { epoch: 1, result: { b: 1, a: 2 } });
    expect(recorded).toMatchObject({
      status: 200,
      body: { epoch: 1, outcome: "done", settled_by: "record", settled_by_pubkey: alice.pubkey },
    });
    const again = await alice.call("POST", "/once/k/record", { epoch: 1, result: { a: 2, b: 1 } });
    expect([again.status, again.body]).toEqual([200, recorded.body]);
    for (const late of [
      await alice.call("POST", "/once/k/record", { epoch: 1, result: 2 }),
      await alice.call("POST", "/once/k/renew", { epoch: 1 }),
    ]) {
      expect(late).toMatchObject({ status: 409, body: { error: "epoch_settled", epoch: 1, outcome: "done" } });
    }
    expect(await alice.call("POST", "/once/k/record", { epoch: 2, result: 1 })).toMatchObject({ status: 404 });
  });

  test("cannot record more than 64 KiB, nor nothing", async () => {
    const { alice } = await start();
    await claim(alice, "c1");
    const large = await alice.call("POST", "/once/k/record", { epoch: 1, result: "x".repeat(65_535) });
    expect(large).toMatchObject({ status: 413, body: { error: "payload_too_large", limit_bytes: 65_536 } });
    const nothing = await alice.call("POST", "/once/k/record", { epoch: 1 });
    expect(nothing).toMatchObject({ status: 400, body: { field: "result" } });
    expect(await alice.call("GET", "/once/k")).toMatchObject({ body: { state: "running" } });
  });

  test("whose lease ended hears uncertain, and may still record", async () => {
    const { alice, bob, expire } = await start();
    await claim(alice, "c1");
    expire();
    for (const late of [
      await claim(alice, "c1"),
      await claim(bob, "c2"),
      await alice.call("POST", "/once/k/renew", { epoch: 1 }),
    ]) {
      expect(late).toMatchObject({ status: 409, body: { error: "uncertain", epoch: 1, claim_id: "c1" } });
      expect(late.body.message).toContain("claudemesh once k --resolve done --epoch 1");
    }
    expect(await alice.call("POST", "/once/k/record", { epoch: 1, result: "late" })).toMatchObject({ status: 200 });
    expect(await claim(bob, "c2")).toMatchObject({ status: 200, body: { result: "late" } });
  });
});

describe("a resolve", () => {
  test("waits for the end of the lease; not_done frees the key under a new epoch, and the old one is over", async () => {
    const { alice, bob, expire } = await start();
    await claim(alice, "c1");
    const resolve = (member: TestMember, body: object) => member.call("POST", "/once/k/resolve", body);
    expect(await resolve(bob, { epoch: 1, outcome: "not_done" })).toMatchObject({
      status: 409,
      body: { error: "running" },
    });
    expire();
    const first = await resolve(bob, { epoch: 1, outcome: "not_done" });
    expect(first).toMatchObject({
      status: 200,
      body: { epoch: 1, outcome: "not_done", settled_by: "resolve", settled_by_pubkey: bob.pubkey },
    });
    expect(await resolve(alice, { epoch: 1, outcome: "not_done" })).toMatchObject({ status: 200, body: first.body });
    expect(await claim(bob, "c2")).toMatchObject({ status: 201, body: { epoch: 2 } });
    expect(await alice.call("POST", "/once/k/record", { epoch: 1, result: 1 })).toMatchObject({
      status: 409,
      body: { error: "epoch_settled", epoch: 1, outcome: "not_done", settled_by: "resolve" },
    });
    expect(await bob.call("GET", "/once/k")).toMatchObject({
      status: 200,
      body: {
        key: "k",
        state: "running",
        epoch: 2,
        epochs: [
          { epoch: 2, state: "running", claim_id: "c2", holder_pubkey: bob.pubkey },
          { epoch: 1, state: "released", outcome: "not_done", settled_by_pubkey: bob.pubkey },
        ],
      },
    });
  });

  test("as done has a result, or null; as not done it has none", async () => {
    const { alice, expire } = await start();
    for (const key of ["a", "b", "c"]) await claim(alice, "c1", {}, key);
    expire();
    await alice.call("POST", "/once/a/resolve", { epoch: 1, outcome: "done", result: [1] });
    await alice.call("POST", "/once/b/resolve", { epoch: 1, outcome: "done" });
    expect(await claim(alice, "c2", {}, "a")).toMatchObject({ status: 200, body: { result: [1] } });
    expect(await claim(alice, "c2", {}, "b")).toMatchObject({ status: 200, body: { result: null } });
    const odd = await alice.call("POST", "/once/c/resolve", { epoch: 1, outcome: "not_done", result: 1 });
    expect(odd).toMatchObject({ status: 400, body: { error: "invalid_request", field: "result" } });
  });
});

describe("looking at a key", () => {
  test("that no caller has claimed is 200 absent", async () => {
    const { alice } = await start();
    const { status, body } = await alice.call("GET", "/once/k");
    expect([status, body]).toEqual([200, { key: "k", state: "absent", epoch: null, epochs: [] }]);
  });
});

describe("over the WebSocket", () => {
  test("the same frames get the same answers", async () => {
    const { alice } = await start();
    const peer = await alice.connect("client");
    const terms = { key: "k", claim_id: "c1", inputs_fingerprint: inputs, lease_s: 60 };
    const held = await peer.request("once.claim", terms);
    expect(held).toMatchObject({ status: 201, body: { epoch: 1 } });
    expect((await peer.request("once.renew", { key: "k", epoch: 1 })).status).toBe(200);
    expect((await peer.request("once.resolve", { key: "k", epoch: 1, outcome: "done" })).body).toMatchObject({
      error: "running",
    });
    expect((await peer.request("once.record", { key: "k", epoch: 1, result: "r" })).status).toBe(200);
    expect(await peer.request("once.claim", { ...terms, claim_id: "c2" })).toEqual({
      status: 200,
      body: { epoch: 1, result: "r" },
    });
    expect((await peer.request("once.get", { key: "k" })).body).toMatchObject({ state: "done", result: "r" });
    expect(await peer.request("once.claim", { ...terms, key: ".." })).toMatchObject({
      status: 400,
      body: { field: "key" },
    });
  });
});

describe("/metrics", () => {
  test("counts what was decided, and names no key", async () => {
    const { broker, alice } = await start();
    await claim(alice, "c1", {}, "secret-key");
    await claim(alice, "c2", {}, "secret-key");
    const text = await (await fetch(`${broker.url}/metrics`)).text();
    expect(text).toContain('cm_broker_once_total{call="claim",outcome="held"} 1');
    expect(text).toContain('cm_broker_once_total{call="claim",outcome="running"} 1');
    expect(text).not.toContain("secret-key");
  });
});

describe("the mesh's budget", () => {
  test("is spent by a new epoch, once however often its claim is repeated, and by nothing else of once", async () => {
    const broker = await startTestBroker({ flags: { "rate-limit": "3/86400s" } });
    const alice = await createTestMesh(broker);
    // The token is one unit.
    await alice.token();
    expect((await claim(alice, "c1", {}, "first")).status).toBe(201);
    expect((await claim(alice, "c1", {}, "first")).status).toBe(201);
    expect((await claim(alice, "c1", {}, "second")).status).toBe(201);
    expect(await claim(alice, "c1", {}, "third")).toMatchObject({
      status: 429,
      body: { error: "rate_limited", retryable: true, retry_after_s: expect.any(Number) },
    });
    expect(await alice.call("GET", "/once/third")).toMatchObject({ body: { state: "absent" } });
    // What exists goes on: retries, renewals, records, and questions about the outcome.
    expect((await claim(alice, "c1", {}, "second")).status).toBe(201);
    expect((await alice.call("POST", "/once/first/renew", { epoch: 1 })).status).toBe(200);
    expect((await alice.call("POST", "/once/first/record", { epoch: 1, result: 7 })).status).toBe(200);
    expect(await claim(alice, "c2", {}, "first")).toMatchObject({ status: 200, body: { result: 7 } });
    expect((await claim(alice, "c2", {}, "second")).status).toBe(409);
  });
});
