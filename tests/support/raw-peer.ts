// A WebSocket peer written against the protocol's page and nothing else: it signs with node:crypto, sends the frames it
// is told to, right or wrong, and keeps what comes back. No retries, no negotiation.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { HistoryItem } from "@claudemesh/protocol/wire/history-item";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import type { PeerKeys } from "./peer-keys.ts";

type Frame = Readonly<Record<string, unknown>>;

export type PeerReply = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };
export type PeerClose = { readonly code: number; readonly reason: string };
export type PeerMember = { readonly meshId: string; readonly keys: PeerKeys };

/** No mesh has this id, and no broker tells. */
const noMesh = "0198c0de-0000-7000-8000-000000000001";

const signedOperations = new Set([
  ...["token.create", "invite.create", "member.revoke", "member.role", "mesh.set"],
  ...["topic.delete", "webhook.create", "webhook.delete"],
]);

export class RawPeer {
  readonly socket: WebSocket;
  /** What the broker has proven itself with. */
  readonly proof: Frame;
  /** What both sides sign: the client's nonce, the broker's, the mesh, the broker's key. */
  readonly session: readonly string[];
  readonly closed: Promise<PeerClose>;
  readonly #arrived: Frame[] = [];
  readonly #waiting: {
    wants: (frame: Frame) => boolean;
    resolve: (frame: Frame) => void;
    reject: (why: Error) => void;
  }[] = [];
  #end: PeerClose | undefined;
  #keys: PeerKeys | undefined;
  #nextId = 1;

  private constructor(socket: WebSocket, proof: Frame, session: readonly string[]) {
    this.socket = socket;
    this.proof = proof;
    this.session = session;
    socket.on("message", (data) => this.#receive(readFrame(data as Buffer)));
    this.closed = new Promise((resolve) => {
      socket.on("close", (code, reason) => {
        this.#end = { code, reason: reason.toString() };
        for (const { reject } of this.#waiting.splice(0)) reject(this.#lost());
        resolve(this.#end);
      });
    });
  }

  /** Resolves when the broker has proven itself for this mesh; no member has been named. Dropped when the test ends. */
  static async dial(url: string, meshId = noMesh): Promise<RawPeer> {
    const socket = openSocket(url);
    await once(socket, "open");
    const nonce = randomBytes(32).toString("hex");
    socket.send(JSON.stringify({ type: "connect", protocol: 2, mesh_id: meshId, nonce }));
    const [data] = (await once(socket, "message")) as [Buffer];
    const proof = readFrame(data);
    return new RawPeer(socket, proof, [nonce, String(proof.nonce), meshId, String(proof.broker_key)]);
  }

  /** A socket on which neither side has said anything. */
  static async open(url: string): Promise<RawPeer> {
    const socket = openSocket(url);
    await once(socket, "open");
    return new RawPeer(socket, {}, []);
  }

  /** Dials and says hello as a member; fails unless the broker agrees. */
  static async connect(url: string, member: PeerMember, kind: "daemon" | "client"): Promise<RawPeer> {
    const peer = await RawPeer.dial(url, member.meshId);
    const reply = await peer.request("hello", peer.helloOf(member, kind));
    assert.equal(reply.status, 200, `the hello was refused: ${JSON.stringify(reply.body)}`);
    return peer;
  }

  /** The fields of a hello that answers this socket's proof. */
  helloOf({ meshId, keys }: PeerMember, kind: "daemon" | "client"): Record<string, unknown> {
    this.#keys = keys;
    const [clientNonce, brokerNonce, , brokerKey] = this.session;
    const fields = ["claudemesh-hello-2", clientNonce, brokerNonce, meshId, brokerKey, keys.pubkey, kind];
    const signature = keys.sign(Buffer.from(fields.join("\0")));
    return { mesh_id: meshId, pubkey: keys.pubkey, kind, signature };
  }

  /** With the member's signature over what is asked, where the operation has one and the test brings none. */
  #signed(type: string, input: object, id: number): object {
    if (!signedOperations.has(type) || this.#keys === undefined || "signature" in input) return input;
    return { ...input, signature: this.signatureOf(type, input, id) };
  }

  signatureOf(type: string, input: object, id: number, session = this.session): string {
    const fields = ["claudemesh-operation-1", ...session, type, String(id), canonical(input)];
    return this.#keys?.sign(Buffer.from(fields.join("\0"))) ?? "";
  }

  /** The id of the next request. */
  get nextId(): number {
    return this.#nextId;
  }

  /** Sends one request and waits for its reply. */
  async request(type: string, input: object = {}): Promise<PeerReply> {
    const id = this.#nextId++;
    this.sendText(JSON.stringify({ ...this.#signed(type, input, id), type, id }));
    const { status, body } = await this.next((frame) => frame.type === "reply" && frame.id === id);
    return { status: Number(status), body: body as PeerReply["body"] };
  }

  /** The next message that the broker pushes. */
  async nextPush(): Promise<HistoryItem> {
    const { type: _type, ...item } = await this.next((frame) => frame.type === "message");
    return item as unknown as HistoryItem;
  }

  async ack(...historyIds: number[]): Promise<void> {
    const { status } = await this.request("ack", { history_ids: historyIds });
    assert.equal(status, 200);
  }

  /** Frames that came and were not asked for yet. */
  get arrived(): readonly Frame[] {
    return this.#arrived;
  }

  next(wants: (frame: Frame) => boolean): Promise<Frame> {
    const index = this.#arrived.findIndex(wants);
    const [found] = index < 0 ? [] : this.#arrived.splice(index, 1);
    if (found !== undefined) return Promise.resolve(found);
    if (this.#end !== undefined) return Promise.reject(this.#lost());
    return new Promise((resolve, reject) => this.#waiting.push({ wants, resolve, reject }));
  }

  sendText(text: string): void {
    this.socket.send(text);
  }

  /** What the WebSocket writes to, for bytes that it would not write itself. */
  get stream(): Socket {
    return (this.socket as unknown as { _socket: Socket })._socket;
  }

  /** Ends the connection without a word, as a crash would; resolves when this side is closed. */
  drop(): Promise<PeerClose> {
    this.socket.terminate();
    return this.closed;
  }

  #receive(frame: Frame): void {
    const index = this.#waiting.findIndex(({ wants }) => wants(frame));
    const [waiting] = index < 0 ? [] : this.#waiting.splice(index, 1);
    if (waiting === undefined) this.#arrived.push(frame);
    else waiting.resolve(frame);
  }

  #lost(): Error {
    return new Error(`the connection ended with ${this.#end?.code} ${this.#end?.reason}`);
  }
}

/** RFC 8785 of a frame's plain fields: keys in order, no spaces. */
function canonical(input: object): string {
  const fields = Object.entries(input).filter(([, value]) => value !== undefined);
  return JSON.stringify(Object.fromEntries(fields.sort(([a], [b]) => (a < b ? -1 : 1))));
}

function openSocket(url: string): WebSocket {
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v1/connect`, { perMessageDeflate: false });
  onTestFinished(() => socket.terminate());
  // A close follows every error and is what tests look at.
  socket.on("error", () => undefined);
  return socket;
}

function readFrame(data: Buffer): Frame {
  return JSON.parse(data.toString()) as Frame;
}
