// All readers of events of one daemon: how many may open a stream, and which events they get. What one reader gets, and
// when, is in event-stream.ts.
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import { MeshError } from "@claudemesh/protocol/errors";
import { writeStrictJson } from "@claudemesh/protocol/json";
import { type EventKind, firstPosition, readLastEventId } from "../core/event-text.ts";
import type { InboxRecord } from "../core/inbox-message.ts";
import type { Clock, InboxStore, Log, Timer, WatchOutbox } from "../ports.ts";
import { type EventSink, EventStream } from "./event-stream.ts";
import { showLink } from "./report-health.ts";

export type EventHubPorts = {
  readonly inbox: Pick<InboxStore, "news" | "lastId">;
  readonly show: (record: InboxRecord) => object;
  readonly watchOutbox: WatchOutbox;
  readonly linkStatus: () => LinkStatus;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxStreams: number;
};

export type OpenStream = { readonly drained: () => void; readonly closed: () => void };

const heartbeatMs = 15_000;

export class EventHub {
  readonly #ports: EventHubPorts;
  readonly #streams = new Set<EventStream>();
  #lastNumber: number;
  #lastStatus: string | undefined;
  #heartbeat: Timer | undefined;
  #stopWatching: (() => void) | undefined;
  #closed = false;

  constructor(ports: EventHubPorts) {
    this.#ports = ports;
    // Grows over restarts too, so that an id never stands for two events.
    this.#lastNumber = ports.clock.nowMs() * 1_000;
  }

  get streams(): number {
    return this.#streams.size;
  }

  /** Calls `connect` only where the reader is admitted. */
  open(lastEventId: string | undefined, connect: () => EventSink): OpenStream {
    const { maxStreams, linkStatus } = this.#ports;
    if (this.#closed) throw new MeshError("stopping");
    const position = this.#positionOf(lastEventId);
    if (this.#streams.size >= maxStreams) throw new MeshError("too_many_streams", undefined, { limit: maxStreams });
    if (this.#streams.size === 0) this.#startWatching();
    const { inbox, show, clock, log } = this.#ports;
    const nextNumber = () => ++this.#lastNumber;
    const stream = new EventStream({ inbox, show, clock, log, nextNumber }, connect(), position);
    this.#streams.add(stream);
    stream.start(showLink(linkStatus()));
    return {
      drained: () => stream.drained(),
      closed: () => {
        stream.closed();
        if (this.#streams.delete(stream) && this.#streams.size === 0) this.#stopWatchingAll();
      },
    };
  }

  /** A message that was not known before is durable. */
  messageStored(bytes: number): void {
    for (const stream of this.#streams) stream.messageStored(bytes);
  }

  /** Publishes each change once; another failed reconnect is no change. */
  brokerStatus(status: LinkStatus): void {
    if (status.state === "connecting") return;
    const key = status.state === "online" ? status.state : `${status.state} ${status.reason}`;
    if (key === this.#lastStatus) return;
    this.#lastStatus = key;
    this.publish("broker_status", showLink(status));
  }

  publish(kind: EventKind, data: object): void {
    if (this.#streams.size === 0) return;
    const json = writeStrictJson(data);
    for (const stream of this.#streams) stream.publish(kind, json);
  }

  close(): void {
    this.#closed = true;
    this.#stopWatchingAll();
    for (const stream of this.#streams) stream.end();
  }

  /**
   * Where the reader left off. An id beyond all of ours is from an inbox that was lost since: whatever comes now is
   * new to that reader.
   */
  #positionOf(lastEventId: string | undefined): string {
    const last = this.#ports.inbox.lastId() ?? firstPosition;
    const given = lastEventId === undefined ? last : readLastEventId(lastEventId);
    if (given < last) return given;
    return last;
  }

  #startWatching(): void {
    this.#stopWatching = this.#ports.watchOutbox((change) => this.publish("outbox", change));
    this.#scheduleHeartbeat();
  }

  #scheduleHeartbeat(): void {
    this.#heartbeat = this.#ports.clock.setTimer(heartbeatMs, () => {
      for (const stream of this.#streams) stream.beat();
      this.#scheduleHeartbeat();
    });
  }

  #stopWatchingAll(): void {
    this.#stopWatching?.();
    this.#stopWatching = undefined;
    this.#heartbeat?.cancel();
    this.#heartbeat = undefined;
  }
}
