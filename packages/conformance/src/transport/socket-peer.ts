// A WebSocket peer that sends whatever a scenario asks, valid or not, and keeps what comes back. No retries. Every wait
// has a time limit and ends in a Miss that says what it waited for.
import { randomBytes } from "node:crypto";
import { type JsonObject, parseOwnJsonText } from "@claudemesh/protocol/json";
import { connectPath, protocolVersion } from "@claudemesh/protocol/wire/frames";
import { isSignedOperation, type OperationName, operations } from "@claudemesh/protocol/wire/operations";
import { type ConnectionKind, type HelloSession, helloBytes, operationBytes } from "@claudemesh/protocol/wire/signing";
import { type RawData, WebSocket } from "ws";
import { Miss } from "../frame/endings.ts";
import { type Answer, expectAnswer } from "../frame/expect.ts";
import { show } from "../frame/pattern.ts";
import type { MemberKeys } from "./member-keys.ts";

export type Frame = Readonly<Record<string, unknown>>;
export type PeerIdentity = { readonly meshId: string; readonly keys: MemberKeys };
export type PeerClose = { readonly code: number; readonly reason: string };

const patienceMs = 15_000;

type Waiting = { readonly wants: (frame: Frame) => boolean; readonly resolve: (frame: Frame | undefined) => void };

export class SocketPeer {
  readonly #socket: WebSocket;
  readonly #arrived: Frame[] = [];
  readonly #waiting = new Set<Waiting>();
  readonly #closed: Promise<PeerClose>;
  #end: PeerClose | undefined;
  #nextId = 1;
  #lastSent = "(nothing was said yet)";
  proof: Frame = {};
  #session: HelloSession | undefined;
  #keys: MemberKeys | undefined;

