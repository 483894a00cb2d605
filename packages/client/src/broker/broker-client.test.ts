import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { encodeHex } from "@claudemesh/protocol/encoding/hex";
import { provePath } from "@claudemesh/protocol/wire/frames";
import { createMeshBytes, httpProofBytes, joinBytes } from "@claudemesh/protocol/wire/signing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { generateMemberKeys, identityOf, type MemberKeys, signerOf } from "../keys/member-keys.ts";
import { isSignedBy } from "../keys/verify-signature.ts";
import { FakeBroker } from "../testing/fake-broker.ts";
import { BrokerRefusal, createMesh, joinMesh, withBroker } from "./broker-client.ts";

const keys = generateMemberKeys();
const pubkey = keys.ed25519.public_key;
const mesh_id = "01890000-0000-7000-8000-000000000001";
const membership = { mesh: "acme", mesh_id, member_pubkey: pubkey, name: "alice", role: "owner" };

const brokerKeys = generateMemberKeys();
const broker_key = brokerKeys.ed25519.public_key;

/** What a broker with these keys says to who asks it to prove itself. */
function proofBy({ ed25519, x25519 }: MemberKeys, asked: Readonly<Record<string, string>>): object {
  const { nonce = "", mesh_id: mesh = "" } = asked;
  const bytes = httpProofBytes({ nonce, mesh_id: mesh, broker_key: ed25519.public_key });
  return { broker_key: ed25519.public_key, signature: encodeHex(signerOf({ ed25519, x25519 })(bytes)) };
}

type Seen = { readonly request: IncomingMessage; readonly body: string };

