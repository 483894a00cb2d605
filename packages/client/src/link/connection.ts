// The life of one socket: connect, the broker's proof, negotiation, hello, requests and pushes, liveness, end. Nothing
// that the broker sends counts before it has proven its key. A connection ends exactly once and never comes back:
// link.ts reconnects, and ended-status.ts decides what an end means.
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { encodeHex } from "@claudemesh/protocol/encoding/hex";
import { MeshError } from "@claudemesh/protocol/errors";
import { closeCodes, type Negotiation, negotiate } from "@claudemesh/protocol/features";
import { type JsonObject, writeStrictJson } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import { closeReason } from "@claudemesh/protocol/wire/close-reason";
import {
  type ConnectFrame,
  type HelloFrame,
  type HelloReplyBody,
  type ProofFrame,
  type PushFrame,
  protocolVersion,
  type ReplyFrame,
} from "@claudemesh/protocol/wire/frames";
import {
  isSignedOperation,
  type OperationName,
  type OperationSpec,
  operations,
} from "@claudemesh/protocol/wire/operations";
import {
  type ConnectionKind,
  type HelloSession,
  helloBytes,
  operationBytes,
  proofBytes,
} from "@claudemesh/protocol/wire/signing";
import { refuseManyValues } from "@claudemesh/protocol/wire/value-count";
import { type RawData, WebSocket } from "ws";
import { isSignedBy } from "../keys/verify-signature.ts";
import type { BrokerTrust } from "./broker-trust.ts";
import {
  type EndedStatus,
  notOurBroker,
  statusAfterChallenge,
  statusAfterClose,
  statusAfterNegotiation,
  statusAfterRefusedHello,
} from "./ended-status.ts";
import { type IncomingFrame, readHelloReply, readIncomingFrame, usableFeatures } from "./incoming-frames.ts";
import type { LinkOutcome, MemberIdentity, RequestOptions } from "./link-contract.ts";
import { RequestTable } from "./request-table.ts";
import { describeSocketTrouble } from "./socket-trouble.ts";

export type ConnectionOptions = {
  /** The complete address, ws:// or wss://. */
  readonly socketUrl: string;
  readonly identity: MemberIdentity;
  readonly kind: ConnectionKind;
  readonly agent: string;
  readonly trust: BrokerTrust;
  /** From the first packet to the hello's answer. */
  readonly connectTimeoutMs: number;
  /** After this silence the broker is pinged; after as much silence again the connection ends. */
  readonly pingIdleMs: number;
};

type Negotiated = Omit<Extract<Negotiation, { ok: true }>, "ok">;

/** `isFirst`: no key was pinned before, and this one is pinned now. */
type ProvenKey = { readonly brokerKey: string; readonly isFirst: boolean };

/** Each is called synchronously, and none after `onEnd`. */
export type ConnectionEvents = {
  readonly onOnline: (hello: HelloReplyBody, negotiated: Negotiated, key: ProvenKey) => void;
  readonly onPush: (push: PushFrame) => void;
  readonly onEnd: (status: EndedStatus) => void;
};

const lateAnswersMax = 10_000;
const normalClosure = 1000;
/** How long a peer may take to answer our close frame before the socket is cut. */
const hangUpMs = 1_000;
const agentCharacters = 128;
const asText = { binary: false } as const;
const tooMuchBeforeHello = "the broker sent too much before it answered the hello";

type Phase =
  | { readonly name: "opening" }
  /** Waits for the broker's signature over this nonce. */
  | { readonly name: "proving"; readonly nonce: string }
  | {
      readonly name: "greeting";
      readonly helloId: number;
      readonly negotiated: Negotiated;
    }
  | { readonly name: "online" }
  | { readonly name: "ended" };

