// The listeners of one wire: several spaces share a connection.
import type { WireEvents } from "../space-wire.ts";

export class WireListeners {
  readonly #listeners = new Set<WireEvents>();
  /** Why the wire never comes back, once it does not. */
  #stopped: string | undefined;

  add(events: WireEvents): () => void {
    this.#listeners.add(events);
    const stopped = this.#stopped;
    // A late listener is called too, after its registration.
    if (stopped !== undefined) queueMicrotask(() => this.#listeners.has(events) && events.onDown(stopped));
    return () => this.#listeners.delete(events);
  }

  push(push: { readonly type: string }): void {
    for (const { onPush } of [...this.#listeners]) onPush(push);
  }

  up(): void {
    for (const { onUp } of [...this.#listeners]) onUp();
  }

  down(stopped?: string): void {
    this.#stopped ??= stopped;
    for (const { onDown } of [...this.#listeners]) onDown(stopped);
  }
}
