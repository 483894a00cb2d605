// The requests of one connection that wait for their replies, and those that were given up but may still be answered.
// Every request ends exactly once. Writing frames is connection.ts's business.
import type { ReplyFrame } from "@claudemesh/protocol/wire/frames";
import type { LinkOutcome, RequestOptions } from "./link-contract.ts";

/** Longer ones overflow Node's timers and would fire at once. */
const timerMsMax = 2 ** 31 - 1;

type OpenRequest = {
  readonly settle: (outcome: LinkOutcome) => void;
  readonly timer: NodeJS.Timeout;
};

export class RequestTable {
  readonly #open = new Map<number, OpenRequest>();
  /** In the order of their time-outs: the oldest is dropped when there are too many. */
  readonly #late = new Map<number, NonNullable<RequestOptions["onLateAnswer"]>>();
  readonly #lateMax: number;
  #lastId = 0;

  constructor(lateMax: number) {
    this.#lateMax = lateMax;
  }

  nextId(): number {
    return ++this.#lastId;
  }

  wait(id: number, options: RequestOptions): Promise<LinkOutcome> {
    return new Promise((settle) => {
      const timer = setTimeout(() => this.#giveUp(id, options.onLateAnswer), Math.min(options.timeoutMs, timerMsMax));
      this.#open.set(id, { settle, timer });
    });
  }

  /** A reply to an id that nobody waits for any more is passed over. */
  answer(reply: ReplyFrame): void {
    const { id, status, body } = reply;
    const request = this.#open.get(id);
    if (request !== undefined) {
      this.#open.delete(id);
      clearTimeout(request.timer);
      request.settle({ type: "answered", status, body });
      return;
    }
    const onLateAnswer = this.#late.get(id);
    if (onLateAnswer === undefined) return;
    this.#late.delete(id);
    onLateAnswer({ status, body });
  }

  /** The connection has ended: whatever waits will not be answered. */
  endAll(): void {
    const requests = [...this.#open.values()];
    this.#open.clear();
    this.#late.clear();
    for (const { settle, timer } of requests) {
      clearTimeout(timer);
      settle({ type: "connection_lost" });
    }
  }

  #giveUp(id: number, onLateAnswer: RequestOptions["onLateAnswer"]): void {
    const request = this.#open.get(id);
    if (request === undefined) return;
    this.#open.delete(id);
    if (onLateAnswer !== undefined) this.#remember(id, onLateAnswer);
    request.settle({ type: "timed_out" });
  }

  #remember(id: number, onLateAnswer: NonNullable<RequestOptions["onLateAnswer"]>): void {
    this.#late.set(id, onLateAnswer);
    if (this.#late.size <= this.#lateMax) return;
    const [oldest] = this.#late.keys();
    if (oldest !== undefined) this.#late.delete(oldest);
  }
}
