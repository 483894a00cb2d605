// The broker over HTTP: meshes for the admin token, invites for their holders, and every operation for a member's
// token. Outsiders learn nothing.
import { hash } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { limits } from "@claudemesh/protocol/messages/limits";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { operations } from "@claudemesh/protocol/wire/operations";
import { createMeshBytes, joinBytes } from "@claudemesh/protocol/wire/signing";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  callBroker,
  createTestMesh,
  joinTestMesh,
  readAdminToken,
  startTestBroker,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import { createPeerKeys, type PeerKeys } from "../../../../tests/support/peer-keys.ts";

function meshRequest(keys: PeerKeys, name: string, ownerName = "alice") {
  const signed = createMeshBytes({ name, owner_name: ownerName, owner_pubkey: keys.pubkey });
  return { name, owner: { name: ownerName, pubkey: keys.pubkey }, signature: keys.sign(signed) };
}

function joinRequest(keys: PeerKeys, meshId: string, secret: string, name = "bob") {
  const signature = keys.sign(joinBytes({ mesh_id: meshId, secret, name, pubkey: keys.pubkey }));
  return { secret, name, pubkey: keys.pubkey, signature };
}

async function twoMembers(): Promise<{ url: string; alice: TestMember; bob: TestMember }> {
  const broker = await startTestBroker();
  const alice = await createTestMesh(broker);
  return { url: broker.url, alice, bob: await joinTestMesh(alice, "bob") };
}

describe("creating a mesh", () => {
  test("needs the admin token, and nothing is created without it", async () => {
    const broker = await startTestBroker();
    const body = meshRequest(createPeerKeys(), "acme");
    const admin = readAdminToken(broker);
    for (const token of [undefined, "cma_wrong", `${admin}x`, admin.slice(0, -1), ""]) {
      const answer = await callBroker(broker.url, "POST", "/v1/meshes", {
        body,
        ...(token === undefined ? {} : { token }),
      });
      expect(answer).toMatchObject({ status: 401, body: { error: "unauthorized" } });
    }
    // Not even whether the request would have been right.
    const wrong = await callBroker(broker.url, "POST", "/v1/meshes", { body: { nothing: "right" } });
    expect(wrong).toMatchObject({ status: 401, body: { error: "unauthorized" } });
    expect((await callBroker(broker.url, "POST", "/v1/meshes", { token: admin, body })).status).toBe(201);
  });

  test("is 201 with the owner, 200 the same again, 409 for another owner", async () => {
    const broker = await startTestBroker();
    const token = readAdminToken(broker);
    const keys = createPeerKeys();
    const create = (body: object) => callBroker(broker.url, "POST", "/v1/meshes", { token, body });
    const first = await create(meshRequest(keys, "acme"));
    expect(first.status).toBe(201);
    expect(first.body).toEqual({
      mesh: "acme",
      mesh_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      member_pubkey: keys.pubkey,
      name: "alice",
      role: "owner",
    });
    expect(await create(meshRequest(keys, "acme"))).toMatchObject({ status: 200, body: first.body });
    const other = await create(meshRequest(createPeerKeys(), "acme"));
    expect(other).toMatchObject({ status: 409, body: { error: "exists_with_other_content", retryable: false } });
  });

  test("refuses a signature that does not fit, and fields that it does not know", async () => {
    const broker = await startTestBroker();
    const token = readAdminToken(broker);
    const body = meshRequest(createPeerKeys(), "acme");
    const create = (request: unknown) => callBroker(broker.url, "POST", "/v1/meshes", { token, body: request });
    expect((await create({ ...body, name: "other" })).status).toBe(401);
    expect(await create({ ...body, extra: 1 })).toMatchObject({
      status: 400,
      body: { error: "unknown_field", field: "extra" },
    });
    const owner = { ...body.owner, pubkey: body.owner.pubkey.toUpperCase() };
    expect(await create({ ...body, owner })).toMatchObject({ status: 400, body: { field: "owner.pubkey" } });
    expect(await create("{")).toMatchObject({ status: 400, body: { error: "invalid_json" } });
  });
});

