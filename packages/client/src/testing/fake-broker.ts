// The other end of a link, for tests: a WebSocket server that does only what a test asks of it, frame by frame, so that
// it can also do what a real broker never should. It knows nothing of the meaning of operations.
import type { AddressInfo } from "node:net";
import { encodeHex } from "@claudemesh/protocol/encoding/hex";
import { type AnnouncedFeatures, announceFeatures } from "@claudemesh/protocol/features";
import { connectPath, protocolVersion } from "@claudemesh/protocol/wire/frames";
import { type HelloSession, helloBytes, proofBytes } from "@claudemesh/protocol/wire/signing";
import { type WebSocket, WebSocketServer } from "ws";
import { generateMemberKeys, signerOf } from "../keys/member-keys.ts";
import { isSignedBy } from "../keys/verify-signature.ts";

export type Frame = Readonly<Record<string, unknown>>;

/** An item that arrives before a reader waits for it is kept; a reader that comes before an item waits. */
export class Queue<T> {
  readonly #items: T[] = [];
  readonly #takers: ((item: T) => void)[] = [];

  push(item: T): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#items.push(item);
    else taker(item);
  }

  next(): Promise<T> {
    const [item] = this.#items.splice(0, 1);
    return item === undefined ? new Promise((resolve) => this.#takers.push(resolve)) : Promise.resolve(item);
  }

  /** Skips items that do not match. */
  async nextWhere(matches: (item: T) => boolean): Promise<T> {
    for (;;) {
      const item = await this.next();
      if (matches(item)) return item;
    }
  }
}

export const workingFeatures = announceFeatures({
  dedupe: { mode: "retention_scoped", dedupe_retention_days: 365 },
  inlineBytes: 65_536,
  connectionPolicy: "prefer_newest",
});

const testNonce = "0e".repeat(32);
/** The key that every fake broker has, unless a test gives it another one. */
const fakeBrokerKeys = generateMemberKeys();
export const fakeBrokerKey = fakeBrokerKeys.ed25519.public_key;

export class FakePeer {
  readonly socket: WebSocket;
  readonly frames = new Queue<Frame>();
  readonly pings = new Queue<"ping">();
  /** How many frames have arrived, whether or not the test has read them. */
  received = 0;
  /** Every frame that was sent, in order. */
  readonly sent: object[] = [];
  /** The close code that the client sent, 1006 if it sent none. */
  readonly closeCode: Promise<number>;
  readonly closeReason: Promise<string>;
  #session: HelloSession | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      this.received++;
      this.frames.push(JSON.parse(data.toString()) as Frame);
    });
    socket.on("ping", () => this.pings.push("ping"));
    this.closeCode = new Promise((resolve) => socket.on("close", resolve));
    this.closeReason = new Promise((resolve) => socket.on("close", (_, reason) => resolve(reason.toString())));
  }

  /** The nonces of the connection, once this side has proven its key. */
  get session(): HelloSession {
    if (this.#session === undefined) throw new Error("nothing has been proven yet");
    return this.#session;
  }

  send(frame: object): void {
    this.sent.push(frame);
    this.socket.send(JSON.stringify(frame));
  }

  /** Reads the client's first frame and answers it with a proof; `change` overrides fields of the correct proof. */
  async prove(features: object = workingFeatures, { keys = fakeBrokerKeys, change = {} } = {}): Promise<Frame> {
    const connect = await this.frames.next();
    if (connect.type !== "connect") throw new Error(`the first frame is no connect, but ${String(connect.type)}`);
    const broker_key = keys.ed25519.public_key;
    const [client_nonce, mesh_id] = [String(connect.nonce), String(connect.mesh_id)];
    const session = { client_nonce, broker_nonce: testNonce, mesh_id, broker_key };
    this.#session = session;
    // As the client will read it: fields that JSON drops are not signed either.
    const announced = JSON.parse(JSON.stringify(features)) as AnnouncedFeatures;
    const signature = encodeHex(signerOf(keys)(proofBytes({ ...session, features: announced })));
    const proof = { type: "proof", protocol: protocolVersion, nonce: testNonce, broker_key, features, signature };
    this.send({ ...proof, ...change });
    return connect;
  }

  reply(request: Frame, status: number, body: unknown): void {
    this.send({ type: "reply", id: request.id, status, body });
  }

  welcomeBody(hello: Frame): object {
    const member = { pubkey: hello.pubkey, name: "alice", role: "owner" };
    return { mesh: "acme", mesh_id: hello.mesh_id, member };
  }

  /** Proof, hello with a checked signature, 200. */
  async welcome(): Promise<Frame> {
    await this.prove();
    const hello = await this.frames.next();
    if (!isSigned(hello, this.#session)) throw new Error("the hello's signature is wrong");
    this.reply(hello, 200, this.welcomeBody(hello));
    return hello;
  }
}

function isSigned(hello: Frame, session: HelloSession | undefined): boolean {
  const { mesh_id, pubkey, kind, signature } = hello as Record<string, string>;
  if (session === undefined || mesh_id !== session.mesh_id || pubkey === undefined) return false;
  if (kind !== "daemon" && kind !== "client") return false;
  return isSignedBy(pubkey, helloBytes({ ...session, pubkey, kind }), signature ?? "");
}

export class FakeBroker {
  readonly url: string;
  readonly peers = new Queue<FakePeer>();
  readonly #server: WebSocketServer;
  #connections = 0;

  static start(port = 0): Promise<FakeBroker> {
    return new Promise((resolve, reject) => {
      const server = new WebSocketServer({ host: "127.0.0.1", port, path: connectPath });
      server.once("error", reject);
      server.once("listening", () => resolve(new FakeBroker(server)));
    });
  }

  private constructor(server: WebSocketServer) {
    this.#server = server;
    this.url = `ws://127.0.0.1:${this.port}`;
    server.on("connection", (socket) => {
      this.#connections++;
      this.peers.push(new FakePeer(socket));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** How many sockets were ever opened. */
  get connections(): number {
    return this.#connections;
  }

  /** The next connection, with its hello done. */
  async welcomeNext(): Promise<FakePeer> {
    const peer = await this.peers.next();
    await peer.welcome();
    return peer;
  }

  stop(): Promise<void> {
    for (const socket of this.#server.clients) socket.terminate();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
