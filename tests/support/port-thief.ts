// A program that has taken a broker's port: it speaks the protocol without a fault, with a key of its own, and does
// to each daemon that connects what a test asks for.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { AnnouncedFeatures } from "@claudemesh/protocol/features";
import { proofBytes } from "@claudemesh/protocol/wire/signing";
import { type WebSocket, WebSocketServer } from "ws";
import type { PeerKeys } from "./peer-keys.ts";

type Frame = Readonly<Record<string, unknown>>;

/** One connection to the thief. */
export class Victim {
  readonly socket: WebSocket;
  readonly heard: Frame[] = [];
  readonly #keys: PeerKeys;
  #waiting: (() => void) | undefined;
  #read = 0;

  constructor(socket: WebSocket, keys: PeerKeys) {
    this.socket = socket;
    this.#keys = keys;
    socket.on("error", () => undefined);
    socket.on("message", (data) => {
      this.heard.push(JSON.parse(String(data)) as Frame);
      this.#waiting?.();
    });
  }

  async next(): Promise<Frame> {
    for (;;) {
      const frame = this.heard[this.#read];
      if (frame !== undefined) {
        this.#read++;
        return frame;
      }
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
  }

  send(frame: object): void {
    this.socket.send(JSON.stringify(frame));
  }

  /** Answers the first frame with a proof by the thief's key; `change` comes on top of what is signed. */
  async prove(features: AnnouncedFeatures, change: object = {}): Promise<void> {
    const { nonce, mesh_id } = await this.next();
    const broker_key = this.#keys.pubkey;
    const broker_nonce = "0e".repeat(32);
    const session = { client_nonce: String(nonce), broker_nonce, mesh_id: String(mesh_id), broker_key };
    const signature = this.#keys.sign(proofBytes({ ...session, features }));
    this.send({ type: "proof", protocol: 2, nonce: broker_nonce, broker_key, features, signature, ...change });
  }

  /** Answers the hello as if it were a member's, no matter who says it. */
  async welcome(): Promise<void> {
    const { id, mesh_id, pubkey } = await this.next();
    const member = { pubkey, name: "alice", role: "owner" };
    this.send({ type: "reply", id, status: 200, body: { mesh: "acme", mesh_id, member } });
  }

  /** Says to every send that it is stored, and to everything else that there is nothing. */
  async answerAll(): Promise<never> {
    for (let history_id = 1; ; history_id++) {
      const { id, type, client_message_id } = await this.next();
      const stored = { broker_message_id: `stored-${history_id}`, client_message_id, history_id, duplicate: false };
      const [status, body] = type === "send" ? [201, stored] : [200, { items: [], next_cursor: null }];
      this.send({ type: "reply", id, status, body });
    }
  }
}

export class PortThief {
  readonly victims: Victim[] = [];
  readonly #server: WebSocketServer;

  private constructor(server: WebSocketServer, keys: PeerKeys, behave: (victim: Victim) => unknown) {
    this.#server = server;
    server.on("connection", (socket) => {
      const victim = new Victim(socket, keys);
      this.victims.push(victim);
      void behave(victim);
    });
  }

  static async start(port: number, keys: PeerKeys, behave: (victim: Victim) => unknown): Promise<PortThief> {
    const server = new WebSocketServer({ host: "127.0.0.1", port, path: "/v1/connect" });
    await once(server, "listening");
    return new PortThief(server, keys, behave);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  stop(): Promise<void> {
    for (const socket of this.#server.clients) socket.terminate();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
