// The wire over the WebSocket of browsers, which Node has too: connect, the broker's proof, signed hello, requests and
// pushes, and reconnecting with backoff. It uses nothing that a browser lacks.
import { decodeHex, encodeHex } from "@claudemesh/protocol/encoding/hex";
import { type AnnouncedFeatures, negotiate } from "@claudemesh/protocol/features";
import { parseOwnJsonText, StrictJsonError, writeStrictJson } from "@claudemesh/protocol/json";
import { type BackoffBounds, backoffDelayMs, defaultReconnect } from "@claudemesh/protocol/messages/backoff";
import { limits } from "@claudemesh/protocol/messages/limits";
import { closeReason } from "@claudemesh/protocol/wire/close-reason";
import { protocolVersion } from "@claudemesh/protocol/wire/frames";
import { type HelloSession, helloBytes, proofBytes } from "@claudemesh/protocol/wire/signing";
import { refuseManyValues } from "@claudemesh/protocol/wire/value-count";
import { brokerSocketUrl } from "../../broker/broker-url.ts";
import { BrokerRoute, hastyConnectMs, hopMs } from "../../link/broker-route.ts";
import { type BrokerTrust, trustInMemory } from "../../link/broker-trust.ts";
import { statusAfterClose } from "../../link/ended-status.ts";
import { RequestTable } from "../../link/request-table.ts";
import type { SealingIdentity } from "../../seal/outgoing.ts";
import type { SpaceRequestType, SpaceWire, WireOutcome } from "../space-wire.ts";
import { WireListeners } from "./wire-listeners.ts";

/** The member that connects. WebCrypto signs asynchronously. */
export type SocketIdentity = SealingIdentity & {
  readonly meshId: string;
  /** 32 bytes in lower-case hex. */
  readonly publicKey: string;
  readonly sign: (bytes: Uint8Array) => Promise<Uint8Array>;
};

export type SocketWireOptions = {
  /** ws://, wss://, http:// or https://; the wire adds the path. */
  readonly url: string;
  /**
   * Other brokers of the same store, used while the first cannot be reached. The brokers themselves may announce more.
   */
  readonly brokers?: readonly string[];
  readonly identity: SocketIdentity;
  /** Program and version, for the broker's log. */
  readonly agent: string;
  /** The broker's key, from the invite or from `[mesh]` in config.toml. Absent: the first proven key is trusted. */
  readonly brokerKey?: string;
  readonly connectBackoff?: BackoffBounds;
  readonly connectTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  /** After this silence a request is sent to the broker, and the connection is closed if it gets no answer. */
  readonly pingIdleMs?: number;
};

type Fields = Readonly<Record<string, unknown>>;

const agentCharacters = 128;
/** This wire has no use for answers after their time-out. */
const lateAnswersMax = 0;
const normalClosure = 1000;
const timing = { connectTimeoutMs: 10_000, requestTimeoutMs: 30_000, pingIdleMs: 30_000 };

export function openSocketWire(options: SocketWireOptions): SpaceWire {
  return new SocketWire(options);
}