describe("over HTTP", () => {
  let server: Server;
  let broker: string;
  let seen: Seen[];
  let answer: (response: ServerResponse, request: IncomingMessage) => void;
  let prove: (asked: Readonly<Record<string, string>>, response: ServerResponse) => void;

  const answerJson = (status: number, body: unknown) => (response: ServerResponse) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };

  beforeEach(async () => {
    seen = [];
    answer = answerJson(201, membership);
    prove = (asked, response) => answerJson(200, proofBy(brokerKeys, asked))(response);
    server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      if (request.url === provePath) {
        prove(JSON.parse(body), response);
        return;
      }
      seen.push({ request, body });
      answer(response, request);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    broker = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const create = () => createMesh({ broker, adminToken: "admin-secret", name: "acme", ownerName: "alice", keys });
  const join = (more: { readonly broker_key?: string } = { broker_key }) =>
    joinMesh({ invite: { broker, mesh: "acme", mesh_id, secret: "s3cret", ...more }, name: "bob", keys });

  it("a mesh is created with the admin token and the owner's signature", async () => {
    expect(await create()).toEqual({ ...membership, broker_key });
    const [call] = seen;
    expect(call?.request).toMatchObject({ method: "POST", url: "/v1/meshes" });
    expect(call?.request.headers).toMatchObject({
      authorization: "Bearer admin-secret",
      "content-type": "application/json",
    });
    const { signature, ...rest } = JSON.parse(call?.body ?? "");
    expect(rest).toEqual({ name: "acme", owner: { name: "alice", pubkey } });
    const bytes = createMeshBytes({ name: "acme", owner_name: "alice", owner_pubkey: pubkey });
    expect(isSignedBy(pubkey, bytes, signature)).toBe(true);
  });

  it("an invite is joined with its secret and the new member's signature, and without any token", async () => {
    answer = answerJson(200, { ...membership, name: "bob", role: "member", later: "unknown" });
    expect(await join()).toEqual({ ...membership, name: "bob", role: "member", broker_key });
    const [call] = seen;
    expect(call?.request).toMatchObject({ method: "POST", url: `/v1/meshes/${mesh_id}/join` });
    expect(call?.request.headers.authorization).toBeUndefined();
    const { signature, ...rest } = JSON.parse(call?.body ?? "");
    expect(rest).toEqual({ secret: "s3cret", name: "bob", pubkey });
    const bytes = joinBytes({ mesh_id, secret: "s3cret", name: "bob", pubkey });
    expect(isSignedBy(pubkey, bytes, signature)).toBe(true);
  });

  it("a lost answer is asked for again with the same bytes", async () => {
    answer = (response, request) => {
      if (seen.length < 3) request.socket.destroy();
      else answerJson(200, membership)(response);
    };
    expect(await create()).toEqual({ ...membership, broker_key });
    expect(new Set(seen.map(({ body }) => body)).size).toBe(1);
    expect(seen).toHaveLength(3);
  });

  it("a broker that never answers is unreachable after a few tries", async () => {
    answer = (_, request) => request.socket.destroy();
    await expect(join()).rejects.toMatchObject({ code: "broker_unreachable", details: { broker } });
    expect(seen).toHaveLength(4);
  });

  it("an invite without a broker's key is joined at whatever broker proves to hold one, which is told", async () => {
    expect(await join({})).toMatchObject({ broker_key });
  });

  const strangers: [string, typeof prove][] = [
    ["has another key", (asked, response) => answerJson(200, proofBy(generateMemberKeys(), asked))(response)],
    [
      "names the key and cannot sign with it",
      (asked, response) => answerJson(200, { ...proofBy(generateMemberKeys(), asked), broker_key })(response),
    ],
    [
      "repeats a signature that it saw",
      (_, response) => answerJson(200, proofBy(brokerKeys, { nonce: "0a".repeat(32), mesh_id }))(response),
    ],
    [
      "passes on a proof for another mesh",
      (asked, response) => answerJson(200, proofBy(brokerKeys, { ...asked, mesh_id: "" }))(response),
    ],
    ["proves nothing", (_, response) => answerJson(200, {})(response)],
    [
      "cannot prove anything, as before 0.2",
      (_, response) => answerJson(404, { error: "not_found", message: "?" })(response),
    ],
  ];
  it.each(strangers)("the secret of an invite is not sent to what %s", async (_, stranger) => {
    prove = stranger;
    await expect(join()).rejects.toMatchObject({ code: "not_our_broker" });
    expect(seen).toEqual([]);
  });

  it("an admin token is not sent to what proves another key than is expected, or none", async () => {
    const expected = {
      broker,
      adminToken: "admin-secret",
      name: "acme",
      ownerName: "alice",
      keys,
      brokerKey: "0b".repeat(32),
    };
    await expect(createMesh(expected)).rejects.toMatchObject({
      code: "not_our_broker",
      details: { seen_key: broker_key },
    });
    prove = (_, response) => answerJson(404, { error: "not_found", message: "?" })(response);
    await expect(create()).rejects.toMatchObject({ code: "not_our_broker" });
    expect(seen).toEqual([]);
  });

  it("a refusal that the catalogue knows is its MeshError, asked for once", async () => {
    answer = answerJson(403, { error: "invite_refused", message: "used already", retryable: false, hint: "ask again" });
    await expect(join()).rejects.toMatchObject({
      name: "MeshError",
      code: "invite_refused",
      message: "used already",
      details: { hint: "ask again" },
    });
    expect(seen).toHaveLength(1);
  });

  it.each([
    ["a code from the future", 422, { error: "from_the_future", message: "?", retryable: true, more: 1 }],
    ["a known code under another status", 499, { error: "forbidden", message: "?", retryable: false }],
  ])("%s keeps its status and body", async (_, status, body) => {
    answer = answerJson(status, body);
    const error = await create().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(BrokerRefusal);
    expect(error).toMatchObject({ status, code: body.error, retryable: body.retryable, body });
  });

  it("an answer that is no error body keeps its status", async () => {
    answer = (response) => response.writeHead(502).end("<html>");
    await expect(create()).rejects.toMatchObject({ name: "BrokerRefusal", status: 502, retryable: true });
  });

  it("a redirect is not followed, so the token goes nowhere else", async () => {
    answer = (response) => response.writeHead(307, { location: `${broker.replace("ws", "http")}/elsewhere` }).end();
    await expect(create()).rejects.toMatchObject({ name: "BrokerRefusal", status: 307 });
    expect(seen).toHaveLength(1);
  });

  it.each([
    ["another key", { ...membership, member_pubkey: "00".repeat(32) }],
    ["no role", { ...membership, role: undefined }],
    ["nothing", null],
  ])("a membership of %s is not believed", async (_, body) => {
    answer = answerJson(200, body);
    await expect(create()).rejects.toMatchObject({ code: "internal" });
  });
});

describe("withBroker", () => {
  let broker: FakeBroker;

  beforeEach(async () => {
    broker = await FakeBroker.start();
  });

  afterEach(() => broker.stop());

  const options = () => ({ broker: broker.url, identity: identityOf(keys, mesh_id), agent: "test/1" });

  it("connects as a client, gives the answers' bodies, and hangs up", async () => {
    const made = withBroker(options(), async (call) => [
      await call("invite.create", { expires_in_s: 60 }),
      await call("members.list", {}),
    ]);
    const peer = await broker.peers.next();
    expect(await peer.welcome()).toMatchObject({ kind: "client", agent: "test/1" });
    const first = await peer.frames.next();
    expect(first).toMatchObject({ type: "invite.create", expires_in_s: 60 });
    peer.reply(first, 201, { invite: "cmi1.x" });
    peer.reply(await peer.frames.next(), 200, { items: [] });
    expect(await made).toEqual([{ invite: "cmi1.x" }, { items: [] }]);
    expect(await peer.closeCode).toBe(1000);
  });

  it("throws refusals as errors, and hangs up", async () => {
    const made = withBroker(options(), (call) => call("invite.create", {}));
    const outcome = expect(made).rejects.toMatchObject({
      name: "MeshError",
      code: "forbidden",
      message: "owners only",
    });
    const peer = await broker.welcomeNext();
    peer.reply(await peer.frames.next(), 403, { error: "forbidden", message: "owners only", retryable: false });
    await outcome;
    expect(await peer.closeCode).toBe(1000);
  });

  it("says whether a request without an answer was sent", async () => {
    const made = withBroker(options(), async (call) => {
      const first = await call("token.create", {}).catch((error: unknown) => error);
      const second = await call("token.list", {}).catch((error: unknown) => error);
      return [first, second];
    });
    const peer = await broker.welcomeNext();
    await peer.frames.next();
    peer.socket.terminate();
    expect(await made).toMatchObject([
      { code: "broker_unreachable", details: { outcome: "connection_lost", sent: true } },
      { code: "broker_unreachable", details: { outcome: "not_sent", sent: false } },
    ]);
  });

  it("gives up on a request that is not answered in time", async () => {
    const made = withBroker({ ...options(), requestTimeoutMs: 10 }, (call) => call("topic.list", {}));
    const outcome = expect(made).rejects.toMatchObject({
      code: "broker_unreachable",
      details: { outcome: "timed_out", sent: true },
    });
    await broker.welcomeNext();
    await outcome;
  });

  it("hangs up when the caller fails", async () => {
    const made = withBroker(options(), () => Promise.reject(new Error("the caller's own")));
    const outcome = expect(made).rejects.toThrow("the caller's own");
    const peer = await broker.welcomeNext();
    await outcome;
    expect(await peer.closeCode).toBe(1000);
  });
});
