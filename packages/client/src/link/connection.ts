// One socket's life: connect, challenge, negotiation, hello, requests and pushes, liveness, end. It ends exactly once
// and never comes back; reconnecting is link.ts's business, what an end means is decided in ended-status.ts.
import type { Socket } from "node:net";
import { encodeHex } from "@claudemesh/protocol/encoding/hex";
import { MeshError } from "@claudemesh/protocol/errors";
import { closeCodes, type NegotiatedFeatures, negotiate } from "@claudemesh/protocol/features";
import { writeStrictJson } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import {
  type ChallengeFrame,
  type HelloFrame,
  type HelloReplyBody,
  type PushFrame,
  protocolVersion,
  type ReplyFrame,
} from "@claudemesh/protocol/wire/frames";
import { type OperationName, type OperationSpec, operations } from "@claudemesh/protocol/wire/operations";
import { type ConnectionKind, helloBytes } from "@claudemesh/protocol/wire/signing";
import { type RawData, WebSocket } from "ws";
import { type EndedStatus, statusAfterClose, statusAfterNegotiation, statusAfterRefusedHello } from "./ended-status.ts";
import { type IncomingFrame, readHelloReply, readIncomingFrame } from "./incoming-frames.ts";
import type { LinkOutcome, MemberIdentity, RequestOptions } from "./link-contract.ts";
import { RequestTable } from "./request-table.ts";

export type ConnectionOptions = {
  /** The whole address, ws:// or wss://. */
  readonly socketUrl: string;
  readonly identity: MemberIdentity;
  readonly kind: ConnectionKind;
  readonly agent: string;
  /** From the first packet to the hello's answer. */
  readonly connectTimeoutMs: number;
  /** Silence after which the broker is pinged; as much silence again ends the connection. */
  readonly pingIdleMs: number;
};

