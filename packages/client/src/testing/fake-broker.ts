// The other end of a link, for tests: a WebSocket server that does only what a test tells it to, frame by frame, so
// that it can also do what a real broker never should. Nothing here knows what an operation means.
import { createPublicKey, verify } from "node:crypto";
import type { AddressInfo } from "node:net";
import { announceFeatures } from "@claudemesh/protocol/features";
import { connectPath, protocolVersion } from "@claudemesh/protocol/wire/frames";
import { helloBytes } from "@claudemesh/protocol/wire/signing";
import { type WebSocket, WebSocketServer } from "ws";

export type Frame = Readonly<Record<string, unknown>>;

/** What arrives before anybody asks for it waits; who asks before it arrives waits. */
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

  /** Passes over what does not match. */
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

const testNonce = "a-nonce-for-tests";

export class FakePeer {
  readonly socket: WebSocket;
  readonly frames = new Queue<Frame>();
  readonly pings = new Queue<"ping">();
  /** The close code that the client sent, 1006 if it sent none. */
  readonly closeCode: Promise<number>;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => this.frames.push(JSON.parse(data.toString()) as Frame));
    socket.on("ping", () => this.pings.push("ping"));
    this.closeCode = new Promise((resolve) => socket.on("close", resolve));
  }

  send(frame: object): void {
    this.socket.send(JSON.stringify(frame));
  }

  challenge(features: object = workingFeatures, protocol: number = protocolVersion): void {
    this.send({ type: "challenge", protocol, nonce: testNonce, features });
  }

  reply(request: Frame, status: number, body: unknown): void {
    this.send({ type: "reply", id: request.id, status, body });
  }

  welcomeBody(hello: Frame): object {
    const member = { pubkey: hello.pubkey, name: "alice", role: "owner" };
    return { mesh: "acme", mesh_id: hello.mesh_id, member };
  }

  /** Challenge, hello with a checked signature, 200. */
  async welcome(): Promise<Frame> {
    this.challenge();
    const hello = await this.frames.next();
    if (!isSigned(hello)) throw new Error("the hello's signature is wrong");
    this.reply(hello, 200, this.welcomeBody(hello));
    return hello;
  }
}

function isSigned(hello: Frame): boolean {
  const { mesh_id, pubkey, kind, signature } = hello as Record<string, string>;
  if (mesh_id === undefined || pubkey === undefined || signature === undefined) return false;
  if (kind !== "daemon" && kind !== "client") return false;
  const spki = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), Buffer.from(pubkey, "hex")]);
  const key = createPublicKey({ key: spki, format: "der", type: "spki" });
  const bytes = helloBytes({ nonce: testNonce, mesh_id, pubkey, kind });
  return verify(null, bytes, key, Buffer.from(signature, "hex"));
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
