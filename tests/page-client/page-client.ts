// A client in one file, written from docs/protocol.md and nothing else: Node's own modules and a WebSocket. If it cannot
// do something, the page does not say how. Shows other implementations what there is to do; no retries, no reconnecting.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from "node:crypto";
import { once } from "node:events";
import { WebSocket } from "ws";

type Json = Readonly<Record<string, unknown>>;
export type Reply = { readonly status: number; readonly body: Json };
export type Envelope = {
  readonly kind: "topic" | "dm" | "queue";
  readonly ref: string;
  readonly body: string;
  readonly priority?: "now" | "next" | "low";
  readonly replyToId?: string;
  readonly meta?: Readonly<Record<string, number | string>>;
};

/** An ed25519 key pair; the page speaks of the 32 raw bytes of the public key in lower-case hex. */
export class Keys {
  readonly publicKey: string;
  readonly #privateKey: KeyObject;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const { x = "" } = publicKey.export({ format: "jwk" });
    this.publicKey = Buffer.from(x, "base64url").toString("hex");
    this.#privateKey = createPrivateKey({
      key: privateKey.export({ format: "der", type: "pkcs8" }),
      format: "der",
      type: "pkcs8",
    });
  }

  /** Fields joined by 0x00, signed; 128 characters of hex. */
  sign(...fields: readonly string[]): string {
    return sign(null, Buffer.from(fields.join("\0")), this.#privateKey).toString("hex");
  }
}

async function postJson(url: string, body: Json, token?: string): Promise<Reply> {
  const headers = {
    "content-type": "application/json",
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: answer.status, body: (await answer.json()) as Json };
}

export function createMesh(
  broker: string,
  adminToken: string,
  mesh: string,
  owner: string,
  keys: Keys,
): Promise<Reply> {
  const signature = keys.sign("claudemesh-create-1", mesh, owner, keys.publicKey);
  return postJson(
    `${broker}/v1/meshes`,
    { name: mesh, owner: { name: owner, pubkey: keys.publicKey }, signature },
    adminToken,
  );
}

export async function joinMesh(inviteLine: string, name: string, keys: Keys): Promise<Reply> {
  const invite = JSON.parse(Buffer.from(inviteLine.slice("cmi1.".length), "base64url").toString("utf8")) as {
    broker: string;
    mesh_id: string;
    secret: string;
    broker_key: string;
  };
  const url = invite.broker.replace(/^ws/, "http");
  const nonce = randomBytes(32).toString("hex");
  const { body } = await postJson(`${url}/v1/broker/prove`, { nonce, mesh_id: invite.mesh_id });
  const signed = ["claudemesh-http-proof-1", nonce, invite.mesh_id, invite.broker_key].join("\0");
  if (!isSignedBy(invite.broker_key, signed, String(body.signature)))
    throw new Error("this is not the invite's broker");
  const signature = keys.sign("claudemesh-join-1", invite.mesh_id, invite.secret, name, keys.publicKey);
  const request = { secret: invite.secret, name, pubkey: keys.publicKey, signature };
  return postJson(`${url}/v1/meshes/${invite.mesh_id}/join`, request);
}

/** SHA-256 over the fields of a send, as the broker computes it. Meta here is flat, so that sorting its keys is enough. */
export function fingerprintOf(envelope: Envelope): string {
  const meta = Object.entries(envelope.meta ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const fields = [
    "1",
    envelope.kind,
    envelope.ref,
    envelope.replyToId ?? "",
    envelope.priority ?? "next",
    meta.length === 0 ? "" : JSON.stringify(Object.fromEntries(meta)),
    createHash("sha256").update(envelope.body).digest("hex"),
  ];
  return createHash("sha256").update(fields.join("\0")).digest("hex");
}

/** The code that the page names for what is wrong with these features; undefined: nothing is. */
export function refusalOf(features: Readonly<Record<string, Json | undefined>>): number | undefined {
  const { client_message_id_dedupe: dedupe, max_payload: payload, concurrent_connection_policy: policy } = features;
  if (dedupe === undefined || dedupe.version === 1 || payload === undefined || policy === undefined) return 4010;
  const days = dedupe.mode === "permanent" ? 7 : dedupe.dedupe_retention_days;
  const sizes = [payload.inline_bytes, payload.blob_bytes];
  const sound =
    dedupe.version === 2 &&
    dedupe.request_fingerprint === true &&
    ["permanent", "retention_scoped"].includes(String(dedupe.mode)) &&
    payload.version === 1 &&
    policy.version === 1 &&
    [days, ...sizes].every(Number.isSafeInteger);
  if (!sound) return 4011;
  return Number(days) < 7 || sizes.some((bytes) => Number(bytes) < 1024) ? 4012 : undefined;
}

type Proof = {
  readonly type: string;
  readonly protocol: number;
  readonly nonce: string;
  readonly broker_key: string;
  readonly features: Record<string, Json>;
  readonly signature: string;
};

const signedOperations = [
  ...["token.create", "invite.create", "member.revoke", "member.role", "mesh.set"],
  ...["topic.delete", "webhook.create", "webhook.delete"],
];

function isSignedBy(publicKey: string, signed: string, signature: string): boolean {
  const x = Buffer.from(publicKey, "hex").toString("base64url");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  return verify(null, Buffer.from(signed), key, Buffer.from(signature, "hex"));
}

function isProven(proof: Proof, nonce: string, meshId: string, expected?: string): boolean {
  const { broker_key: key, nonce: brokerNonce, features, signature } = proof;
  if (expected !== undefined && expected !== key) return false;
  const signed = ["claudemesh-proof-2", nonce, brokerNonce, meshId, key, canonical(features)].join("\0");
  return isSignedBy(key, signed, signature);
}

/** RFC 8785 of what brokers announce: keys in order, no spaces. */
function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`).join(",")}}`;
}