describe("joining a mesh", () => {
  test("takes the invite that the owner got: 201, 200 for the same key again, 403 for another", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const { status, body } = await alice.call("POST", "/invites", { expires_in_s: 60 });
    expect(status).toBe(201);
    const invite = decodeInvite(String(body.invite));
    expect(invite).toMatchObject({ broker: broker.url, mesh: "acme", mesh_id: alice.meshId });
    const join = (request: object) => callBroker(broker.url, "POST", "/v1/meshes/acme/join", { body: request });
    const keys = createPeerKeys();
    const first = await join(joinRequest(keys, invite.mesh_id, invite.secret));
    expect(first).toMatchObject({ status: 201, body: { member_pubkey: keys.pubkey, name: "bob", role: "member" } });
    const again = await join(joinRequest(keys, invite.mesh_id, invite.secret));
    expect(again).toMatchObject({ status: 200, body: first.body });
    const other = await join(joinRequest(createPeerKeys(), invite.mesh_id, invite.secret));
    expect(other).toMatchObject({ status: 403, body: { error: "invite_refused" } });
  });

  test("tells an outsider nothing about which meshes there are", async () => {
    const broker = await startTestBroker();
    await createTestMesh(broker);
    for (const change of [{}, { name: "a b" }, { signature: "0".repeat(128) }]) {
      const request = { ...joinRequest(createPeerKeys(), "0".repeat(36), "guessed"), ...change };
      const [there, nowhere] = await Promise.all(
        ["acme", "nowhere"].map((mesh) => callBroker(broker.url, "POST", `/v1/meshes/${mesh}/join`, { body: request })),
      );
      expect([there?.status, there?.body]).toEqual([nowhere?.status, nowhere?.body]);
    }
  });

  test("is by invitation of an owner only", async () => {
    const { bob } = await twoMembers();
    expect(await bob.call("POST", "/invites")).toMatchObject({ status: 403, body: { error: "forbidden" } });
  });
});

describe("a caller without a live token of the mesh", () => {
  test("gets one and the same answer from every operation, in every mesh", async () => {
    const { url, alice, bob } = await twoMembers();
    await alice.send("m1", bob);
    const revoked = await bob.newToken();
    await bob.call("DELETE", `/tokens/${revoked.tokenId}`);
    const routes = Object.values(operations).flatMap((operation) => ("http" in operation ? [operation.http] : []));
    // All but ack and space.watch, which only a socket has a use for.
    expect(routes).toHaveLength(Object.keys(operations).length - 2);
    for (const { method, path } of routes) {
      const below = path.replace(":client_message_id", "m1").replace(":name", "news").replace(":token_id", "x");
      for (const mesh of ["acme", "nowhere", alice.meshId]) {
        for (const token of ["cmt_wrong", String(revoked.token)]) {
          const answer = await callBroker(url, method, `/v1/meshes/${mesh}${below}`, { token });
          expect(answer.status).toBe(401);
          expect(answer.body).toEqual({
            error: "unauthorized",
            message: "The credentials are missing, wrong or revoked.",
            retryable: false,
          });
        }
      }
      expect((await callBroker(url, method, `/v1/meshes/acme${below}`)).status).toBe(401);
    }
  });

  test.for([
    ["no JSON", "application/json", "{"],
    ["too large", "application/json", "x".repeat(limits.frameBytes + 1)],
    ["of another type", "text/plain", "x"],
  ] as const)("hears so before its body is looked at, which is %s", async ([, type, body]) => {
    const { url } = await startTestBroker();
    const init = { method: "POST", headers: { "content-type": type }, body };
    expect((await fetch(`${url}/v1/meshes/acme/messages`, init)).status).toBe(401);
  });

  test.for([
    ["/v1/meshes/acme/join", "", 413],
    ["/v1/broker/prove", "", 413],
    ["/v1/meshes", "cma_wrong", 401],
    ["/v1/admin/sweep", "cma_wrong", 401],
    ["/v1/meshes/acme/messages", "cmt_wrong", 401],
    ["/v1/meshes/acme/spaces/plan/query", "cmt_wrong", 401],
    ["/v1/nothing", "cmt_wrong", 404],
    ["/healthz", "", 405],
  ] as const)("is answered at %s without a body that would be much to read", async ([path, token, status]) => {
    const { url } = await startTestBroker();
    // The body never comes: a broker that waited for it would not answer.
    const headers = { "content-type": "application/json", "content-length": 16_384, authorization: `Bearer ${token}` };
    const asked = request(url + path, { method: "POST", headers });
    onTestFinished(() => void asked.on("error", () => undefined).destroy());
    asked.flushHeaders();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(status);
  });

  test("is also a caller that has a token of another mesh, or puts it elsewhere than in the header", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const other = await createTestMesh(broker, "other", "olga");
    const token = await other.token();
    expect((await callBroker(broker.url, "GET", "/v1/meshes/acme/history", { token })).status).toBe(401);
    const own = await alice.token();
    expect((await callBroker(broker.url, "GET", `/v1/meshes/acme/history?token=${own}`)).status).toBe(401);
    for (const authorization of [own, `Basic ${own}`, `Bearer  ${own}`, `Bearer ${own} x`]) {
      const response = await fetch(`${broker.url}/v1/meshes/acme/history`, { headers: { authorization } });
      expect(response.status).toBe(401);
    }
    const response = await fetch(`${broker.url}/v1/meshes/acme/history`, {
      headers: { authorization: `bearer ${own}` },
    });
    expect(response.status).toBe(200);
  });
});

