// The wire over the WebSocket that browsers have, and Node too: challenge, signed hello, requests and pushes, and coming
// back with backoff. Uses nothing that a browser lacks.
import { encodeHex } from "@claudemesh/protocol/encoding/hex";
import { negotiate } from "@claudemesh/protocol/features";
import { parseOwnJsonText, StrictJsonError, writeStrictJson } from "@claudemesh/protocol/json";
import { type BackoffBounds, backoffDelayMs, defaultReconnect } from "@claudemesh/protocol/messages/backoff";
import { protocolVersion } from "@claudemesh/protocol/wire/frames";
import { helloBytes } from "@claudemesh/protocol/wire/signing";
import { brokerSocketUrl } from "../../broker/broker-url.ts";
import { statusAfterClose } from "../../link/ended-status.ts";
import { RequestTable } from "../../link/request-table.ts";
import type { SpaceRequestType, SpaceWire, WireOutcome } from "../space-wire.ts";
import { WireListeners } from "./wire-listeners.ts";

/** Who connects. WebCrypto signs in its own time. */
export type SocketIdentity = {
  readonly meshId: string;
  /** 32 bytes in lower-case hex. */
  readonly publicKey: string;
  readonly sign: (bytes: Uint8Array) => Promise<Uint8Array>;
};

export type SocketWireOptions = {
  /** ws://, wss://, http:// or https://; the path is ours. */
  readonly url: string;
  readonly identity: SocketIdentity;
  /** Program and version, for the broker's log. */
  readonly agent: string;
  readonly connectBackoff?: BackoffBounds;
  readonly connectTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  /** Silence after which the broker is asked something, and hung up on if it does not answer. */
  readonly pingIdleMs?: number;
};

type Fields = Readonly<Record<string, unknown>>;

const agentCharacters = 128;
/** Nobody here waits for answers that come too late. */
const lateAnswersMax = 0;
const normalClosure = 1000;
const timing = { connectTimeoutMs: 10_000, requestTimeoutMs: 30_000, pingIdleMs: 30_000 };

export function openSocketWire(options: SocketWireOptions): SpaceWire {
  return new SocketWire(options);
}

class SocketWire implements SpaceWire {
  readonly #options: SocketWireOptions;
  readonly #url: string;
  readonly #listeners = new WireListeners();
  #socket: WebSocket | undefined;
  #requests = new RequestTable(lateAnswersMax);
  #helloId: number | undefined;
  #isUp = false;
  #isClosed = false;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SocketWireOptions) {
    this.#options = options;
    this.#url = brokerSocketUrl(options.url);
    this.#connect();
  }

  readonly isUp = (): boolean => this.#isUp;

  readonly listen: SpaceWire["listen"] = (events) => this.#listeners.add(events);

  readonly request = (type: SpaceRequestType, input: object): Promise<WireOutcome> => {
    const socket = this.#socket;
    if (!this.#isUp || socket === undefined || socket.readyState !== WebSocket.OPEN) {
      return Promise.resolve({ type: "not_sent" });
    }
    const id = this.#requests.nextId();
    const outcome = this.#requests.wait(id, { timeoutMs: this.#options.requestTimeoutMs ?? timing.requestTimeoutMs });
    socket.send(writeStrictJson({ ...input, type, id }));
    return outcome;
  };

  readonly close = (): Promise<void> => {
    this.#isClosed = true;
    this.#end("closed: closed by this side", normalClosure);
    return Promise.resolve();
  };

  #connect(): void {
    const socket = new WebSocket(this.#url);
    let opened = false;
    this.#socket = socket;
    this.#requests = new RequestTable(lateAnswersMax);
    this.#helloId = undefined;
    this.#wait(this.#options.connectTimeoutMs ?? timing.connectTimeoutMs, () => this.#end());
    socket.addEventListener("open", () => {
      opened = true;
    });
    socket.addEventListener("message", ({ data }) => {
      if (this.#socket === socket) this.#receive(socket, data);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      if (this.#socket !== socket) return;
      const status = statusAfterClose({ code, reason, opened, error: undefined });
      const isRefused = status.reason === "unauthorized" || status.reason === "member_revoked";
      this.#end(status.state === "stopped" || isRefused ? `${status.reason}: ${status.detail}` : undefined);
    });
  }

  #receive(socket: WebSocket, data: unknown): void {
    const frame = typeof data === "string" ? parseFrame(data) : undefined;
    if (frame === undefined || typeof frame.type !== "string") {
      this.#end();
    } else if (frame.type === "challenge" && this.#helloId === undefined) {
      void this.#greet(socket, frame);
    } else if (frame.type === "reply") {
      this.#reply(frame);
    } else if (this.#isUp) {
      this.#heard();
      this.#listeners.push(frame as { readonly type: string });
    }
  }

  async #greet(socket: WebSocket, { protocol, nonce, features }: Fields): Promise<void> {
    const id = this.#requests.nextId();
    this.#helloId = id;
    const negotiation = negotiate((features ?? {}) as Parameters<typeof negotiate>[0]);
    if (protocol !== protocolVersion || typeof nonce !== "string" || !negotiation.ok) {
      const why = negotiation.ok ? "protocol" : negotiation.code;
      this.#end(`${why}: the broker and this client do not understand each other`);
      return;
    }
    const { meshId: mesh_id, publicKey: pubkey, sign } = this.#options.identity;
    const kind = "client";
    const signature = encodeHex(await sign(helloBytes({ nonce, mesh_id, pubkey, kind })));
    if (this.#socket !== socket || socket.readyState !== WebSocket.OPEN) return;
    const agent = this.#options.agent.slice(0, agentCharacters);
    socket.send(JSON.stringify({ type: "hello", id, mesh_id, pubkey, kind, signature, agent }));
  }

  #reply({ id, status, body }: Fields): void {
    if (typeof id !== "number" || typeof status !== "number") {
      this.#end();
    } else if (this.#isUp) {
      this.#heard();
      this.#requests.answer({ type: "reply", id, status, body });
    } else if (id === this.#helloId && status === 200) {
      this.#failures = 0;
      this.#isUp = true;
      this.#heard();
      this.#listeners.up();
    } else {
      const isRefused = status === 401 || status === 403;
      this.#end(isRefused ? "unauthorized: the broker refuses this member" : undefined);
    }
  }

  /** Browsers cannot ping: a small question does as well, and one that is not answered tells of a dead socket. */
  #heard(): void {
    const pingIdleMs = this.#options.pingIdleMs ?? timing.pingIdleMs;
    this.#wait(pingIdleMs, () => {
      this.#wait(pingIdleMs, () => this.#end());
      void this.request("space.list", { limit: 1 });
    });
  }

  /** There is one thing to wait for at a time: the connection, the next word, or the next try. */
  #wait(delayMs: number, then: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, delayMs);
  }

  #end(stopped?: string, closeCode = normalClosure): void {
    const socket = this.#socket;
    if (socket === undefined && stopped === undefined) return;
    this.#socket = undefined;
    this.#isUp = false;
    clearTimeout(this.#timer);
    socket?.close(closeCode);
    this.#requests.endAll();
    if (stopped === undefined && !this.#isClosed) {
      this.#failures += 1;
      const bounds = this.#options.connectBackoff ?? defaultReconnect;
      this.#wait(backoffDelayMs(this.#failures, Math.random(), bounds), () => this.#connect());
    }
    this.#listeners.down(stopped);
  }
}

function parseFrame(text: string): Fields | undefined {
  try {
    const value: unknown = parseOwnJsonText(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
  } catch (error) {
    if (error instanceof StrictJsonError) return undefined;
    throw error;
  }
}
