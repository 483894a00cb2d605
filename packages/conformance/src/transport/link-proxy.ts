// Stands between a daemon and its broker, as a WebSocket server to one and a client to the other. It passes frames on
// until a scenario asks otherwise: to swallow one, to answer in place of the broker, to change what the broker sends,
// to cut the connection, or to be unreachable.
// Why: docs/decisions/0041.
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { AnnouncedFeatures } from "@claudemesh/protocol/features";
import { parseOwnJsonText, writeStrictJson } from "@claudemesh/protocol/json";
import { connectPath } from "@claudemesh/protocol/wire/frames";
import { proofBytes } from "@claudemesh/protocol/wire/signing";
import { WebSocket, WebSocketServer } from "ws";
import { needed } from "../frame/endings.ts";
import type { MemberKeys } from "./member-keys.ts";
import type { Frame } from "./socket-peer.ts";

/** `instead`: from the daemon, it is the answer that the daemon gets; from the broker, it replaces the frame. */
type Verdict = "pass" | "swallow" | "cut" | { readonly instead: object };

export type LinkRules = {
  /** For frames from the daemon. */
  readonly up?: (frame: Frame) => Verdict;
  /** For frames from the broker. */
  readonly down?: (frame: Frame) => Verdict;
  /**
   * The announcement in place of the broker's; needs the broker's key, because daemons trust only what it has signed.
   */
  readonly announce?: (features: Features) => object;
};

type Features = Readonly<Record<string, object>>;

type Pair = { readonly daemon: WebSocket; readonly broker: WebSocket };

export class LinkProxy {
  readonly url: string;
  readonly #server: Server;
  readonly #broker: string;
  readonly #sockets = new WebSocketServer({ noServer: true });
  readonly #pairs = new Set<Pair>();
  readonly #brokerKeys: MemberKeys | undefined;
  #rules: LinkRules = {};
  #away = false;
  /** The frames of the daemon, as text, since the last `forget`. */
  readonly sentByDaemon: string[] = [];
  /** The codes with which the daemon has closed. */
  readonly closes: number[] = [];

  private constructor(server: Server, broker: string, brokerKeys: MemberKeys | undefined) {
    this.#server = server;
    this.#brokerKeys = brokerKeys;
    this.#broker = `${broker.replace(/^http/, "ws").replace(/\/$/, "")}${connectPath}`;
    const { address, port } = server.address() as AddressInfo;
    this.url = `ws://${address.includes(":") ? `[${address}]` : address}:${port}`;
    server.on("upgrade", (request, socket, head) => {
      if (this.#away) socket.destroy();
      else this.#sockets.handleUpgrade(request, socket, head, (daemon) => this.#join(daemon));
    });
  }

  static async start(host: string, port: number, broker: string, brokerKeys?: MemberKeys): Promise<LinkProxy> {
    const server = createServer((_request, response) => response.writeHead(404).end());
    server.listen(port, host);
    await once(server, "listening");
    return new LinkProxy(server, broker, brokerKeys);
  }

  /** Throws Skipped where the proxy does not have the broker's key and cannot announce anything. */
  needKey(): void {
    needed(this.#brokerKeys, "--broker-key: the key that the broker signs what it announces with");
  }

  /** Holds until the next call; without rules everything passes. */
  rule(rules: LinkRules): void {
    this.#rules = rules;
  }

  /** Cuts open connections and accepts no new ones. */
  goAway(): void {
    this.#away = true;
    this.cut();
  }

  cut(): void {
    for (const { daemon, broker } of this.#pairs) {
      daemon.terminate();
      broker.terminate();
    }
  }

  /** Everything passes again. */
  reset(): void {
    this.#away = false;
    this.#rules = {};
    this.sentByDaemon.length = 0;
    this.closes.length = 0;
  }

  async stop(): Promise<void> {
    this.goAway();
    this.#server.close();
    await once(this.#server, "close");
  }

  #join(daemon: WebSocket): void {
    const broker = new WebSocket(this.#broker, { perMessageDeflate: false });
    const pair = { daemon, broker };
    this.#pairs.add(pair);
    const waiting: string[] = [];
    const toBroker = (text: string) => (broker.readyState === WebSocket.OPEN ? broker.send(text) : waiting.push(text));
    const end = () => {
      this.#pairs.delete(pair);
      daemon.terminate();
      broker.terminate();
    };
    broker.on("open", () => {
      for (const text of waiting) broker.send(text);
    });
    let connect: Frame = {};
    daemon.on("message", (data) => {
      const text = data.toString();
      this.sentByDaemon.push(text);
      if (connect.type === undefined) connect = readFrame(text);
      const verdict = this.#rules.up?.(readFrame(text)) ?? "pass";
      if (verdict === "pass") toBroker(text);
      else if (verdict === "cut") end();
      else if (verdict !== "swallow") daemon.send(writeStrictJson(verdict.instead));
    });
    broker.on("message", (data) => {
      const text = data.toString();
      const frame = readFrame(text);
      if (frame.type === "proof" && this.#rules.announce !== undefined) {
        daemon.send(writeStrictJson(this.#announceAnew(connect, frame, this.#rules.announce)));
        return;
      }
      const verdict = this.#rules.down?.(frame) ?? "pass";
      if (verdict === "pass") daemon.send(text);
      else if (verdict === "cut") end();
      else if (verdict !== "swallow") daemon.send(writeStrictJson(verdict.instead));
    });
    daemon.on("close", (code) => {
      this.closes.push(code);
      end();
    });
    // When the broker ends a connection, the daemon must see the same end.
    broker.on("close", (code, reason) => {
      if (code >= 1000 && code !== 1005 && code !== 1006) daemon.close(code, reason);
      else end();
    });
    for (const socket of [daemon, broker]) socket.on("error", end);
  }

  /** Signed over the same nonces, so that the broker accepts the hello that answers it. */
  #announceAnew(connect: Frame, proof: Frame, announce: NonNullable<LinkRules["announce"]>): object {
    const keys = needed(this.#brokerKeys, "--broker-key");
    const features = announce(proof.features as Features) as AnnouncedFeatures;
    const session = {
      client_nonce: String(connect.nonce),
      broker_nonce: String(proof.nonce),
      mesh_id: String(connect.mesh_id),
      broker_key: keys.pubkey,
    };
    return { ...proof, features, signature: keys.sign(proofBytes({ ...session, features })) };
  }
}

function readFrame(text: string): Frame {
  const value = parseOwnJsonText(text);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}