describe("sending", () => {
  test("is 201, then 200 duplicate, then 409 with other content or by another member", async () => {
    const { alice, bob } = await twoMembers();
    const first = await alice.send("m1", bob);
    expect(first.status).toBe(201);
    expect(first.body).toEqual({
      broker_message_id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7/),
      client_message_id: "m1",
      history_id: 1,
      duplicate: false,
    });
    const again = await alice.send("m1", bob);
    expect(again.status).toBe(200);
    const seen = { history_available: true, first_seen_at: expect.any(Number) };
    expect(again.body).toEqual({ ...first.body, duplicate: true, ...seen });
    expect(await alice.send("m1", bob, "other")).toMatchObject({
      status: 409,
      body: {
        error: "idempotency_key_reused",
        conflict: "request_fingerprint_mismatch",
        client_message_id: "m1",
        broker_fingerprint_prefix: expect.stringMatching(/^[0-9a-f]{16}$/),
      },
    });
    expect(await bob.send("m1", bob)).toMatchObject({
      status: 409,
      body: { error: "idempotency_key_reused", conflict: "client_id_owned_by_another_member" },
    });
  });

  test("works by the mesh's id as by its name", async () => {
    const { url, alice, bob } = await twoMembers();
    const body = {
      client_message_id: "m1",
      destination: { kind: "dm", ref: bob.pubkey },
      envelope_version: "2",
      body: "x",
    };
    const token = await alice.token();
    expect((await callBroker(url, "POST", `/v1/meshes/${alice.meshId}/messages`, { token, body })).status).toBe(201);
    expect((await callBroker(url, "POST", "/v1/meshes/acme/messages", { token, body })).status).toBe(200);
  });

  test("refuses what it cannot understand, by field, and consumes nothing", async () => {
    const { alice, bob } = await twoMembers();
    const good = {
      client_message_id: "m1",
      destination: { kind: "dm", ref: bob.pubkey },
      envelope_version: "2",
      body: "x",
    };
    const cases: [request: object | string, error: string, field?: string][] = [
      [{ ...good, extra: 1 }, "unknown_field", "extra"],
      [{ ...good, client_message_id: "a b" }, "invalid_client_message_id"],
      [{ ...good, client_message_id: "x".repeat(129) }, "invalid_client_message_id"],
      [{ ...good, client_message_id: 1 }, "invalid_request", "client_message_id"],
      [{ ...good, body: 1 }, "invalid_request", "body"],
      [{ ...good, body_base64: "eA==" }, "invalid_request", "body"],
      [{ ...good, body: undefined, body_base64: "eA" }, "invalid_request", "body_base64"],
      [{ ...good, priority: "high" }, "invalid_request", "priority"],
      [{ ...good, meta: [] }, "invalid_request", "meta"],
      [{ ...good, meta: { mentions: [bob.pubkey, bob.pubkey] } }, "invalid_mentions", "meta.mentions"],
      [{ ...good, meta: { a: "\0" } }, "nul_in_field", "meta"],
      [{ ...good, reply_to_id: "a\0b" }, "nul_in_field", "reply_to_id"],
      [{ ...good, destination: { kind: "dm", ref: "bob" } }, "invalid_address", "destination.ref"],
      [{ ...good, destination: { kind: "mail", ref: "x" } }, "invalid_request", "destination.kind"],
      [
        { ...good, destination: { kind: "topic", ref: "news" }, envelope_version: "2" },
        "invalid_request",
        "envelope_version",
      ],
      [`{"client_message_id":"m1","client_message_id":"m1"}`, "duplicate_key"],
      ["[]", "invalid_request"],
    ];
    for (const [request, error, field] of cases) {
      const answer = await alice.call("POST", "/messages", request);
      expect(answer).toMatchObject({ status: 400, body: field === undefined ? { error } : { error, field } });
    }
    expect(await alice.call("POST", "/messages", good)).toMatchObject({ status: 201, body: { history_id: 1 } });
  });

  test("to an unknown destination is 404, to a closed topic 403, and leaves the id free", async () => {
    const { alice, bob } = await twoMembers();
    await bob.call("POST", "/topics", { name: "inner", post_policy: "subscribers" });
    const to = (kind: string, ref: string) => {
      const envelope_version = kind === "dm" ? "2" : "1";
      const send = { client_message_id: "m1", destination: { kind, ref }, envelope_version, body: "x" };
      return alice.call("POST", "/messages", send);
    };
    for (const [kind, ref] of [
      ["topic", "news"],
      ["dm", "0".repeat(64)],
      ["queue", "jobs"],
    ] as const) {
      expect(await to(kind, ref)).toMatchObject({
        status: 404,
        body: { error: "destination_not_found", retryable: false },
      });
    }
    expect(await to("topic", "inner")).toMatchObject({ status: 403, body: { error: "not_subscribed" } });
    expect((await to("dm", bob.pubkey)).status).toBe(201);
  });

  test("beyond the broker's size is 413 and a spent budget 429 with Retry-After; a committed retry is neither", async () => {
    const broker = await startTestBroker({ flags: { "max-inline-bytes": "1024", "rate-limit": "3/99999s" } });
    const alice = await createTestMesh(broker);
    await alice.token();
    expect(await alice.send("m1", alice, "x".repeat(1_025))).toMatchObject({
      status: 413,
      body: { error: "payload_too_large", retryable: false, limit_bytes: 1_024 },
    });
    expect((await alice.send("m1", alice)).status).toBe(201);
    expect((await alice.send("m2", alice)).status).toBe(201);
    const limited = await alice.send("m3", alice);
    expect(limited).toMatchObject({ status: 429, body: { error: "rate_limited", retryable: true } });
    expect(limited.headers.get("retry-after")).toBe(String(limited.body.retry_after_s));
    expect(Number(limited.body.retry_after_s)).toBeGreaterThan(0);
    expect((await alice.send("m1", alice)).status).toBe(200);
  });
});

