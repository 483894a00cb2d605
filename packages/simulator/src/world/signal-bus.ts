// Redis as brokers side by side use it: signals between them, in order and late, or lost while it is away. What the
// limiter finds there is in broker-services.ts.
import type { Signal } from "@claudemesh/broker/testing/signal";
import { type Random, streamOf } from "../core/chance.ts";
import type { Life, Surroundings } from "./host.ts";

type Listener = { readonly life: Life; readonly onSignal: (signal: Signal) => void; readonly onListening: () => void };

const latestMs = 200;

export class SignalBus {
  readonly #surroundings: Surroundings;
  readonly #random: Random;
  readonly #listeners = new Set<Listener>();
  #awayUntilMs = 0;
  #lastArrivalMs = 0;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
    this.#random = streamOf(surroundings.seed, "signals");
  }

  join(listener: Listener): void {
    this.#listeners.add(listener);
    listener.life.onEnd(() => this.#listeners.delete(listener));
    this.#surroundings.scheduler.after(this.#random.next() * latestMs, listener.onListening, listener.life);
  }

  publish(from: Life, signal: Signal): void {
    const { scheduler } = this.#surroundings;
    if (scheduler.nowMs < this.#awayUntilMs) return;
    this.#lastArrivalMs = Math.max(this.#lastArrivalMs, scheduler.nowMs + this.#random.next() * latestMs);
    for (const { life, onSignal } of this.#listeners) {
      if (life !== from) scheduler.at(this.#lastArrivalMs, () => onSignal(signal), life);
    }
  }

  /** Nothing is heard until then; after that each listener hears that the bus has begun anew. */
  leave(untilMs: number): void {
    this.#awayUntilMs = untilMs;
    for (const { life, onListening } of this.#listeners) this.#surroundings.scheduler.at(untilMs, onListening, life);
  }

  /** Back at once. */
  heal(): void {
    if (this.#surroundings.scheduler.nowMs < this.#awayUntilMs) this.leave(this.#surroundings.scheduler.nowMs);
  }
}
