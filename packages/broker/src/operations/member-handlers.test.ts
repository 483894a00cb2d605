// Invites, roles, and the end of a membership as everyone sees it: the owner, the member on its connections, and those who
// wait for what it held. Against a real broker.

import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { joinBytes } from "@claudemesh/protocol/wire/signing";
import { describe, expect, test } from "vitest";
import { callBroker, joinTestMesh, startTestPair, type TestMember } from "../../../../tests/support/broker-harness.ts";
import { createPeerKeys } from "../../../../tests/support/peer-keys.ts";
import { RawPeer } from "../../../../tests/support/raw-peer.ts";

async function start(env: Record<string, string> = {}): Promise<Record<"alice" | "bob" | "carol", TestMember>> {
  const { alice, bob } = await startTestPair({ env });
  return { alice, bob, carol: await joinTestMesh(alice, "carol") };
}

const revoke = (owner: TestMember, { pubkey }: TestMember) => owner.call("DELETE", `/members/${pubkey}`);

describe("revoking a member", () => {
  test("is for owners, once; again it is done already; an unknown member is not found; the last owner stays", async () => {
    const { alice, bob, carol } = await start();
    expect(await revoke(carol, bob)).toMatchObject({ status: 403, body: { error: "forbidden" } });
    const revoked = { status: 200, body: { pubkey: bob.pubkey, revoked: true } };
    expect(await revoke(alice, bob)).toMatchObject(revoked);
    const peer = await alice.connect("client");
    expect(await peer.request("member.revoke", { pubkey: bob.pubkey })).toEqual(revoked);
    expect(await peer.request("member.revoke", { pubkey: "0".repeat(64) })).toMatchObject({ status: 404 });
    expect(await revoke(alice, alice)).toMatchObject({ status: 409, body: { error: "last_owner" } });
    const { items } = (await alice.call("GET", "/members")).body as { items: { name: string }[] };
    expect(items.map(({ name }) => name).toSorted()).toEqual(["alice", "carol"]);
  });

  test("cuts its live connections, tells them why, and lets it back in by no way", async () => {
    const { alice, bob, carol } = await start();
    const token = await bob.token();
    const [daemon, client, bystander] = [await bob.connect(), await bob.connect("client"), await carol.connect()];
    await revoke(alice, bob);
    for (const peer of [daemon, client]) {
      expect(await peer.next((frame) => frame.type === "member_revoked")).toEqual({
        type: "member_revoked",
        pubkey: bob.pubkey,
      });
      expect(await peer.closed).toEqual({ code: 4005, reason: "member_revoked" });
    }
    const dialled = await RawPeer.dial(bob.url, bob.meshId);
    const refused = await dialled.request("hello", dialled.helloOf(bob, "daemon"));
    expect(refused).toMatchObject({ status: 401, body: { error: "unauthorized", membership: "ended" } });
    expect((await dialled.closed).code).toBe(4001);
    expect((await callBroker(bob.url, "GET", "/v1/meshes/acme/history", { token })).status).toBe(401);
    expect((await bystander.request("topic.list")).status).toBe(200);
    const gone = await bystander.next((frame) => frame.type === "destination_gone");
    expect(gone).toEqual({ type: "destination_gone", kind: "dm", ref: bob.pubkey });
    // A caller that does not hold the key learns no more than before.
    const stranger = await RawPeer.dial(bob.url);
    const forged = { ...stranger.helloOf(bob, "daemon"), signature: "00".repeat(64) };
    expect((await stranger.request("hello", forged)).body).not.toHaveProperty("membership");
  });

  test("refuses its send that waits between its look-up and its transaction", async () => {
    const { alice, bob, carol } = await start({ CLAUDEMESH_FAILPOINTS: "accept.after_b0=delay:1500" });
    await Promise.all([alice.token(), bob.token()]);
    const sent = bob.send("m1", carol);
    // An answer to a later call shows that the send, begun before it, has reached its fault point.
    await bob.call("GET", "/topics");
    expect((await revoke(alice, bob)).status).toBe(200);
    expect(await sent).toMatchObject({ status: 401, body: { error: "unauthorized" } });
    expect((await carol.call("GET", "/history")).body.items).toEqual([]);
  });

  test("frees what it holds of a queue at once", async () => {
    const { alice, bob, carol } = await start();
    await alice.call("POST", "/queues", { id: "jobs" });
    const destination = { kind: "queue", ref: "jobs" };
    await alice.call("POST", "/messages", { client_message_id: "m1", destination, body: "x" });
    const lease = { lease_request_id: "r1", max: 1, lease_s: 3_600 };
    expect((await bob.call("POST", "/queues/jobs/lease", lease)).body.items).toHaveLength(1);
    expect((await carol.call("POST", "/queues/jobs/lease", lease)).body.items).toHaveLength(0);
    await revoke(alice, bob);
    expect((await carol.call("POST", "/queues/jobs/lease", lease)).body.items).toMatchObject([{ deliveries: 2 }]);
  });

  test("is not escaped by a hello that was under way", async () => {
    const { alice, bob } = await start();
    const waiting = await Promise.all(Array.from({ length: 20 }, () => RawPeer.dial(bob.url, bob.meshId)));
    const hellos = waiting.map((peer) => peer.request("hello", peer.helloOf(bob, "client")).catch(() => "cut"));
    await revoke(alice, bob);
    await Promise.all(hellos);
    for (const peer of waiting) expect([4001, 4005]).toContain((await peer.closed).code);
  });
});