describe("asking for a fate, and fencing", () => {
  test("tells none, committed, taken and fenced; only a fence decides", async () => {
    const { alice, bob } = await twoMembers();
    const fingerprint = "ab".repeat(32);
    const fate = (member: TestMember, id: string) =>
      member.call("GET", `/messages/by-client-id/${encodeURIComponent(id)}?fingerprint=${fingerprint}`);
    const fence = (member: TestMember, id: string) =>
      member.call("POST", `/messages/by-client-id/${encodeURIComponent(id)}/fence`, { fingerprint });
    const oddId = "a/b?c%d#e";
    expect(await fate(alice, oddId)).toMatchObject({ status: 200, body: { fate: "none" } });
    expect(await fence(alice, oddId)).toMatchObject({ status: 200, body: { fate: "fenced" } });
    expect(await fence(alice, oddId)).toMatchObject({ status: 200, body: { fate: "fenced" } });
    expect((await fate(alice, oddId)).body).toEqual({ fate: "fenced" });
    expect(await alice.send(oddId, bob)).toMatchObject({
      status: 409,
      body: { error: "fenced", client_message_id: oddId },
    });
    expect((await bob.send(oddId, alice)).status).toBe(201);

    await alice.send("m1", bob);
    for (const member of [alice, bob]) {
      expect((await fate(member, "m1")).body).toEqual({ fate: "taken" });
      expect((await fence(member, "m1")).body).toEqual({ fate: "taken" });
    }
  });

  test("of its own committed send gives the ids", async () => {
    const { alice, bob } = await twoMembers();
    const sent = await alice.send("m1", bob, "hello");
    // The fingerprint, computed here: SHA-256 over the seven fields, joined by 0x00.
    const fields = ["2", "dm", bob.pubkey, "", "next", "", hash("sha256", "hello", "hex")];
    const fingerprint = hash("sha256", fields.join("\0"), "hex");
    const ids = { broker_message_id: sent.body.broker_message_id, history_id: 1 };
    const committed = { fate: "committed", ...ids, history_available: true };
    expect((await alice.call("GET", `/messages/by-client-id/m1?fingerprint=${fingerprint}`)).body).toEqual(committed);
    expect((await alice.call("POST", "/messages/by-client-id/m1/fence", { fingerprint })).body).toEqual(committed);
  });

  test("needs a whole fingerprint and a possible id", async () => {
    const { alice } = await twoMembers();
    for (const query of ["", "?fingerprint=ab", `?fingerprint=${"AB".repeat(32)}`]) {
      const answer = await alice.call("GET", `/messages/by-client-id/m1${query}`);
      expect(answer).toMatchObject({ status: 400, body: { error: "invalid_request", field: "fingerprint" } });
    }
    const answer = await alice.call("GET", `/messages/by-client-id/a%20b?fingerprint=${"ab".repeat(32)}`);
    expect(answer).toMatchObject({ status: 400, body: { error: "invalid_client_message_id" } });
  });

  test("refuses a field that comes twice, from path and body", async () => {
    const { alice } = await twoMembers();
    const body = { fingerprint: "ab".repeat(32), client_message_id: "m1" };
    const answer = await alice.call("POST", "/messages/by-client-id/m1/fence", body);
    expect(answer).toMatchObject({ status: 400, body: { error: "unknown_field", field: "client_message_id" } });
  });
});

