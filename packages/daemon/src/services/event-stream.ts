// One reader of events. Messages are not buffered for it: they are read from the inbox when it has taken the last ones,
// so that it gets what is stored, in its order, without a gap. Other events are stored nowhere, so they are buffered for
// a slow reader, up to a bound. A reader that takes nothing while more than that happens is disconnected, after an event that says where to resume.
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
  /** False where the text waits for the reader; `drained` is called once it has been taken. */
  readonly write: (text: string) => boolean;
  /** Ends the stream; what was written still goes out. */
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
/** How long a reader may take to receive its last event before its connection is cut. */
const lastEventMs = 30_000;

export class EventStream {
  readonly #ports: StreamPorts;
  readonly #sink: EventSink;
  /** The last message that was written, or what the reader said it has. */
  #position: string;
  #blocked = false;
  #ended = false;
  #readScheduled = false;
  #buffered: LiveEvent[] = [];
  #behindBytes = 0;
  #cutTimer: Timer | undefined;

  constructor(ports: StreamPorts, sink: EventSink, position: string) {
    this.#ports = ports;
    this.#sink = sink;
    this.#position = position;
  }

  /** The first event gives the reader an id to resume from, even if nothing else ever comes. */
  start(brokerStatus: object): void {
    this.#write(openingText);
    this.#write(encodeEvent("broker_status", this.#liveId(), brokerStatus));
    this.#scheduleRead();
  }

  publish(kind: EventKind, json: string): void {
    if (this.#ended) return;
    if (!this.#blocked) {
      this.#write(encodeEventText(kind, this.#liveId(), json));
      return;
    }
    this.#buffered.push({ kind, json });
    this.#countBehind(json.length);
  }

  /** A live message of about this size is durable. */
  messageStored(bytes: number): void {
    if (this.#blocked) this.#countBehind(bytes);
    else this.#scheduleRead();
  }

  /** The reader has taken everything that was written. */
  drained(): void {
    if (this.#ended) return;
    this.#blocked = false;
    const buffered = this.#buffered;
    this.#buffered = [];
    this.#behindBytes = 0;
    for (const { kind, json } of buffered) this.publish(kind, json);
    this.#scheduleRead();
  }

  beat(): void {
    if (!this.#ended && !this.#blocked) this.#write(heartbeatText);
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#buffered = [];
    this.#sink.end();
  }

  /** The connection is gone. */
  closed(): void {
    this.#ended = true;
    this.#buffered = [];
    this.#cutTimer?.cancel();
  }

  #liveId(): string {
    return eventIdAfter(this.#position, this.#ports.nextNumber());
  }

  #write(text: string): void {
    if (!this.#sink.write(text)) this.#blocked = true;
  }

  /** In the next turn, so that messages of one commit are read together. */
  #scheduleRead(): void {
    if (this.#readScheduled) return;
    this.#readScheduled = true;
    setImmediate(() => this.#readPage());
  }

  /** One bounded page. A long backlog goes page by page, so that other work of the daemon comes between. */
  #readPage(): void {
    this.#readScheduled = false;
    if (this.#ended || this.#blocked) return;
    const { inbox, show, log } = this.#ports;
    try {
      const { items, upTo, more } = inbox.news(this.#position);
      for (const record of items) this.#write(encodeEvent("message", record.id, show(record)));
      this.#position = upTo;
      if (more) this.#scheduleRead();
    } catch (error) {
      log.error({ event: "event_stream_failed", err: error }, "a reader of events was left because the inbox failed");
      this.end();
    }
  }

  #countBehind(bytes: number): void {
    this.#behindBytes += bytes;
    if (this.#ended || this.#behindBytes <= behindBytesMax) return;
    const id = this.#liveId();
    const data = { resume_after: id, events_lost: this.#buffered.length };
    this.#sink.write(encodeEvent("lagged", id, data));
    this.end();
    this.#cutTimer = this.#ports.clock.setTimer(lastEventMs, () => this.#sink.destroy());
  }
}
