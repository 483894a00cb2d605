// One reader of events. Messages are never held for it: they are read from the inbox when it has taken the last ones,
// so that what it gets is what is stored, in its order, without a gap. Other events happen only now; they wait for a
// slow reader up to a bound. A reader that takes nothing while more than that happens is told where to resume, and left.
import {
  type EventKind,
  encodeEvent,
  encodeEventText,
  eventIdAfter,
  heartbeatText,
  openingText,
} from "../core/event-text.ts";
import type { InboxRecord } from "../core/inbox-message.ts";
import type { Clock, InboxStore, Log, Timer } from "../ports.ts";

/** Where a reader's events go. */
export type EventSink = {
  /** False: it waits for the reader, and `drained` is due once it has been taken. */
  readonly write: (text: string) => boolean;
  /** No more; what was written still goes out. */
  readonly end: () => void;
  readonly destroy: () => void;
};

export type StreamPorts = {
  readonly inbox: Pick<InboxStore, "news">;
  readonly show: (record: InboxRecord) => object;
  readonly nextNumber: () => number;
  readonly clock: Pick<Clock, "setTimer">;
  readonly log: Log;
};

type LiveEvent = { readonly kind: EventKind; readonly json: string };

/** What may happen while a reader takes nothing. */
const behindBytesMax = 1_048_576;
/** How long a reader that was told so may take to hear it. */
const farewellMs = 30_000;

export class EventStream {
  readonly #ports: StreamPorts;
  readonly #sink: EventSink;
  /** The last message that was written, or what the reader said it has. */
  #position: string;
  #blocked = false;
  #ended = false;
  #stepping = false;
  #waiting: LiveEvent[] = [];
  #behindBytes = 0;
  #farewell: Timer | undefined;

  constructor(ports: StreamPorts, sink: EventSink, position: string) {
    this.#ports = ports;
    this.#sink = sink;
    this.#position = position;
  }

  /** The first event gives the reader an id to resume from, even if nothing else ever comes. */
  start(brokerStatus: object): void {
    this.#write(openingText);
    this.#write(encodeEvent("broker_status", this.#liveId(), brokerStatus));
    this.#readOn();
  }

  publish(kind: EventKind, json: string): void {
    if (this.#ended) return;
    if (!this.#blocked) {
      this.#write(encodeEventText(kind, this.#liveId(), json));
      return;
    }
    this.#waiting.push({ kind, json });
    this.#fallBehind(json.length);
  }

  /** A live message of about this size is durable. */
  messageStored(bytes: number): void {
    if (this.#blocked) this.#fallBehind(bytes);
    else this.#readOn();
  }

  /** The reader has taken everything that was written. */
  drained(): void {
    if (this.#ended) return;
    this.#blocked = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    this.#behindBytes = 0;
    for (const { kind, json } of waiting) this.publish(kind, json);
    this.#readOn();
  }

  beat(): void {
    if (!this.#ended && !this.#blocked) this.#write(heartbeatText);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#waiting = [];
    this.#sink.end();
  }

  /** The connection is gone. */
  closed(): void {
    this.#ended = true;
    this.#waiting = [];
    this.#farewell?.cancel();
  }

  #liveId(): string {
    return eventIdAfter(this.#position, this.#ports.nextNumber());
  }

  #write(text: string): void {
    if (!this.#sink.write(text)) this.#blocked = true;
  }

  /** In the next turn, so that messages of one commit are read together. */
  #readOn(): void {
    if (this.#stepping) return;
    this.#stepping = true;
    setImmediate(() => this.#step());
  }

  /** One bounded page. A long backlog goes page by page, so that other work of the daemon comes between. */
  #step(): void {
    this.#stepping = false;
    if (this.#ended || this.#blocked) return;
    const { inbox, show, log } = this.#ports;
    try {
      const { items, upTo, more } = inbox.news(this.#position);
      for (const record of items) this.#write(encodeEvent("message", record.id, show(record)));
      this.#position = upTo;
      if (more) this.#readOn();
    } catch (error) {
      log.error({ event: "event_stream_failed", err: error }, "a reader of events was left because the inbox failed");
      this.end();
    }
  }

  #fallBehind(bytes: number): void {
    this.#behindBytes += bytes;
    if (this.#ended || this.#behindBytes <= behindBytesMax) return;
    const id = this.#liveId();
    const data = { resume_after: id, events_lost: this.#waiting.length };
    this.#sink.write(encodeEvent("lagged", id, data));
    this.end();
    this.#farewell = this.#ports.clock.setTimer(farewellMs, () => this.#sink.destroy());
  }
}
