// One caller: a connection that stays open, with one request in flight. It knows nothing about the others; the owner
// of the connection hears about each answer and decides when the next request leaves.
import { connect, type Socket } from "node:net";
import { answerLength, hasStatus, timesIn } from "./answer.ts";
import type { SendRequestBytes } from "./send-request.ts";

export type CallerEvents = {
  readonly onAccepted: (caller: Caller, latencyMs: number, nowMs: number) => void;
  /** The answer that is not the expected one, or what went wrong with the connection. */
  readonly onFailed: (what: string) => void;
};

/** The path of a Unix socket, or a TCP port of this machine. */
export type CallerTarget = string | { readonly host: string; readonly port: number };

const readBufferBytes = 16_384;

export class Caller {
  readonly #request: SendRequestBytes;
  readonly #events: CallerEvents;
  readonly #socket: Socket;
  #partial: Buffer | undefined;
  #sentAtMs = 0;

  constructor(target: CallerTarget, request: SendRequestBytes, events: CallerEvents) {
    this.#request = request;
    this.#events = events;
    const buffer = Buffer.allocUnsafeSlow(readBufferBytes);
    const callback = (length: number): boolean => {
      this.#read(buffer.subarray(0, length));
      return true;
    };
    const address = typeof target === "string" ? { path: target } : { ...target, noDelay: true };
    this.#socket = connect({ ...address, onread: { buffer, callback } });
    this.#socket.once("error", (error) => events.onFailed(`the connection failed: ${error.message}`));
    this.#socket.once("end", () => events.onFailed("the server ended the connection"));
  }

  connected(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#socket.connecting) this.#socket.once("connect", () => resolve());
      else resolve();
    });
  }

  send(nextId: () => string, nowMs: number): void {
    this.#request.setIds(nextId);
    this.#sentAtMs = nowMs;
    this.#socket.write(this.#request.bytes);
  }

  close(): void {
    this.#socket.destroy();
  }

  #read(bytes: Buffer): void {
    const answer = this.#partial === undefined ? bytes : Buffer.concat([this.#partial, bytes]);
    const length = answerLength(answer);
    if (length === undefined || answer.length < length) {
      // The next read overwrites the buffer.
      this.#partial = Buffer.from(answer);
      return;
    }
    this.#partial = undefined;
    const { expectedStatus, expectedOfEach, sends } = this.#request;
    const isWhole = expectedOfEach === undefined || timesIn(answer, expectedOfEach) === sends;
    if (!hasStatus(answer, expectedStatus) || !isWhole || answer.length > length) {
      this.#events.onFailed(`an answer that is not one ${expectedStatus}:\n${answer.toString()}`);
      return;
    }
    const nowMs = performance.now();
    this.#events.onAccepted(this, nowMs - this.#sentAtMs, nowMs);
  }
}
