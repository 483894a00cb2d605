// One socket's life: connect, proof, hello, then frames in and replies out. What a frame does is decided by the operation
// that it names; pushing is the delivery pump's work.
import type { Socket } from "node:net";
import process from "node:process";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import type { PlainMember } from "@claudemesh/members/ports";
import { MeshError } from "@claudemesh/protocol/errors";
import { closeCodes } from "@claudemesh/protocol/features";
import { type JsonObject, writeStrictJson } from "@claudemesh/protocol/json";
import { type Answer, answerError } from "@claudemesh/protocol/messages/accept-result";
import { limits } from "@claudemesh/protocol/messages/limits";
import { fitsBytes } from "@claudemesh/protocol/spaces/entity";
import { closeReason } from "@claudemesh/protocol/wire/close-reason";
import {
  type HelloFrame,
  type HelloReplyBody,
  helloFrameSchema,
  type ProofFrame,
  type PushFrame,
  type ReplyFrame,
} from "@claudemesh/protocol/wire/frames";
import { type AckInput, isSignedOperation, type OperationName } from "@claudemesh/protocol/wire/operations";
import type { HelloSession } from "@claudemesh/protocol/wire/signing";
import type { RawData, WebSocket } from "ws";
import type { BrokerContext } from "../context.ts";
import type { Caller } from "../operations/handler.ts";
import { isOperationName, type RunOperation } from "../operations/run-operation.ts";
import { toMeshError } from "../storage-failure.ts";
import { ConnectionSessions } from "../sync/connection-sessions.ts";
import { authenticateHello } from "./authenticate-hello.ts";
import type { RegisteredConnection } from "./connection-registry.ts";
import { DeliveryPump } from "./delivery-pump.ts";
import { FramesInTurn } from "./frames-in-turn.ts";
import { LastHeard } from "./last-heard.ts";
import type { PresenceKeeper, PresentDaemon } from "./presence-keeper.ts";
import { proveBroker, upgradeClient } from "./prove-broker.ts";
import { FrameTooLarge, readFrame } from "./read-frame.ts";
import { SignedRequests } from "./signed-requests.ts";

/** A socket that takes longer to say who it is, or whose word takes longer to look up, is closed. */
const helloTimeoutMs = 10_000;
/** A client that has said nothing by then waits for a challenge, as earlier ones did, and hears why before it gives up. */
const connectTimeoutMs = 5_000;
/** How long a peer may take to answer that the broker is stopping: one that hangs must not make every stop a long one. */
const closeGraceMs = 2_000;
const requestsInFlightMax = 1_024;
/** What is written and not taken by the peer; above it the socket is dropped, never the data. */
const bufferedBytesMax = 16 * 1_048_576;
/** Of the WebSocket protocol itself. Breaches of its framing and bytes that are no UTF-8 are met below us. */
const standardCodes = {
  unsupportedData: 1003,
  tooLarge: 1009,
  internalError: 1011,
  restarting: 1012,
} as const;

const refuseHello = createSchemaCompiler()(helloFrameSchema);

type OpenState = {
  readonly caller: Caller;
  readonly pump: DeliveryPump | undefined;
  readonly signed: SignedRequests;
};

export class Connection {
  readonly #socket: WebSocket;
  readonly #stream: Socket;
  readonly #broker: BrokerContext;
  readonly #run: RunOperation;
  readonly #presence: PresenceKeeper;
  readonly #helloTimer: NodeJS.Timeout;
  readonly #connectTimer: NodeJS.Timeout;
  /** Undefined before the broker has proven itself, which it does when the client asks for it. */
  #session: HelloSession | undefined;
  #helloSeen = false;
  #unknownBytes = 0;
  #registered: RegisteredConnection | undefined;
  #present: PresentDaemon | undefined;
  #open: OpenState | undefined;
  #inFlight = 0;
  readonly #lastHeard: LastHeard;
  #alive = true;
  #stopping = false;
  #gathering = false;
  readonly #frames: FramesInTurn;

