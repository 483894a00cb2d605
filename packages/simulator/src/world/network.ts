// The network between each host and the brokers: connections whose frames arrive in order or not at all, and
// what can go wrong with them. Between connections there is no order: frames of one that was given up may arrive after
// those of the next. Frames travel as text, so that nothing is shared between the two sides.
import { parseStrictJson, writeStrictJson } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import { type Random, streamOf } from "../core/chance.ts";
import type { Life, Surroundings } from "./host.ts";

export type Frame = Readonly<Record<string, unknown>>;
export type Direction = "up" | "down";

/** One side of a connection. */
export type End = {
  readonly send: (frame: Frame) => void;
  /** The other side hears of it when it arrives there, if it does. */
  readonly close: (reason: string) => void;
};

export type EndHandlers = {
  readonly onFrame: (frame: Frame) => void;
  /** Once, unless this side closed. */
  readonly onClose: (reason: string) => void;
};

/** Takes a connection that has arrived. */
export type Listener = { readonly life: Life; readonly accept: (end: End) => EndHandlers };

type Condition = { untilMs: number; value: number };
type Conditions = Record<"partition" | "up" | "down" | "loss" | "duplication" | "slowness", Condition>;

const fine = (): Condition => ({ untilMs: 0, value: 0 });

/** A host's way to the broker. */
export class Wire {
  readonly conditions: Conditions = {
    partition: fine(),
    up: fine(),
    down: fine(),
    loss: fine(),
    duplication: fine(),
    slowness: fine(),
  };
  readonly connections = new Set<Connection>();

  heal(): void {
    for (const condition of Object.values(this.conditions)) condition.untilMs = 0;
  }

  /** When what is sent now can arrive at the earliest; undefined: now. */
  blockedUntil(direction: Direction, nowMs: number): number | undefined {
    const { partition } = this.conditions;
    const untilMs = Math.max(partition.untilMs, this.conditions[direction].untilMs);
    return untilMs > nowMs ? untilMs : undefined;
  }

  /** 0 while it is fine. */
  severity(kind: "loss" | "duplication" | "slowness", nowMs: number): number {
    const { untilMs, value } = this.conditions[kind];
    return untilMs > nowMs ? value : 0;
  }
}

export class Network {
  readonly surroundings: Surroundings;
  readonly random: Random;
  #listeners: Listener[] = [];
  #connections = 0;
  frames = 0;

  constructor(surroundings: Surroundings) {
    this.surroundings = surroundings;
    this.random = streamOf(surroundings.seed, "network");
  }

  listen(listener: Listener): void {
    this.#listeners.push(listener);
    listener.life.onEnd(() => {
      this.#listeners = this.#listeners.filter((each) => each !== listener);
    });
  }