/** Each is called synchronously; none after `onEnd`. */
export type ConnectionEvents = {
  readonly onOnline: (hello: HelloReplyBody, features: NegotiatedFeatures) => void;
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
  | { readonly name: "greeting"; readonly helloId: number; readonly features: NegotiatedFeatures }
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
  #opened = false;
  #socketError: string | undefined;
  #pinged = false;
  /** What the socket writes to. */
  #wire: Socket | undefined;
  #gathering = false;
  #unprovenBytes = 0;

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    this.#options = options;
    this.#events = events;
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
    // As bytes, because a frame made of them is written in one piece, and one made of a text in two.
    const bytes = Buffer.from(writeStrictJson({ ...input, type: operation, id }));
    const maxBytes = frameBytesOf(operation);
    if (bytes.length > maxBytes) return Promise.resolve(oversizeAnswer(maxBytes));
    const outcome = this.#requests.wait(id, options);
    this.#gatherWrites();
    this.#socket.send(bytes, asText);
    return outcome;
  }

  bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  /** Ends the connection from our side, for good. */
  close(): void {
    this.#end({ state: "stopped", reason: "closed", detail: "closed by this side" }, normalClosure);
  }

  /** What is asked in one turn leaves in one write: a call of the system costs more than a frame. */
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
    });
    socket.on("message", (data, isBinary) => {
      this.#heard();
      this.#receive(data, isBinary);
    });
    socket.on("ping", () => this.#heard());
    socket.on("pong", () => this.#heard());
    // A close event always follows; the error says more about why.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#socketError = error.message === "" ? (error.code ?? error.name) : error.message;
      if (error.code?.startsWith("WS_ERR_")) this.#protocolError(this.#socketError);
    });
    return new Promise((resolve) => {
      socket.on("close", (code, reason) => {
        const error = this.#socketError;
        this.#end(statusAfterClose({ code, reason: reason.toString(), opened: this.#opened, error }));
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
      case "challenge":
        this.#greet(frame.challenge);
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

  /** Of what comes before the hello is answered little is kept: the WebSocket would gather the largest frame of all. */
  readonly #boundUnproven = (chunk: Buffer): void => {
    // What came with the hello's answer has been read already.
    if (this.#phase.name === "online") {
      this.#wire?.off("data", this.#boundUnproven);
      return;
    }
    this.#unprovenBytes += chunk.length;
    if (this.#unprovenBytes > limits.helloBytes) this.#protocolError(tooMuchBeforeHello);
  };

  #greet(challenge: ChallengeFrame): void {
    if (this.#phase.name !== "opening") {
      this.#protocolError("a second challenge came");
      return;
    }
    if (challenge.protocol !== protocolVersion) {
      this.#protocolError(`the broker speaks protocol ${challenge.protocol}, this side ${protocolVersion}`);
      return;
    }
    const negotiation = negotiate(challenge.features);
    if (!negotiation.ok) {
      this.#end(statusAfterNegotiation(negotiation, challenge.features), closeCodes[negotiation.code]);
      return;
    }
    const hello = this.#signHello(challenge.nonce);
    this.#phase = { name: "greeting", helloId: hello.id, features: negotiation.features };
    this.#socket.send(JSON.stringify(hello));
  }

  #signHello(nonce: string): HelloFrame {
    const { identity, kind, agent } = this.#options;
    const { meshId: mesh_id, publicKey: pubkey } = identity;
    return {
      type: "hello",
      id: this.#requests.nextId(),
      mesh_id,
      pubkey,
      kind,
      signature: encodeHex(identity.sign(helloBytes({ nonce, mesh_id, pubkey, kind }))),
      agent: agent.slice(0, agentCharacters),
    };
  }

  #answer(reply: ReplyFrame): void {
    const phase = this.#phase;
    if (phase.name === "online") {
      this.#requests.answer(reply);
    } else if (phase.name === "greeting" && reply.id === phase.helloId) {
      this.#finishHello(reply, phase.features);
    } else {
      this.#protocolError("a reply came that nothing asked for");
    }
  }

  #finishHello(reply: ReplyFrame, features: NegotiatedFeatures): void {
    if (reply.status !== 200) {
      this.#end(statusAfterRefusedHello(reply.status, reply.body), normalClosure);
      return;
    }
    const { meshId, publicKey } = this.#options.identity;
    const hello = readHelloReply(reply.body);
    if (hello === undefined || hello.mesh_id !== meshId || hello.member.pubkey !== publicKey) {
      this.#protocolError("the hello's answer is not about this mesh and member");
      return;
    }
    clearTimeout(this.#connectTimer);
    this.#phase = { name: "online" };
    this.#events.onOnline(hello, features);
  }

  #heard(): void {
    if (this.#phase.name === "ended") return;
    this.#pinged = false;
    this.#livenessTimer.refresh();
  }

  /** A half-open socket looks healthy until somebody insists on an answer. */
  #heardNothing(): void {
    if (this.#pinged) {
      // After a stall of this process the pong may lie unread: sockets are read before immediates run.
      setImmediate(() => this.#expectHeard());
      return;
    }
    // While the socket is being opened, the connect time-out watches.
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
    const waitedFor = this.#phase.name === "greeting" ? "the answer to the hello" : "the connection and its challenge";
    const detail = `${waitedFor} did not come within ${this.#options.connectTimeoutMs} ms`;
    this.#end({ state: "offline", reason: "unreachable", detail });
  }

  #protocolError(detail: string): void {
    this.#end({ state: "offline", reason: "protocol_error", detail }, closeCodes.protocol_error);
  }

  /** Without a close code the socket is cut: the peer is not there to read one. */
  #end(status: EndedStatus, closeCode?: number): void {
    if (this.#phase.name === "ended") return;
    this.#phase = { name: "ended" };
    clearTimeout(this.#connectTimer);
    clearTimeout(this.#livenessTimer);
    this.#hangUp(closeCode);
    this.#requests.endAll();
    this.#events.onEnd(status);
  }

  #hangUp(closeCode: number | undefined): void {
    if (closeCode === undefined || this.#socket.readyState === WebSocket.CONNECTING) {
      this.#socket.terminate();
      return;
    }
    this.#socket.close(closeCode);
    const timer = setTimeout(() => this.#socket.terminate(), hangUpMs);
    this.#socket.once("close", () => clearTimeout(timer));
  }
}

function frameBytesOf(operation: OperationName): number {
  const { large }: OperationSpec = operations[operation];
  return large?.bytes ?? limits.frameBytes;
}

/** What the broker would say by dropping the whole connection; saying it here keeps the other requests alive. */
function oversizeAnswer(maxBytes: number): LinkOutcome {
  const error = new MeshError("payload_too_large", `A frame is larger than ${maxBytes} bytes.`, {
    limit_bytes: maxBytes,
  });
  return { type: "answered", status: error.status, body: error.toBody() };
}
