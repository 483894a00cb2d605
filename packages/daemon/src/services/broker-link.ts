// The current link to the broker. A link reconnects by itself; this replaces it when the daemon has to say hello again, wakes
// the callers that wait for a connection, and passes statuses and pushes on.

import type { LinkRoute } from "@claudemesh/client/internal/broker-route";
import type { Link, LinkStatus } from "@claudemesh/client/internal/link-contract";
import { type BackoffBounds, backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import type { PushFrame } from "@claudemesh/protocol/wire/frames";
import type { BrokerLink, Clock, Timer } from "../ports.ts";

export type LinkEvents = {
  readonly onStatus: (status: LinkStatus) => void;
  readonly onPush: (push: PushFrame) => void;
};

export type BrokerLinkOptions = LinkEvents & {
  readonly open: (events: LinkEvents) => Link;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly backoff: BackoffBounds;
};

/** A renewal after this long without one begins again with the shortest delay. */
const calmMs = 600_000;

export class ManagedBrokerLink implements BrokerLink {
  readonly #options: BrokerLinkOptions;
  readonly #waiting = new Set<() => void>();
  #link: Link | undefined;
  #generation = 0;
  #renewals = 0;
  #renewedAtMs = Number.NEGATIVE_INFINITY;
  #renewalTimer: Timer | undefined;
  #closed = false;

  constructor(options: BrokerLinkOptions) {
    this.#options = options;
  }

  /** Events come only after this. */
  start(): void {
    this.#open();
  }

  readonly status = (): LinkStatus => this.#link?.status() ?? { state: "connecting" };

  readonly request: BrokerLink["request"] = (operation, input, options) =>
    this.#link?.request(operation, input, options) ?? Promise.resolve({ type: "not_sent" });

  readonly route = (): LinkRoute | undefined => this.#link?.route?.();

  readonly reconnect = (): void => this.#link?.reconnect?.();

  readonly whenOnline = (timeoutMs: number): Promise<boolean> => {
    if (this.status().state === "online") return Promise.resolve(true);
    if (this.#closed) return Promise.resolve(false);
    return new Promise((resolve) => {
      const finish = () => {
        timer.cancel();
        this.#waiting.delete(finish);
        resolve(this.status().state === "online");
      };
      const timer = this.#options.clock.setTimer(timeoutMs, finish);
      this.#waiting.add(finish);
    });
  };

  readonly renew = (): void => {
    if (this.#closed || this.#renewalTimer !== undefined) return;
    const { clock, random, backoff } = this.#options;
    const nowMs = clock.nowMs();
    this.#renewals = nowMs - this.#renewedAtMs > calmMs ? 1 : this.#renewals + 1;
    this.#renewedAtMs = nowMs;
    this.#renewalTimer = clock.setTimer(backoffDelayMs(this.#renewals, random(), backoff), () => {
      this.#renewalTimer = undefined;
      const previous = this.#link;
      this.#open();
      void previous?.close();
    });
  };

  async close(): Promise<void> {
    this.#closed = true;
    this.#renewalTimer?.cancel();
    this.#renewalTimer = undefined;
    this.#wakeWaiting();
    await this.#link?.close();
  }

  #open(): void {
    const generation = ++this.#generation;
    const isCurrent = () => generation === this.#generation;
    this.#link = this.#options.open({
      onStatus: (status) => {
        if (!isCurrent()) return;
        this.#options.onStatus(status);
        if (status.state === "online") this.#wakeWaiting();
      },
      onPush: (push) => {
        if (isCurrent()) this.#options.onPush(push);
      },
    });
  }

  #wakeWaiting(): void {
    for (const finish of [...this.#waiting]) finish();
  }
}