describe("changing a role", () => {
  const ownersOnly: readonly [string, Record<string, unknown>][] = [
    ["invite.create", {}],
    ["invite.list", {}],
    ["webhook.list", {}],
    ["registrar.approvals", {}],
    ["registrar.audit", {}],
    ["topic.delete", { name: "news" }],
  ];

  test("is for owners, and holds on connections that are open", async () => {
    const { alice, bob, carol } = await start();
    const [former, next] = [await alice.connect("client"), await bob.connect("client")];
    const asks = (peer: RawPeer) =>
      Promise.all(ownersOnly.map(async ([name, input]) => (await peer.request(name, input)).status));
    expect(await asks(next)).toEqual(ownersOnly.map(() => 403));
    expect(await next.request("member.role", { pubkey: bob.pubkey, role: "owner" })).toMatchObject({ status: 403 });
    const made = { status: 200, body: { pubkey: bob.pubkey, role: "owner" } };
    expect(await alice.call("PUT", `/members/${bob.pubkey}/role`, { role: "owner" })).toMatchObject(made);
    expect(await former.request("member.role", { pubkey: bob.pubkey, role: "owner" })).toEqual(made);
    expect((await asks(next)).every((status) => status < 300)).toBe(true);
    expect((await next.request("member.role", { pubkey: alice.pubkey, role: "member" })).status).toBe(200);
    expect(await asks(former)).toEqual(ownersOnly.map(() => 403));
    expect(await revoke(alice, carol)).toMatchObject({ status: 403, body: { error: "forbidden" } });
    expect((await former.request("topic.list")).status).toBe(200);
  });

  test("ends a former owner's webhooks for good, and their ids are free for other owners", async () => {
    const { alice, bob } = await start();
    const set = (role: string) => alice.call("PUT", `/members/${bob.pubkey}/role`, { role });
    const hook = { id: "ci", url: "https://hooks.example.org/ci", topics: ["none"] };
    const listed = async () => (await alice.call("GET", "/webhooks")).body.items;
    expect((await set("owner")).status).toBe(200);
    expect((await bob.call("POST", "/webhooks", hook)).status).toBe(201);
    expect((await set("owner")).status).toBe(200);
    expect(await listed()).toMatchObject([{ id: "ci", created_by: bob.pubkey }]);
    for (let again = 0; again < 2; again++) expect((await set("member")).status).toBe(200);
    expect(await listed()).toEqual([]);
    expect((await set("owner")).status).toBe(200);
    expect(await listed()).toEqual([]);
    expect((await alice.call("POST", "/webhooks", hook)).status).toBe(201);
    expect(await listed()).toMatchObject([{ id: "ci", created_by: alice.pubkey }]);
  });

  test("takes a role that exists, of a member that exists, and leaves an owner", async () => {
    const { alice, bob } = await start();
    const set = (pubkey: string, body: object) => alice.call("PUT", `/members/${pubkey}/role`, body);
    expect(await set(bob.pubkey, { role: "king" })).toMatchObject({ status: 400, body: { error: "invalid_request" } });
    expect(await set(bob.pubkey, { role: "owner", for: 1 })).toMatchObject({ body: { error: "unknown_field" } });
    expect(await set("0".repeat(64), { role: "owner" })).toMatchObject({ status: 404, body: { error: "not_found" } });
    const last = { status: 409, body: { error: "last_owner" } };
    expect(await set(alice.pubkey, { role: "member" })).toMatchObject(last);
  });
});