class SocketWire implements SpaceWire {
  readonly #options: SocketWireOptions;
  readonly #route: BrokerRoute;
  readonly #listeners = new WireListeners();
  #socket: WebSocket | undefined;
  #requests = new RequestTable(lateAnswersMax);
  readonly #trust: BrokerTrust;
  #nonce: string | undefined;
  #session: HelloSession | undefined;
  #helloId: number | undefined;
  /** The broker has proven the key that it must have. */
  #isBelieved = false;
  #isUp = false;
  #isClosed = false;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: SocketWireOptions) {
    this.#options = options;
    this.#trust = trustInMemory(options.brokerKey);
    this.#route = new BrokerRoute(options.url, options.brokers);
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
    const text = writeStrictJson({ ...input, type, id });
    // The broker would refuse it by closing the connection, and sending it again would close the next one.
    const refusal = text.length < limits.jsonMembers ? undefined : refuseManyValues(new TextEncoder().encode(text));
    if (refusal !== undefined) {
      return Promise.resolve({ type: "answered", status: refusal.status, body: refusal.toBody() });
    }
    const outcome = this.#requests.wait(id, { timeoutMs: this.#options.requestTimeoutMs ?? timing.requestTimeoutMs });
    socket.send(text);
    return outcome;
  };

  readonly close = (): Promise<void> => {
    this.#isClosed = true;
    this.#end("closed: closed by this side");
    return Promise.resolve();
  };

  #connect(): void {
    const socket = new WebSocket(brokerSocketUrl(this.#route.current));
    let opened = false;
    this.#socket = socket;
    this.#requests = new RequestTable(lateAnswersMax);
    this.#helloId = undefined;
    this.#session = undefined;
    this.#isBelieved = false;
    const { connectTimeoutMs = timing.connectTimeoutMs } = this.#options;
    const isHasty = this.#route.others.length > 0 && !this.#route.isRoundOver;
    this.#wait(isHasty ? Math.min(connectTimeoutMs, hastyConnectMs) : connectTimeoutMs, () =>
      this.#end(undefined, "the connection and the hello took too long"),
    );
    socket.addEventListener("open", () => {
      opened = true;
      if (this.#socket !== socket) return;
      this.#nonce = encodeHex(crypto.getRandomValues(new Uint8Array(32)));
      const { meshId: mesh_id } = this.#options.identity;
      socket.send(JSON.stringify({ type: "connect", protocol: protocolVersion, mesh_id, nonce: this.#nonce }));
    });
    socket.addEventListener("message", ({ data }) => {
      if (this.#socket === socket) this.#receive(socket, data);
    });
    socket.addEventListener("close", ({ code, reason }) => {
      if (this.#socket !== socket) return;
      const status = statusAfterClose({ code, reason, opened, error: undefined, believed: this.#isBelieved });
      const isRefused = status.reason === "unauthorized" || status.reason === "member_revoked";
      this.#end(status.state === "stopped" || isRefused ? `${status.reason}: ${status.detail}` : undefined);
    });
  }

  #receive(socket: WebSocket, data: unknown): void {
    // A broker that has not answered the hello has no long frame to send.
    const fits = typeof data === "string" && (this.#isUp || data.length <= limits.helloFrameBytes);
    const frame = fits ? parseFrame(data) : undefined;
    if (frame === undefined || typeof frame.type !== "string") {
      this.#end(
        undefined,
        fits ? "the frame could not be understood" : "the broker sent too much before it answered the hello",
      );
    } else if (frame.type === "proof" && this.#nonce !== undefined) {
      void this.#greet(socket, frame, this.#nonce);
      this.#nonce = undefined;
    } else if (this.#session === undefined) {
      // An unknown kind of frame is ignored; before the proof no other frame means anything.
      if (["challenge", "reply"].includes(frame.type)) this.#end(undefined, "the broker has not proven its key");
    } else if (frame.type === "reply") {
      this.#reply(frame);
    } else if (this.#isUp) {
      this.#heard();
      if (frame.type === "brokers_changed") this.#learn(frame);
      this.#listeners.push(frame as { readonly type: string });
    }
  }

  /**
   * A peer that cannot prove the key is not our broker: this side reconnects later, and ignores everything that it
   * sends.
   */
  async #greet(socket: WebSocket, proof: Fields, client_nonce: string): Promise<void> {
    const isCurrent = () => this.#socket === socket && socket.readyState === WebSocket.OPEN;
    const { meshId: mesh_id, publicKey: pubkey, sign } = this.#options.identity;
    const pinned = this.#trust.key();
    const { protocol, nonce, broker_key, signature, features } = proof;
    const session = { client_nonce, broker_nonce: String(nonce), mesh_id, broker_key: String(broker_key) };
    const isProven =
      protocol === protocolVersion &&
      isHex(nonce, 64) &&
      (pinned === undefined || pinned === broker_key) &&
      (await isProof({ ...session, features: (features ?? {}) as AnnouncedFeatures }, signature));
    if (!isCurrent()) return;
    if (!isProven) {
      this.#end(undefined, "the broker has not proven the key that this client trusts");
      return;
    }
    this.#session = session;
    this.#isBelieved = pinned !== undefined;
    const negotiation = negotiate((features ?? {}) as AnnouncedFeatures);
    if (!negotiation.ok) {
      const why = `${negotiation.code}: the broker and this client do not understand each other`;
      this.#end(this.#isBelieved ? why : undefined, why);
      return;
    }
    const id = this.#requests.nextId();
    this.#helloId = id;
    const kind = "client";
    const signed = encodeHex(await sign(helloBytes({ ...session, pubkey, kind })));
    if (!isCurrent()) return;
    const agent = this.#options.agent.slice(0, agentCharacters);
    socket.send(JSON.stringify({ type: "hello", id, mesh_id, pubkey, kind, signature: signed, agent }));
  }

  #reply({ id, status, body }: Fields): void {
    if (typeof id !== "number" || typeof status !== "number") {
      this.#end(undefined, "the frame could not be understood");
    } else if (this.#isUp) {
      this.#heard();
      this.#requests.answer({ type: "reply", id, status, body });
    } else if (id === this.#helloId && status === 200) {
      this.#trust.keep(this.#session?.broker_key ?? "");
      this.#isBelieved = true;
      this.#failures = 0;
      this.#route.worked();
      this.#learn(body);
      this.#isUp = true;
      this.#heard();
      this.#listeners.up();
    } else {
      const isRefused = status === 401 || status === 403;
      this.#end(
        isRefused ? "unauthorized: the broker refuses this member" : undefined,
        `the hello was answered with ${status}`,
      );
    }
  }

  #learn(said: unknown): void {
    const { brokers } = (said ?? {}) as Fields;
    if (Array.isArray(brokers)) this.#route.learn(brokers.filter((url) => typeof url === "string"));
  }

  /** Browsers cannot ping, so a small request is sent instead; a missing answer shows a dead socket. */
  #heard(): void {
    const pingIdleMs = this.#options.pingIdleMs ?? timing.pingIdleMs;
    this.#wait(pingIdleMs, () => {
      this.#wait(pingIdleMs, () => this.#end(undefined, "the broker answers no questions"));
      void this.request("space.list", { limit: 1 });
    });
  }

  /** There is one thing to wait for at a time: the connection, the next frame, or the next try. */
  #wait(delayMs: number, then: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(then, delayMs);
  }

  /** `why` is for the other side, as the text of the close frame. */
  #end(stopped?: string, why = stopped ?? "this client connects anew"): void {
    const socket = this.#socket;
    if (socket === undefined && stopped === undefined) return;
    this.#socket = undefined;
    this.#isUp = false;
    clearTimeout(this.#timer);
    socket?.close(normalClosure, closeReason(why));
    this.#requests.endAll();
    if (stopped === undefined && !this.#isClosed) {
      const isRoundOver = this.#route.failed();
      if (isRoundOver) this.#failures += 1;
      const bounds = this.#options.connectBackoff ?? defaultReconnect;
      const delayMs = isRoundOver ? backoffDelayMs(this.#failures, Math.random(), bounds) : Math.random() * hopMs;
      this.#wait(delayMs, () => this.#connect());
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

function isHex(value: unknown, characters: number): value is string {
  return typeof value === "string" && value.length === characters && /^[0-9a-f]+$/.test(value);
}

/** Whether the broker that the proof names has signed it. */
async function isProof(proof: Parameters<typeof proofBytes>[0], signature: unknown): Promise<boolean> {
  if (!isHex(proof.broker_key, 64) || !isHex(signature, 128)) return false;
  const [key, signed] = [decodeHex(proof.broker_key), decodeHex(signature)];
  if (key === undefined || signed === undefined) return false;
  try {
    const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", imported, signed, proofBytes(proof) as Uint8Array<ArrayBuffer>);
  } catch {
    // Some browsers refuse some curve points: a proof that cannot be checked is no proof.
    return false;
  }
}