export class PageClient {
  readonly features: Readonly<Record<string, Json>>;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
  readonly #socket: WebSocket;
  readonly #open = new Map<number, (reply: Reply) => void>();
  readonly #pushes: Json[] = [];
  #pushed: (() => void) | undefined;
  #nextId = 1;
  #sign = (_type: string, _id: number, _input: Json): string => "";

  private constructor(socket: WebSocket, features: Readonly<Record<string, Json>>) {
    this.#socket = socket;
    this.features = features;
    this.closed = once(socket, "close").then(([code]) => code as number);
    socket.on("message", (data) => this.#receive(JSON.parse(String(data)) as Json));
  }

  static async connect(
    broker: string,
    member: {
      readonly meshId: string;
      readonly keys: Keys;
      readonly kind: "daemon" | "client";
      /** From the invite; undefined: whatever the broker proves to hold. */
      readonly brokerKey?: string;
    },
  ): Promise<PageClient> {
    const { meshId, keys, kind, brokerKey } = member;
    const socket = new WebSocket(`${broker.replace(/^http/, "ws")}/v1/connect`);
    await once(socket, "open");
    const nonce = randomBytes(32).toString("hex");
    socket.send(JSON.stringify({ type: "connect", protocol: 2, mesh_id: meshId, nonce }));
    const [data] = (await once(socket, "message")) as [Buffer];
    const proof = JSON.parse(String(data)) as Proof;
    if (proof.type !== "proof" || proof.protocol !== 2 || !isProven(proof, nonce, meshId, brokerKey)) {
      socket.close(1000);
      throw new Error("this is not our broker");
    }
    const refusal = refusalOf(proof.features);
    if (refusal !== undefined) {
      socket.close(refusal);
      throw new Error(`this broker is not for us: ${refusal}`);
    }
    const client = new PageClient(socket, proof.features);
    const session = [nonce, proof.nonce, meshId, proof.broker_key];
    client.#sign = (type, id, input) =>
      keys.sign("claudemesh-operation-1", ...session, type, String(id), canonical(input));
    const signature = keys.sign("claudemesh-hello-2", ...session, keys.publicKey, kind);
    const hello = { mesh_id: meshId, pubkey: keys.publicKey, kind, signature, agent: "page-client/1" };
    const { status } = await client.ask("hello", hello);
    if (status !== 200) throw new Error(`the hello was answered with ${status}`);
    return client;
  }

  ask(type: string, input: Json = {}): Promise<Reply> {
    const id = this.#nextId++;
    const signature = signedOperations.includes(type) ? { signature: this.#sign(type, id, input) } : {};
    this.#socket.send(JSON.stringify({ type, id, ...input, ...signature }));
    return new Promise((resolve) => this.#open.set(id, resolve));
  }

  send(clientMessageId: string, envelope: Envelope): Promise<Reply> {
    const { kind, ref, body, priority, replyToId, meta } = envelope;
    return this.ask("send", {
      client_message_id: clientMessageId,
      destination: { kind, ref },
      body,
      ...(priority === undefined ? {} : { priority }),
      ...(replyToId === undefined ? {} : { reply_to_id: replyToId }),
      ...(meta === undefined ? {} : { meta }),
    });
  }

  /** The next message that was pushed; pushes of other kinds are passed over. */
  async nextMessage(): Promise<Json> {
    for (;;) {
      const push = this.#pushes.shift();
      if (push?.type === "message") return push;
      if (push !== undefined) continue;
      await new Promise<void>((resolve) => {
        this.#pushed = resolve;
      });
    }
  }

  async close(): Promise<void> {
    this.#socket.close(1000);
    await this.closed;
  }

  #receive(frame: Json): void {
    if (frame.type === "reply") {
      this.#open.get(Number(frame.id))?.({ status: Number(frame.status), body: frame.body as Json });
      this.#open.delete(Number(frame.id));
      return;
    }
    this.#pushes.push(frame);
    this.#pushed?.();
  }
}