  /** The process that listens there; any one of several, as with a name that has several addresses. */
  get listener(): Listener | undefined {
    const { length } = this.#listeners;
    return length > 1 ? this.random.pick(this.#listeners) : this.#listeners[0];
  }

  dial(wire: Wire, life: Life, handlers: EndHandlers): End {
    const connection = new Connection(this, wire, ++this.#connections, life, handlers);
    wire.connections.add(connection);
    connection.knock();
    return connection.end("up");
  }

  /** `pace`: how much of a slowness this connection feels. */
  delayMs(wire: Wire, nowMs: number, pace: number): number {
    const slowMs = wire.severity("slowness", nowMs) * pace * this.random.next();
    return 0.5 + this.random.next() * 20 + slowMs;
  }
}

/** These frames show that the other side is there, and nothing else. */
function isPing({ type }: Frame): boolean {
  return type === "ping" || type === "pong";
}

/**
 * What counts on it that a stream brings each frame once and in order: a refusal ends the try of a send, the last watch
 * is the one that holds, and a frame of changes goes on from the one before it.
 */
const inOrderOnly: ReadonlySet<string> = new Set(["send", "space.watch", "sync", "session.revoked"]);

/** How long news and second copies may be under way. */
const latestMs = 20_000;

type Side = {
  life: Life;
  handlers: EndHandlers;
  open: boolean;
  /** When the last frame towards this side arrives. */
  lastArrivalMs: number;
  /** A frame towards this side was lost: none that follows arrives. */
  broken: boolean;
};

export class Connection {
  readonly #network: Network;
  readonly #wire: Wire;
  readonly #number: number;
  readonly #client: Side;
  readonly #pace: number;
  #broker: Side | undefined;

  constructor(network: Network, wire: Wire, number: number, life: Life, handlers: EndHandlers) {
    this.#network = network;
    this.#wire = wire;
    this.#number = number;
    this.#pace = network.random.next() ** 2;
    this.#client = { life, handlers, open: true, lastArrivalMs: 0, broken: false };
    life.onEnd(() => this.#sideDied(this.#client));
  }

  /** The first packet is on its way. */
  knock(): void {
    const { scheduler } = this.#network.surroundings;
    const nowMs = scheduler.nowMs;
    // There is no answer while the way is blocked, and the caller gives up by its own clock.
    if (this.#wire.blockedUntil("up", nowMs) !== undefined) return;
    scheduler.after(this.#network.delayMs(this.#wire, nowMs, this.#pace), () => {
      const { listener } = this.#network;
      if (!this.#client.open || !this.#client.life.alive) return;
      if (listener === undefined) {
        this.#tellClosed(this.#client, "refused");
        return;
      }
      const side: Side = {
        life: listener.life,
        handlers: { onFrame: () => undefined, onClose: () => undefined },
        open: true,
        lastArrivalMs: scheduler.nowMs,
        broken: false,
      };
      this.#broker = side;
      listener.life.onEnd(() => this.#sideDied(side));
      side.handlers = listener.accept(this.end("down"));
    });
  }

  /** The side whose frames go in this direction. */
  end(direction: Direction): End {
    const [mine, theirs] =
      direction === "up" ? [() => this.#client, () => this.#broker] : [() => this.#broker, () => this.#client];
    return {
      send: (frame) => {
        const [from, to] = [mine(), theirs()];
        if (from?.open !== true || !from.life.alive || to === undefined) return;
        const text = isPing(frame) ? undefined : writeStrictJson(frame);
        const mayDouble = !inOrderOnly.has(String(frame.type));
        this.#carry(direction, to, mayDouble, () => {
          if (!to.open) return;
          this.#network.frames++;
          if (text === undefined) {
            to.handlers.onFrame(frame);
            return;
          }
          this.#note(`${direction} ${text.slice(0, 120)}`);
          to.handlers.onFrame(parseStrictJson(Buffer.from(text), { maxDepth: limits.jsonDepth }) as Frame);
        });
      },
      close: (reason) => {
        const [from, to] = [mine(), theirs()];
        if (from === undefined || !from.open) return;
        from.open = false;
        this.#note(`${direction} side closes: ${reason}`);
        if (to === undefined || !from.life.alive) this.#forget();
        else this.#carry(direction, to, false, () => this.#tellClosed(to, reason));
      },
    };
  }

  /** Both sides learn of it, each in its time. */
  cut(): void {
    for (const side of [this.#client, this.#broker]) {
      if (side !== undefined) this.#closeSoon(side, "reset");
    }
  }

  /**
   * Sends are doubled by senders that try again, over this connection or the next. A second copy that no request waits
   * for would break what a stream promises, and a refusal of it would mean nothing.
   */
  #carry(direction: Direction, to: Side, mayDouble: boolean, arrive: () => void): void {
    const { random, surroundings } = this.#network;
    const nowMs = surroundings.scheduler.nowMs;
    if (to.broken) return;
    const blockedUntilMs = this.#wire.blockedUntil(direction, nowMs);
    // A stream may live through a pause of the network, and what was sent comes late; or it does not.
    if (blockedUntilMs !== undefined && random.next() < 0.5) to.broken = true;
    if (random.next() < this.#wire.severity("loss", nowMs)) {
      to.broken = true;
      if (random.next() < 0.7) this.cut();
    }
    if (to.broken) return;
    const earliestMs = Math.max(blockedUntilMs ?? nowMs, nowMs) + this.#network.delayMs(this.#wire, nowMs, this.#pace);
    to.lastArrivalMs = Math.max(to.lastArrivalMs, earliestMs);
    surroundings.scheduler.at(to.lastArrivalMs, arrive, to.life);
    if (!mayDouble || random.next() >= this.#wire.severity("duplication", nowMs)) return;
    surroundings.scheduler.at(to.lastArrivalMs + random.next() * latestMs, arrive, to.life);
  }

  #sideDied(side: Side): void {
    if (!side.open) return;
    side.open = false;
    const other = side === this.#client ? this.#broker : this.#client;
    // A process that is killed has its sockets closed by the system; a machine that lost its power closes nothing.
    if (other !== undefined && this.#network.random.next() < 0.8) this.#closeSoon(other, "reset");
    else this.#forget();
  }

  #closeSoon(side: Side, reason: string): void {
    const { scheduler } = this.#network.surroundings;
    const { random } = this.#network;
    scheduler.after(
      random.next() * (random.next() < 0.6 ? 500 : latestMs),
      () => this.#tellClosed(side, reason),
      side.life,
    );
  }

  #tellClosed(side: Side, reason: string): void {
    if (!side.open) return;
    side.open = false;
    this.#note(`${side === this.#client ? "client" : "broker"} hears ${reason}`);
    this.#forget();
    side.handlers.onClose(reason);
  }

  #forget(): void {
    if (!this.#client.open) this.#wire.connections.delete(this);
  }

  #note(what: string): void {
    this.#network.surroundings.log.add(this.#network.surroundings.scheduler.nowMs, `#${this.#number} ${what}`);
  }
}