describe("reading", () => {
  test("history comes in pages of what the member may see", async () => {
    const { alice, bob } = await twoMembers();
    const carol = await joinTestMesh(alice, "carol");
    for (const id of ["m1", "m2", "m3"]) await alice.send(id, bob);
    const first = await bob.call("GET", "/history?limit=2");
    expect(first.body).toMatchObject({
      items: [{ history_id: 1, body_base64: Buffer.from("hello").toString("base64") }, { history_id: 2 }],
      next_after: 2,
    });
    expect((await bob.call("GET", "/history?after=2&limit=2")).body).toMatchObject({
      items: [{ history_id: 3, client_message_id: "m3", sender_pubkey: alice.pubkey }],
      next_after: null,
    });
    expect((await carol.call("GET", "/history")).body).toEqual({ items: [], next_after: null });
    expect((await bob.call("GET", "/history?topic=news")).body).toEqual({ items: [], next_after: null });
  });

  test("refuses numbers that are none or out of bounds, and names the field", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const limits = ["0", "1001", "x", "1.0", "%2B1", "", "1&limit=2"].map((text) => `limit=${text}`);
    for (const query of [...limits, "after=-1", "after=9007199254740993"]) {
      const answer = await alice.call("GET", `/history?${query}`);
      expect(answer).toMatchObject({ status: 400, body: { error: "invalid_request", field: query.split("=", 1)[0] } });
    }
  });

  test("refuses query fields that it does not know, whatever they are called", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    for (const field of ["x", "__proto__", "constructor", "mesh"]) {
      const answer = await alice.call("GET", `/history?${field}=1`);
      expect(answer).toMatchObject({ status: 400, body: { error: "unknown_field", field } });
    }
  });

  test("members are listed by public key, page by page", async () => {
    const { alice, bob } = await twoMembers();
    const sorted = [alice, bob].sort((a, b) => (a.pubkey < b.pubkey ? -1 : 1));
    const first = await bob.call("GET", "/members?limit=1");
    expect(first.body).toEqual({
      items: [
        {
          pubkey: sorted[0]?.pubkey,
          name: sorted[0]?.name,
          role: sorted[0] === alice ? "owner" : "member",
          joined_at: expect.any(Number),
        },
      ],
      next_cursor: sorted[0]?.pubkey,
    });
    const second = await bob.call("GET", `/members?limit=5&after=${first.body.next_cursor}`);
    expect(second.body).toMatchObject({ items: [{ name: sorted[1]?.name }], next_cursor: null });
  });
});

