// The requests of one connection that wait for their replies, and those that were given up but may still be answered.
// Every request ends exactly once. connection.ts writes the frames.
import type { ReplyFrame } from "@claudemesh/protocol/wire/frames";
import type { LinkOutcome, RequestOptions } from "./link-contract.ts";

/** A longer delay would overflow Node's timers and fire at once. */
const timerMsMax = 2 ** 31 - 1;

type OpenRequest = {
  readonly settle: (outcome: LinkOutcome) => void;
  readonly deadlineMs: number;
  readonly onLateAnswer: RequestOptions["onLateAnswer"];
};

export class RequestTable {
  readonly #open = new Map<number, OpenRequest>();
  /** In the order of their time-outs: the oldest is dropped when there are too many. */
  readonly #late = new Map<number, NonNullable<RequestOptions["onLateAnswer"]>>();
  readonly #lateMax: number;
  #lastId = 0;
  /** One timer for all requests, set while any is open: nearly every request is answered long before its time-out. */
  #timer: NodeJS.Timeout | undefined;
  #ringsAtMs = 0;

  constructor(lateMax: number) {
    this.#lateMax = lateMax;
  }

  nextId(): number {
    return ++this.#lastId;
  }

  wait(id: number, options: RequestOptions): Promise<LinkOutcome> {
    const { timeoutMs, onLateAnswer } = options;
    const nowMs = performance.now();
    const deadlineMs = nowMs + timeoutMs;
    return new Promise((settle) => {
      this.#open.set(id, { settle, deadlineMs, onLateAnswer });
      this.#ringAt(deadlineMs, nowMs);
    });
  }

  /** A reply to an unknown or finished request is ignored. */
  answer(reply: ReplyFrame): void {
    const { id, status, body } = reply;
    const request = this.#open.get(id);
    if (request !== undefined) {
      this.#open.delete(id);
      if (this.#open.size === 0) this.#stopTimer();
      request.settle({ type: "answered", status, body });
      return;
    }
    const onLateAnswer = this.#late.get(id);
    if (onLateAnswer === undefined) return;
    this.#late.delete(id);
    onLateAnswer({ status, body });
  }

  /** The connection has ended: no open request will be answered. */
  endAll(): void {
    const requests = [...this.#open.values()];
    this.#open.clear();
    this.#late.clear();
    this.#stopTimer();
    for (const { settle } of requests) settle({ type: "connection_lost" });
  }

  #ringAt(deadlineMs: number, nowMs: number): void {
    if (this.#timer !== undefined && this.#ringsAtMs <= deadlineMs) return;
    clearTimeout(this.#timer);
    this.#ringsAtMs = deadlineMs;
    const delayMs = Math.min(Math.ceil(deadlineMs - nowMs), timerMsMax);
    this.#timer = setTimeout(() => this.#giveUpOverdue(), delayMs);
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #giveUpOverdue(): void {
    this.#timer = undefined;
    const nowMs = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const [id, { deadlineMs, settle, onLateAnswer }] of this.#open) {
      if (deadlineMs > nowMs) {
        nextMs = Math.min(nextMs, deadlineMs);
      } else {
        this.#open.delete(id);
        if (onLateAnswer !== undefined) this.#remember(id, onLateAnswer);
        settle({ type: "timed_out" });
      }
    }
    if (this.#open.size > 0) this.#ringAt(nextMs, nowMs);
  }

  #remember(id: number, onLateAnswer: NonNullable<RequestOptions["onLateAnswer"]>): void {
    this.#late.set(id, onLateAnswer);
    if (this.#late.size <= this.#lateMax) return;
    const [oldest] = this.#late.keys();
    if (oldest !== undefined) this.#late.delete(oldest);
  }
}