describe("invites", () => {
  async function invite(owner: TestMember) {
    const { status, body } = await owner.call("POST", "/invites", { expires_in_s: 60 });
    expect(status).toBe(201);
    return { id: String(body.invite_id), text: String(body.invite) };
  }

  function join(url: string, text: string) {
    const { mesh_id, secret } = decodeInvite(text);
    const keys = createPeerKeys();
    const signature = keys.sign(joinBytes({ mesh_id, secret, name: "dave", pubkey: keys.pubkey }));
    const body = { secret, name: "dave", pubkey: keys.pubkey, signature };
    return callBroker(url, "POST", `/v1/meshes/${mesh_id}/join`, { body });
  }

  test("are listed to owners page by page, each with its id and state, and never with its secret", async () => {
    const { alice, bob } = await start();
    const { id, text } = await invite(alice);
    expect(await bob.call("GET", "/invites")).toMatchObject({ status: 403, body: { error: "forbidden" } });
    const { status, body } = await alice.call("GET", "/invites?limit=1000");
    expect(status).toBe(200);
    const items = body.items as Record<string, unknown>[];
    expect(items.map(({ state }) => state).toSorted()).toEqual(["live", "used", "used"]);
    expect(items.find(({ invite_id }) => invite_id === id)).toEqual({
      invite_id: id,
      state: "live",
      name: null,
      created_by: alice.pubkey,
      created_at: expect.any(Number),
      expires_at: expect.any(Number),
      used_by: null,
      used_at: null,
      revoked_at: null,
    });
    expect(items.map(({ used_by }) => used_by)).toContain(bob.pubkey);
    expect(JSON.stringify(body)).not.toContain(decodeInvite(text).secret);
    const peer = await alice.connect("client");
    const paged: unknown[] = [];
    let after: unknown = "";
    while (after !== null) {
      const page: Record<string, unknown> = (await peer.request("invite.list", { limit: 1, after })).body;
      paged.push(...(page.items as unknown[]));
      after = page.next_cursor;
    }
    expect(paged).toEqual(items);
    for (const limit of [0, 1001]) expect((await alice.call("GET", `/invites?limit=${limit}`)).status).toBe(400);
  });

  test("that are revoked let no member in; again nothing more happens; for owners alone", async () => {
    const { alice, bob } = await start();
    const { id, text } = await invite(alice);
    expect(await bob.call("DELETE", `/invites/${id}`)).toMatchObject({ status: 403, body: { error: "forbidden" } });
    const revoked = { status: 200, body: { invite_id: id, revoked: true } };
    expect(await alice.call("DELETE", `/invites/${id}`)).toMatchObject(revoked);
    const peer = await alice.connect("client");
    expect(await peer.request("invite.revoke", { invite_id: id })).toEqual(revoked);
    expect(await join(alice.url, text)).toMatchObject({ status: 403, body: { error: "invite_refused" } });
    const nobodys = "0198c0de-0000-7000-8000-000000000000";
    expect(await alice.call("DELETE", `/invites/${nobodys}`)).toMatchObject({
      status: 404,
      body: { error: "not_found" },
    });
  });

  test("that were used say so when they are revoked, and members that joined with them stay", async () => {
    const { alice } = await start();
    const { id, text } = await invite(alice);
    const { member_pubkey } = (await join(alice.url, text)).body;
    expect(await alice.call("DELETE", `/invites/${id}`)).toMatchObject({
      status: 409,
      body: { error: "invite_used", invite_id: id, used_by: member_pubkey },
    });
    const { items } = (await alice.call("GET", "/members")).body as { items: { pubkey: string }[] };
    expect(items.map(({ pubkey }) => pubkey)).toContain(member_pubkey);
  });
});

describe("deleting a topic", () => {
  test("is for owners, and again nothing more happens", async () => {
    const { alice, bob } = await start();
    await bob.call("POST", "/topics", { name: "news" });
    expect(await bob.call("DELETE", "/topics/news")).toMatchObject({ status: 403, body: { error: "forbidden" } });
    const deleted = { status: 200, body: { name: "news", deleted: true } };
    for (let again = 0; again < 2; again++) expect(await alice.call("DELETE", "/topics/news")).toMatchObject(deleted);
    expect((await bob.call("GET", "/topics")).body.items).toEqual([]);
    expect((await bob.call("PUT", "/topics/news/subscription")).status).toBe(404);
  });
});