describe("topics", () => {
  test("are created once, listed, subscribed to and left", async () => {
    const { alice, bob } = await twoMembers();
    const create = (body: object) => alice.call("POST", "/topics", body);
    expect(await create({ name: "news" })).toMatchObject({
      status: 201,
      body: { name: "news", post_policy: "members" },
    });
    expect((await create({ name: "news", post_policy: "members" })).status).toBe(200);
    const other = await create({ name: "news", post_policy: "subscribers" });
    expect(other).toMatchObject({ status: 409, body: { error: "exists_with_other_content" } });
    expect(await create({ name: "a b" })).toMatchObject({
      status: 400,
      body: { error: "invalid_name", field: "name" },
    });
    await create({ name: "other" });

    for (let again = 0; again < 2; again++) {
      const subscribed = await bob.call("PUT", "/topics/news/subscription");
      expect(subscribed).toMatchObject({ status: 200, body: { name: "news", subscribed: true } });
    }
    expect((await bob.call("GET", "/topics?limit=1")).body).toEqual({
      items: [{ name: "news", post_policy: "members", subscribed: true }],
      next_cursor: "news",
    });
    expect((await bob.call("GET", "/topics?after=news")).body).toMatchObject({
      items: [{ name: "other" }],
      next_cursor: null,
    });
    expect((await bob.call("DELETE", "/topics/news/subscription")).body).toEqual({ name: "news", subscribed: false });
    expect(await bob.call("PUT", "/topics/nowhere/subscription")).toMatchObject({
      status: 404,
      body: { error: "not_found" },
    });
    expect((await bob.call("DELETE", "/topics/nowhere/subscription")).status).toBe(404);
  });

  test("reach their subscribers and not their sender", async () => {
    const { alice, bob } = await twoMembers();
    await alice.call("POST", "/topics", { name: "news" });
    for (const member of [alice, bob]) await member.call("PUT", "/topics/news/subscription");
    const body = { client_message_id: "m1", destination: { kind: "topic", ref: "news" }, body: "x" };
    expect((await alice.call("POST", "/messages", body)).status).toBe(201);
    expect(await (await bob.connect()).nextPush()).toMatchObject({ client_message_id: "m1" });
    await alice.send("m2", alice);
    expect(await (await alice.connect()).nextPush()).toMatchObject({ client_message_id: "m2" });
  });
});