  private constructor(url: string, unmasked: boolean) {
    this.#socket = new WebSocket(`${url.replace(/^http/, "ws").replace(/\/$/, "")}${connectPath}`, {
      perMessageDeflate: false,
      ...(unmasked ? { generateMask: (mask: Buffer) => mask.fill(0) } : {}),
    });
    // A close follows every error, and scenarios check the close.
    this.#socket.on("error", () => undefined);
    this.#socket.on("message", (data) => this.#receive(data));
    this.#closed = new Promise((resolve) => {
      this.#socket.on("close", (code, reason) => {
        this.#end = { code, reason: reason.toString() };
        for (const { resolve: end } of this.#waiting) end(undefined);
        resolve(this.#end);
      });
    });
  }

  /**
   * Resolves with the broker's proof for this mesh; the peer has not named a member yet. `unmasked`: a proxy can read
   * what this peer sends.
   */
  static async dial(url: string, mesh_id: string, { unmasked = false } = {}): Promise<SocketPeer> {
    const peer = await SocketPeer.open(url, unmasked);
    const client_nonce = randomBytes(32).toString("hex");
    peer.sendText(JSON.stringify({ type: "connect", protocol: protocolVersion, mesh_id, nonce: client_nonce }));
    peer.proof = await peer.next("the broker's proof", ({ type }) => type === "proof");
    const { nonce, broker_key } = peer.proof;
    peer.#session = { client_nonce, broker_nonce: String(nonce), mesh_id, broker_key: String(broker_key) };
    return peer;
  }

  /** A socket on which nothing has been sent. */
  static async open(url: string, unmasked = false): Promise<SocketPeer> {
    const peer = new SocketPeer(url, unmasked);
    await peer.#opened();
    return peer;
  }

  /** The nonces of this connection; a broker's proof and a member's hello are signed over them. */
  get session(): HelloSession {
    if (this.#session === undefined) throw new Error("the broker has not proven itself");
    return this.#session;
  }

  helloOf({ meshId, keys }: PeerIdentity, kind: ConnectionKind): Record<string, unknown> {
    this.#keys = keys;
    const fields = { ...this.session, mesh_id: meshId, pubkey: keys.pubkey, kind };
    return { mesh_id: meshId, pubkey: keys.pubkey, kind, signature: keys.sign(helloBytes(fields)) };
  }

  /** Signs those operations that need a signature of their own, unless the scenario provides one. */
  #signed(operation: string, input: object, id: number): object {
    const isSigned = Object.hasOwn(operations, operation) && isSignedOperation(operation as OperationName);
    if (!isSigned || this.#keys === undefined || "signature" in input) return input;
    const content = JSON.parse(JSON.stringify(input)) as JsonObject;
    const bytes = operationBytes({ ...this.session, operation, id, input: content });
    return { ...input, signature: this.#keys.sign(bytes) };
  }

  async sayHello(identity: PeerIdentity, kind: ConnectionKind): Promise<Answer> {
    return expectAnswer(await this.request("hello", this.helloOf(identity, kind)), 200);
  }

  /** Sends one request and waits for its reply. */
  request(type: string, input: object = {}): Promise<Answer> {
    const id = this.#nextId++;
    return this.requestText(JSON.stringify({ ...this.#signed(type, input, id), type, id }), id);
  }

  /** A frame with this connection's signature, to be sent on this connection or another. */
  signedText(operation: string, id: number, input: object): string {
    return JSON.stringify({ ...this.#signed(operation, input, id), type: operation, id });
  }

  /** The same with the exact text of the frame, which contains the id. */
  async requestText(text: string, id: number): Promise<Answer> {
    this.sendText(text);
    const reply = await this.next(`a reply to ${id}`, (frame) => frame.type === "reply" && frame.id === id);
    const body = typeof reply.body === "object" && reply.body !== null ? { ...reply.body } : {};
    return { status: Number(reply.status), body, request: `frame ${text.slice(0, 600)}` };
  }

  sendText(text: string): void {
    this.#lastSent = `frame ${text.slice(0, 600)}`;
    this.#socket.send(text);
  }

  sendBytes(bytes: Uint8Array): void {
    this.#lastSent = `binary frame ${Buffer.from(bytes).toString("hex")}`;
    this.#socket.send(bytes);
  }

  nextPush(): Promise<Frame> {
    return this.next("a pushed message", ({ type }) => type === "message");
  }

  /** Frames that arrived without a request. */
  get arrived(): readonly Frame[] {
    return this.#arrived;
  }

  async next(what: string, wants: (frame: Frame) => boolean): Promise<Frame> {
    const index = this.#arrived.findIndex(wants);
    const [found] = index < 0 ? [] : this.#arrived.splice(index, 1);
    const frame = found ?? (await this.#await(wants));
    if (frame !== undefined) return frame;
    const got = this.#end === undefined ? show(this.#arrived) : `a close with ${this.#end.code} ${this.#end.reason}`;
    throw new Miss({ expected: what, got, request: this.#lastSent });
  }

  /** How the broker ends this connection. */
  async closed(): Promise<PeerClose> {
    const timer = new AbortController();
    const bound = new Promise<undefined>((resolve) => {
      const timeout = setTimeout(() => resolve(undefined), patienceMs);
      timer.signal.addEventListener("abort", () => clearTimeout(timeout));
    });
    const close = await Promise.race([this.#closed, bound]);
    timer.abort();
    if (close !== undefined) return close;
    throw new Miss({ expected: "the connection's end", got: "it stays open", request: this.#lastSent });
  }

  /** Reads nothing until `resume`, like a stuck client. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends without a close frame, as a crash would; resolves when this side is closed. */
  drop(): Promise<PeerClose> {
    this.#socket.terminate();
    return this.#closed;
  }

  get lastSent(): string {
    return this.#lastSent;
  }

  async #opened(): Promise<void> {
    if (this.#socket.readyState === WebSocket.OPEN) return;
    const opened = new Promise<void>((resolve) => this.#socket.once("open", () => resolve()));
    await Promise.race([opened, this.closed()]);
  }

  #await(wants: (frame: Frame) => boolean): Promise<Frame | undefined> {
    if (this.#end !== undefined) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const finish = (frame: Frame | undefined) => {
        clearTimeout(timer);
        this.#waiting.delete(waiting);
        resolve(frame);
      };
      const timer = setTimeout(() => finish(undefined), patienceMs);
      const waiting: Waiting = { wants, resolve: finish };
      this.#waiting.add(waiting);
    });
  }

  #receive(data: RawData): void {
    const value = parseOwnJsonText(data.toString());
    const frame: Frame = typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
    const waiting = [...this.#waiting].find(({ wants }) => wants(frame));
    if (waiting === undefined) this.#arrived.push(frame);
    else waiting.resolve(frame);
  }
}