export class Connection {
  /** Settles when the socket is gone; never rejects. */
  readonly closed: Promise<void>;
  readonly #options: ConnectionOptions;
  readonly #events: ConnectionEvents;
  readonly #socket: WebSocket;
  readonly #requests = new RequestTable(lateAnswersMax);
  readonly #connectTimer: NodeJS.Timeout;
  readonly #livenessTimer: NodeJS.Timeout;
  #phase: Phase = { name: "opening" };
  /** The key that the broker must prove, as it was pinned when this connection began. */
  readonly #pinnedKey: string | undefined;
  /** The other side is our broker: it has proven the pinned key, or its key was pinned when it accepted this member. */
  #believed = false;
  #opened = false;
  #socketError: string | undefined;
  #pinged = false;
  /** The nonces of both sides, once the broker has proven its key. */
  #session: HelloSession | undefined;
  /** The socket under the WebSocket, to which it writes. */
  #wire: Socket | undefined;
  #gathering = false;
  #unprovenBytes = 0;

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    this.#options = options;
    this.#events = events;
    this.#pinnedKey = options.trust.key();
    this.#socket = new WebSocket(options.socketUrl, {
      perMessageDeflate: false,
      maxPayload: limits.largeFrameBytes,
      followRedirects: false,
    });
    this.closed = this.#listen(this.#socket);
    this.#connectTimer = setTimeout(() => this.#connectTimedOut(), options.connectTimeoutMs);
    this.#livenessTimer = setTimeout(() => this.#heardNothing(), options.pingIdleMs);
  }

  request(operation: OperationName, input: object, options: RequestOptions): Promise<LinkOutcome> {
    if (this.#phase.name !== "online" || this.#socket.readyState !== WebSocket.OPEN) {
      return Promise.resolve({ type: "not_sent" });
    }
    const id = this.#requests.nextId();
    // As bytes, because a frame made of bytes is written in one piece, and one made of text in two.
    const bytes = Buffer.from(
      writeStrictJson({ ...input, type: operation, id, ...this.#signatureOf(operation, input, id) }),
    );
    const maxBytes = frameBytesOf(operation);
    const refusal = refuseBytes(bytes, maxBytes) ?? refuseManyValues(bytes);
    if (refusal !== undefined) return Promise.resolve(answerOf(refusal));
    const outcome = this.#requests.wait(id, options);
    this.#gatherWrites();
    this.#socket.send(bytes, asText);
    return outcome;
  }

  bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** Ends the connection from this side, for good. */
  close(): void {
    this.#end({ state: "stopped", reason: "closed", detail: "closed by this side" }, normalClosure);
  }

  /** Requests of one turn leave in one write: a system call costs more than a frame. */
  #gatherWrites(): void {
    const wire = this.#wire;
    if (wire === undefined || this.#gathering) return;
    this.#gathering = true;
    wire.cork();
    process.nextTick(() => {
      this.#gathering = false;
      wire.uncork();
    });
  }

  #listen(socket: WebSocket): Promise<void> {
    socket.on("upgrade", (response) => {
      this.#wire = response.socket;
    });
    socket.on("open", () => {
      this.#opened = true;
      this.#wire?.on("data", this.#boundUnproven);
      this.#askForProof();
    });
    socket.on("message", (data, isBinary) => {
      this.#heard();
      this.#receive(data, isBinary);
    });
    socket.on("ping", () => this.#heard());
    socket.on("pong", () => this.#heard());
    // A close event always follows; the error says more about the cause.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#socketError = describeSocketTrouble(error);
      if (error.code?.startsWith("WS_ERR_")) this.#protocolError(this.#socketError);
    });
    return new Promise((resolve) => {
      socket.on("close", (code, reason) => {
        const error = this.#socketError;
        const end = { code, reason: reason.toString(), opened: this.#opened, error, believed: this.#believed };
        this.#end(statusAfterClose(end));
        resolve();
      });
    });
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#phase.name === "ended") return;
    if (this.#phase.name !== "online" && (data as Buffer).length > limits.helloFrameBytes) {
      this.#protocolError(tooMuchBeforeHello);
      return;
    }
    const frame: IncomingFrame = isBinary
      ? { type: "malformed", detail: "a frame is binary" }
      : readIncomingFrame(data.toString());
    switch (frame.type) {
      case "proof":
        this.#greet(frame.proof);
        break;
      case "challenge":
        if (this.#isUnproven) this.#end(statusAfterChallenge(this.#pinnedKey !== undefined), normalClosure);
        else this.#protocolError("a challenge came behind the proof");
        break;
      case "reply":
        this.#answer(frame.reply);
        break;
      case "push":
        if (this.#phase.name === "online") this.#events.onPush(frame.push);
        else this.#protocolError("a push came before the hello was answered");
        break;
      case "malformed":
        this.#protocolError(frame.detail);
        break;
      case "unknown":
        break;
    }
  }

  /**
   * Limits what is buffered before the hello is answered: the WebSocket itself would buffer up to the largest frame.
   */
  readonly #boundUnproven = (chunk: Buffer): void => {
    // Data that came with the hello's answer has been read already.
    if (this.#phase.name === "online") {
      this.#wire?.off("data", this.#boundUnproven);
      return;
    }
    this.#unprovenBytes += chunk.length;
    if (this.#unprovenBytes > limits.helloBytes) this.#protocolError(tooMuchBeforeHello);
  };

  get #isUnproven(): boolean {
    return this.#phase.name === "opening" || this.#phase.name === "proving";
  }

  #askForProof(): void {
    if (this.#phase.name !== "opening") return;
    const nonce = randomBytes(32).toString("hex");
    this.#phase = { name: "proving", nonce };
    const { meshId: mesh_id } = this.#options.identity;
    const connect: ConnectFrame = { type: "connect", protocol: protocolVersion, mesh_id, nonce };
    this.#socket.send(JSON.stringify(connect));
  }

  #greet(proof: ProofFrame): void {
    const phase = this.#phase;
    if (phase.name !== "proving") {
      this.#protocolError("a proof came that nothing asked for");
      return;
    }
    const session = this.#judgeProof(proof, phase.nonce);
    if (session === undefined) return;
    this.#believed = this.#pinnedKey !== undefined;
    this.#session = session;
    const features = usableFeatures(proof.features);
    const negotiation = negotiate(features);
    if (!negotiation.ok) {
      const status = statusAfterNegotiation(negotiation, features, this.#believed);
      this.#end(status, closeCodes[negotiation.code]);
      return;
    }
    const hello = this.#signHello(session);
    this.#phase = { name: "greeting", helloId: hello.id, negotiated: negotiation };
    this.#socket.send(JSON.stringify(hello));
  }

  /** The nonces of both sides, where the broker has signed them with the key that it must have. */
  #judgeProof(proof: ProofFrame, client_nonce: string): HelloSession | undefined {
    const { protocol, nonce: broker_nonce, broker_key, features, signature } = proof;
    const expected = this.#pinnedKey;
    const session = { client_nonce, broker_nonce, mesh_id: this.#options.identity.meshId, broker_key };
    if (protocol !== protocolVersion) {
      this.#protocolError(`the broker speaks protocol ${protocol}, this side ${protocolVersion}`);
    } else if (expected !== undefined && expected !== broker_key) {
      const detail = `it has the key ${broker_key}, and this home trusts ${expected}`;
      this.#end(notOurBroker(detail, { expected, seen: broker_key }), normalClosure);
    } else if (!isSignedBy(broker_key, proofBytes({ ...session, features }), signature)) {
      this.#end(notOurBroker(`it does not hold the key that it names (${broker_key})`), normalClosure);
    } else return session;
    return undefined;
  }

  /** The signature of an operation that the member signs one by one. */
  #signatureOf(operation: OperationName, input: object, id: number): { readonly signature?: string } {
    if (this.#session === undefined || !isSignedOperation(operation)) return {};
    // The content as the broker will read it: fields that JSON drops are not signed either.
    const content = JSON.parse(JSON.stringify(input)) as JsonObject;
    const bytes = operationBytes({ ...this.#session, operation, id, input: content });
    return { signature: encodeHex(this.#options.identity.sign(bytes)) };
  }

  #signHello(session: HelloSession): HelloFrame {
    const { identity, kind, agent } = this.#options;
    const { meshId: mesh_id, publicKey: pubkey } = identity;
    return {
      type: "hello",
      id: this.#requests.nextId(),
      mesh_id,
      pubkey,
      kind,
      signature: encodeHex(identity.sign(helloBytes({ ...session, pubkey, kind }))),
      agent: agent.slice(0, agentCharacters),
    };
  }

  #answer(reply: ReplyFrame): void {
    const phase = this.#phase;
    if (phase.name === "online") {
      this.#requests.answer(reply);
    } else if (phase.name === "greeting" && reply.id === phase.helloId) {
      this.#finishHello(reply, phase.negotiated, this.#session?.broker_key ?? "");
    } else {
      this.#protocolError("a reply came that nothing asked for");
    }
  }

  #finishHello(reply: ReplyFrame, negotiated: Negotiated, brokerKey: string): void {
    if (reply.status !== 200) {
      this.#end(statusAfterRefusedHello(reply.status, reply.body, this.#believed), normalClosure);
      return;
    }
    const { meshId, publicKey } = this.#options.identity;
    const hello = readHelloReply(reply.body);
    if (hello === undefined || hello.mesh_id !== meshId || hello.member.pubkey !== publicKey) {
      this.#protocolError("the hello's answer is not about this mesh and member");
      return;
    }
    const isFirst = !this.#believed;
    if (isFirst && !this.#options.trust.keep(brokerKey)) {
      this.#end(notOurBroker(`it has the key ${brokerKey}, and another one was kept in the meantime`), normalClosure);
      return;
    }
    this.#believed = true;
    clearTimeout(this.#connectTimer);
    this.#phase = { name: "online" };
    this.#events.onOnline(hello, negotiated, { brokerKey, isFirst });
  }

  #heard(): void {
    if (this.#phase.name === "ended") return;
    this.#pinged = false;
    this.#livenessTimer.refresh();
  }

  /** A half-open socket looks healthy until an answer is demanded. */
  #heardNothing(): void {
    if (this.#pinged) {
      // After a stall of this process the pong may be unread: sockets are read before immediates run.
      setImmediate(() => this.#expectHeard());
      return;
    }
    // While the socket is being opened, the connect time-out applies.
    if (this.#socket.readyState === WebSocket.OPEN) {
      this.#pinged = true;
      this.#socket.ping();
    }
    this.#livenessTimer.refresh();
  }

  #expectHeard(): void {
    if (this.#pinged) this.#end({ state: "offline", reason: "lost", detail: "the broker answers no pings" });
  }

  #connectTimedOut(): void {
    const waitedFor = this.#isUnproven ? "the connection and the broker's proof" : "the answer to the hello";
    const detail = `${waitedFor} did not come within ${this.#options.connectTimeoutMs} ms`;
    this.#end({ state: "offline", reason: "unreachable", detail });
  }

  #protocolError(detail: string): void {
    if (this.#isUnproven) {
      this.#end(notOurBroker(`${detail}, before it had proven its key`), closeCodes.protocol_error);
      return;
    }
    this.#end({ state: "offline", reason: "protocol_error", detail }, closeCodes.protocol_error);
  }

  /** Without a close code the socket is destroyed, because the peer is not there to read one. */
  #end(status: EndedStatus, closeCode?: number): void {
    if (this.#phase.name === "ended") return;
    this.#phase = { name: "ended" };
    clearTimeout(this.#connectTimer);
    clearTimeout(this.#livenessTimer);
    this.#hangUp(closeCode, status.detail);
    this.#requests.endAll();
    this.#events.onEnd(status);
  }

  #hangUp(closeCode: number | undefined, detail: string): void {
    if (closeCode === undefined || this.#socket.readyState === WebSocket.CONNECTING) {
      this.#socket.terminate();
      return;
    }
    this.#socket.close(closeCode, closeReason(detail));
    const timer = setTimeout(() => this.#socket.terminate(), hangUpMs);
    this.#socket.once("close", () => clearTimeout(timer));
  }
}

function frameBytesOf(operation: OperationName): number {
  const { large }: OperationSpec = operations[operation];
  return large?.bytes ?? limits.frameBytes;
}

function refuseBytes(bytes: Buffer, maxBytes: number): MeshError | undefined {
  if (bytes.length <= maxBytes) return undefined;
  return new MeshError("payload_too_large", `A frame is larger than ${maxBytes} bytes.`, { limit_bytes: maxBytes });
}

/** The refusal with which the broker would end the whole connection; giving it here keeps the other requests alive. */
function answerOf(refusal: MeshError): LinkOutcome {
  return { type: "answered", status: refusal.status, body: refusal.toBody() };
}