  /** `stream`: what the WebSocket writes to. */
  constructor(
    { webSocket: socket, stream }: { readonly webSocket: WebSocket; readonly stream: Socket },
    broker: BrokerContext,
    run: RunOperation,
    presence: PresenceKeeper,
  ) {
    this.#socket = socket;
    this.#stream = stream;
    this.#broker = broker;
    this.#run = run;
    this.#presence = presence;
    this.#lastHeard = new LastHeard(broker.nowMs);
    this.#frames = new FramesInTurn({
      socket,
      nextTurn: (run) => this.#takeTurn(run),
      read: (frame) => this.#onFrame(frame),
    });
    this.#helloTimer = setTimeout(() => this.#giveUpHello(), helloTimeoutMs);
    this.#connectTimer = setTimeout(() => this.#giveUpConnect(), connectTimeoutMs);
    stream.on("data", this.#boundUnknown);
    socket.on("message", (data, isBinary) => this.#onMessage(data, isBinary));
    socket.on("pong", () => this.#hear());
    // The WebSocket answers pings by itself, and a peer may send any number of them and read none of the answers.
    socket.on("ping", () => this.#dropIfSlow());
    socket.on("close", () => this.#onClose());
    socket.on("error", (error) => broker.log.debug({ event: "socket_error", err: error }, error.message));
  }

  /** Called at intervals: a peer that answered nothing since the last call is gone. */
  checkAlive(): void {
    if (!this.#alive) {
      this.#socket.terminate();
      return;
    }
    this.#alive = false;
    this.#socket.ping();
  }

  /** Takes no more requests, and closes when those in flight are answered. */
  closeForStop(): void {
    this.#stopping = true;
    if (this.#inFlight > 0) return;
    this.#close(standardCodes.restarting, "the broker is stopping");
    setTimeout(() => this.#socket.terminate(), closeGraceMs).unref();
  }

  terminate(): void {
    this.#socket.terminate();
  }

  /** Whose connection this is, once that is known. */
  get member(): PlainMember | undefined {
    return this.#open?.caller.member;
  }

  #hear(): void {
    this.#alive = true;
    if (!this.#lastHeard.again()) this.#socket.terminate();
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    this.#hear();
    // What was sent behind the frame that ended the connection could not be answered any more.
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (isBinary) {
      this.#close(standardCodes.unsupportedData, "a frame is text");
      return;
    }
    this.#frames.take(data as Buffer);
  }

  #onFrame(data: Buffer): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    let frame: Record<string, unknown>;
    try {
      frame = readFrame(data, this.#open !== undefined);
    } catch (error) {
      if (error instanceof FrameTooLarge) {
        this.#close(standardCodes.tooLarge, error.message);
        return;
      }
      this.#close(closeCodes.protocol_error, toMeshError(error).code);
      return;
    }
    if (this.#session === undefined) this.#onConnect(frame);
    else if (!this.#helloSeen) this.#onHello(frame, this.#session);
    else if (this.#open === undefined) this.#close(closeCodes.protocol_error, "a frame before the hello was answered");
    else this.#onRequest(this.#open, frame);
  }

  #takeTurn(run: () => void): void {
    const { meshId = "", pubkey = "" } = this.member ?? {};
    this.#broker.watchers.nextTurn(meshId, pubkey, run);
  }

  /** The WebSocket gathers frames as large as any member's; a peer that is no member yet gets no such room. */
  readonly #boundUnknown = (chunk: Buffer): void => {
    this.#unknownBytes += chunk.length;
    if (this.#unknownBytes <= limits.helloBytes) return;
    this.#close(standardCodes.tooLarge, "too much before the hello");
    this.#socket.terminate();
  };

  /** After a stall of this process the frame may lie unread: sockets are read before immediates run. */
  #giveUpConnect(): void {
    setImmediate(() => {
      if (this.#session === undefined) this.#close(closeCodes.feature_unavailable, upgradeClient);
    });
  }

  #giveUpHello(): void {
    // A peer that has said who it is did its part: what is missing is the store's word.
    if (this.#helloSeen) this.#close(standardCodes.internalError, "storage_unavailable");
    else this.#close(closeCodes.protocol_error, "no hello in time");
  }

  #onConnect(frame: Record<string, unknown>): void {
    clearTimeout(this.#connectTimer);
    const proving = proveBroker(this.#broker, frame);
    if (proving.type === "refused") {
      this.#close(proving.code, proving.reason);
      return;
    }
    this.#session = proving.session;
    this.#write(proving.proof);
  }

  #onHello(frame: Record<string, unknown>, session: HelloSession): void {
    if (frame.type !== "hello") {
      this.#close(closeCodes.protocol_error, "behind the connect comes a hello");
      return;
    }
    const refusal = refuseHello(frame);
    if (refusal !== undefined) {
      this.#close(closeCodes.protocol_error, refusal.message);
      return;
    }
    this.#helloSeen = true;
    this.#authenticate(frame as HelloFrame, session).catch((error: unknown) => {
      const failure = toMeshError(error);
      this.#broker.log.error({ event: "hello_failed", err: failure.cause ?? failure }, failure.message);
      this.#close(standardCodes.internalError, failure.code);
    });
  }

  async #authenticate(hello: HelloFrame, session: HelloSession): Promise<void> {
    const verdict = await authenticateHello(this.#broker.members, session, hello);
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (verdict.type !== "welcome") {
      this.#refuse(hello, verdict.type);
      return;
    }
    const caller = { mesh: verdict.mesh, member: verdict.member };
    const pump = hello.kind === "daemon" ? this.#createPump(caller) : undefined;
    const entry: RegisteredConnection = {
      meshId: caller.mesh.id,
      pubkey: caller.member.pubkey,
      kind: hello.kind,
      // Nothing is pushed before the hello is answered.
      wake: () => this.#open?.pump?.wake(),
      replace: () => this.#close(closeCodes.replaced_by_newer, "replaced_by_newer"),
      refuse: () => this.#close(closeCodes.older_connection_kept, "older_connection_kept"),
      cut: () => this.#cut(caller),
      // A client that wants to know asks.
      destinationGone: (gone) => {
        if (pump !== undefined && this.#open !== undefined) this.#write({ type: "destination_gone", ...gone });
      },
      brokersChanged: (brokers) => {
        // A connection that is not notified yet learns it with the answer to its hello.
        if (this.#open !== undefined) this.#write({ type: "brokers_changed", brokers });
      },
    };
    if (!this.#broker.connections.add(entry, this.#broker.config.connectionPolicy)) {
      entry.refuse();
      return;
    }
    this.#registered = entry;
    // A revocation cuts the connections that it finds; one that came while this hello was checked has not found it.
    const member = await this.#broker.members.findMember(entry.meshId, entry.pubkey);
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if (member === undefined || member.revoked) {
      this.#refuse(hello, "membership_ended");
      return;
    }
    clearTimeout(this.#helloTimer);
    this.#stream.off("data", this.#boundUnknown);
    this.#broker.strangers.know(this.#stream);
    const signed = new SignedRequests(session, entry.pubkey);
    this.#open = { caller: { ...caller, sessions: this.#createSessions() }, pump, signed };
    this.#broker.log.info({ event: "connected", mesh: caller.mesh.name, member: caller.member.name, kind: hello.kind });
    const { pubkey, name, role } = caller.member;
    const { name: mesh, id: mesh_id } = caller.mesh;
    const body: HelloReplyBody = { mesh, mesh_id, member: { pubkey, name, role }, brokers: this.#broker.brokerUrls() };
    this.#reply(hello.id, { status: 200, body });
    if (pump === undefined) return;
    pump.wake();
    this.#present = {
      lease: { meshId: entry.meshId, pubkey: entry.pubkey, connectionId: this.#broker.nextId() },
      push: (frame) => this.#write(frame),
    };
    this.#presence.join(this.#present);
  }

  #refuse(hello: HelloFrame, why: "refused" | "membership_ended"): void {
    const details = why === "membership_ended" ? { membership: "ended" } : {};
    this.#reply(hello.id, answerError(new MeshError("unauthorized", undefined, details)));
    this.#close(closeCodes.unauthorized, "unauthorized");
  }

  #cut({ member }: Caller): void {
    if (this.#open !== undefined) this.#write({ type: "member_revoked", pubkey: member.pubkey });
    this.#close(closeCodes.member_revoked, "member_revoked");
  }

  #createPump(caller: Caller): DeliveryPump {
    return new DeliveryPump({
      store: this.#broker.messages.deliveries,
      meshId: caller.mesh.id,
      recipient: caller.member.pubkey,
      push: (item) => this.#write({ type: "message", ...item }),
      onFailure: (error) => {
        // The rows stay unsettled: dropping the socket makes the receiver come back for them.
        this.#broker.log.error({ event: "push_failed", err: error }, "reading deliveries failed");
        this.#close(standardCodes.internalError, "storage_unavailable");
      },
    });
  }

  #createSessions(): ConnectionSessions {
    return new ConnectionSessions({
      broker: this.#broker,
      push: (frame) => new Promise((resolve) => this.#write(frame, resolve)),
      onFailure: (error) => {
        // What was not pushed is pushed again when the client comes back and says what it has seen.
        this.#broker.log.error({ event: "sync_failed", err: error }, "reading changes of a space failed");
        this.#close(1011, "storage_unavailable");
      },
    });
  }

  #onRequest(open: OpenState, frame: Record<string, unknown>): void {
    const { type, id, ...input } = frame;
    if (typeof id !== "number" || !Number.isSafeInteger(id) || id < 1) {
      this.#close(closeCodes.protocol_error, "a request needs a positive integer id");
      return;
    }
    if (typeof type !== "string" || !isOperationName(type)) {
      this.#reply(
        id,
        answerError(new MeshError("invalid_request", "This frame type is not known.", { field: "type" })),
      );
      return;
    }
    if (this.#stopping) {
      this.#reply(id, answerError(new MeshError("stopping")));
      return;
    }
    if (this.#inFlight >= requestsInFlightMax) {
      this.#reply(id, answerError(new MeshError("busy", undefined, { limit: requestsInFlightMax })));
      return;
    }
    const refusal = isSignedOperation(type) ? refuseUnsigned(open.signed, type, id, input) : undefined;
    if (refusal !== undefined) {
      this.#broker.log.warn(
        { event: "refused", operation: type, code: refusal.code },
        "a request without its signature",
      );
      this.#broker.metrics.answered(type, refusal.status);
      this.#reply(id, answerError(refusal));
      return;
    }
    this.#inFlight++;
    void this.#run(type, open.caller, input).then((answer) => {
      this.#inFlight--;
      if (type === "ack" && answer.status === 200) open.pump?.settled((input as AckInput).history_ids);
      this.#reply(id, answer);
      if (this.#stopping) this.closeForStop();
    });
  }

  #reply(id: number, { status, body }: Answer): void {
    const text = writeStrictJson({ type: "reply", id, status, body } satisfies ReplyFrame);
    if (fitsBytes(text, limits.largeFrameBytes)) {
      this.#send(text);
      return;
    }
    const message = "The answer is larger than a frame; ask for less at once.";
    const refusal = new MeshError("payload_too_large", message, { limit_bytes: limits.largeFrameBytes });
    this.#reply(id, answerError(refusal));
  }

  /** How large the frame is, sent or not. `onTaken` is called when the peer's host has taken it, or never will. */
  #write(frame: ProofFrame | PushFrame, onTaken?: () => void): number {
    return this.#send(writeStrictJson(frame), onTaken);
  }

  #send(text: string, onTaken?: () => void): number {
    if (this.#socket.readyState !== this.#socket.OPEN) {
      onTaken?.();
      return text.length;
    }
    if (this.#dropIfSlow()) {
      onTaken?.();
      return text.length;
    }
    this.#gatherWrites();
    if (onTaken === undefined) this.#socket.send(text);
    else this.#socket.send(text, () => onTaken());
    return text.length;
  }

  #dropIfSlow(): boolean {
    const { bufferedAmount } = this.#socket;
    if (bufferedAmount <= bufferedBytesMax) return false;
    // What was read already goes on to bring pings after the end; one line is enough.
    if (this.#socket.readyState === this.#socket.OPEN) {
      this.#broker.log.warn({ event: "slow_socket_dropped", buffered_bytes: bufferedAmount });
    }
    this.#socket.terminate();
    return true;
  }

  /** Frames that become ready together leave together: one call of the system for a batch, not one for each. */
  #gatherWrites(): void {
    if (this.#gathering) return;
    this.#gathering = true;
    this.#stream.cork();
    process.nextTick(() => {
      this.#gathering = false;
      this.#stream.uncork();
    });
  }

  #close(code: number, reason: string): void {
    this.#socket.close(code, closeReason(reason));
  }

  #onClose(): void {
    clearTimeout(this.#helloTimer);
    clearTimeout(this.#connectTimer);
    if (this.#registered !== undefined) this.#broker.connections.remove(this.#registered);
    if (this.#present !== undefined) this.#presence.leave(this.#present);
    this.#open?.pump?.stop();
    this.#open?.caller.sessions?.close();
    this.#open = undefined;
  }
}

/** The signature is the frame's and no field of the operation. */
function refuseUnsigned(
  signed: SignedRequests,
  operation: OperationName,
  id: number,
  input: Record<string, unknown>,
): MeshError | undefined {
  const { signature } = input;
  delete input.signature;
  return signed.refuse({ operation, id, input: input as JsonObject, signature });
}
