// A real broker on a free port with a temporary SQLite file, and the members of a mesh on it, for tests. Everything is
// stopped and removed when the test that started it ends.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrokerFlags, readBrokerConfig } from "@claudemesh/broker/config";
import { type RunningBroker, type StartBrokerOptions, startBroker } from "@claudemesh/broker/start";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { createMeshBytes, joinBytes } from "@claudemesh/protocol/wire/signing";
import { onTestFinished } from "vitest";
import { createPeerKeys, type PeerKeys } from "./peer-keys.ts";
import { RawPeer } from "./raw-peer.ts";

export type HttpAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
};

/** A folder that is gone after the test. */
export function makeTemporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "claudemesh-broker-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Flags win over the harness's own: a free port, `<folder>/broker.db`, and silence. */
export async function startTestBroker(
  options: {
    folder?: string;
    flags?: BrokerFlags;
    env?: Record<string, string>;
    time?: StartBrokerOptions["time"];
  } = {},
): Promise<RunningBroker> {
  const folder = options.folder ?? makeTemporaryFolder();
  const flags = {
    listen: "127.0.0.1:0",
    store: `sqlite:${join(folder, "broker.db")}`,
    "log-level": "silent",
    ...options.flags,
  };
  const broker = await startBroker(readBrokerConfig(flags, options.env ?? {}, undefined), {
    ...(options.time === undefined ? {} : { time: options.time }),
  });
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= broker.stop();
    return stopping;
  };
  onTestFinished(stop);
  return { ...broker, stop };
}

/** One HTTP call; a body that is not a string is sent as JSON. */
export async function callBroker(
  url: string,
  method: string,
  path: string,
  options: { token?: string; body?: unknown } = {},
): Promise<HttpAnswer> {
  const headers: Record<string, string> = {};
  if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`;
  const init: RequestInit = { method, headers };
  if (options.body !== undefined) {
    headers["content-type"] = "application/json";
    init.body = typeof options.body === "string" ? options.body : JSON.stringify(options.body);
  }
  const response = await fetch(url + path, init);
  return { status: response.status, headers: response.headers, body: (await response.json()) as HttpAnswer["body"] };
}

/** A member with its keys, and its ways to the broker. */
export class TestMember {
  readonly meshId: string;
  readonly mesh: string;
  readonly name: string;
  readonly keys: PeerKeys;
  /** Where the broker is now; tests that restart it set this. */
  url: string;
  #token: string | undefined;

  constructor(url: string, keys: PeerKeys, membership: Readonly<Record<string, unknown>>) {
    this.url = url;
    this.keys = keys;
    this.mesh = String(membership.mesh);
    this.meshId = String(membership.mesh_id);
    this.name = String(membership.name);
  }

  get pubkey(): string {
    return this.keys.pubkey;
  }

  connect(kind: "daemon" | "client" = "daemon"): Promise<RawPeer> {
    return RawPeer.connect(this.url, this, kind);
  }

  /** A bearer token, made on the first call. */
  async token(): Promise<string> {
    this.#token ??= (await this.newToken()).token;
    return this.#token;
  }

  /** One more token, which a token cannot make. */
  async newToken(label = ""): Promise<{ readonly token: string; readonly tokenId: string }> {
    const peer = await this.connect("client");
    const { status, body } = await peer.request("token.create", { label });
    assert.equal(status, 201);
    await peer.drop();
    return { token: String(body.token), tokenId: String(body.token_id) };
  }

  /** A call below /v1/meshes/<mesh>, by token. */
  async call(method: string, path: string, body?: unknown): Promise<HttpAnswer> {
    return callBroker(this.url, method, `/v1/meshes/${this.mesh}${path}`, { token: await this.token(), body });
  }

  /** Sets one of the mesh's settings, as its owner. */
  async set(key: string, value: string | number | null): Promise<void> {
    const { status } = await this.call("PUT", "/settings", { key, value });
    assert.equal(status, 200);
  }

  /** A direct message whose body passes for a sealed one, accepted or answered otherwise. */
  send(clientMessageId: string, to: { readonly pubkey: string }, body = "hello"): Promise<HttpAnswer> {
    const destination = { kind: "dm", ref: to.pubkey };
    return this.call("POST", "/messages", {
      client_message_id: clientMessageId,
      destination,
      envelope_version: "2",
      body,
    });
  }
}

export function readAdminToken(broker: RunningBroker): string {
  return readFileSync(broker.adminTokenFile, "utf8").trim();
}

/** Creates a mesh and returns its owner. */
export async function createTestMesh(broker: RunningBroker, mesh = "acme", name = "alice"): Promise<TestMember> {
  const keys = createPeerKeys();
  const signed = createMeshBytes({ name: mesh, owner_name: name, owner_pubkey: keys.pubkey });
  const request = { name: mesh, owner: { name, pubkey: keys.pubkey }, signature: keys.sign(signed) };
  const answer = await callBroker(broker.url, "POST", "/v1/meshes", { token: readAdminToken(broker), body: request });
  assert.equal(answer.status, 201);
  return new TestMember(broker.url, keys, answer.body);
}

/** A new member, let in by an invite of the owner. */
export async function joinTestMesh(owner: TestMember, name: string): Promise<TestMember> {
  const invited = await owner.call("POST", "/invites");
  assert.equal(invited.status, 201);
  const { mesh_id, secret } = decodeInvite(String(invited.body.invite));
  const keys = createPeerKeys();
  const signature = keys.sign(joinBytes({ mesh_id, secret, name, pubkey: keys.pubkey }));
  const request = { secret, name, pubkey: keys.pubkey, signature };
  const answer = await callBroker(owner.url, "POST", `/v1/meshes/${mesh_id}/join`, { body: request });
  assert.equal(answer.status, 201);
  return new TestMember(owner.url, keys, answer.body);
}

/** A broker of its own, with a mesh of two. */
export async function startTestPair(
  options: Parameters<typeof startTestBroker>[0] = {},
): Promise<{ broker: RunningBroker; alice: TestMember; bob: TestMember }> {
  const broker = await startTestBroker(options);
  const alice = await createTestMesh(broker);
  return { broker, alice, bob: await joinTestMesh(alice, "bob") };
}
