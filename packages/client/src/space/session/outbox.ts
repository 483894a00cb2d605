// The layers without a verdict, in the order of their localSeq: which can be sent now, which are in flight, which have
// to be sent again (SPC-16). The request of a layer is always the same. This file does not make the requests.
import type { Layer } from "../tiers/layer.ts";

/** A commit in flight does not make the others wait, up to this many. */
const inFlightMax = 64;

type Entry = { readonly layer: Layer; inFlight: boolean; everSent: boolean };

export class Outbox {
  readonly #entries = new Map<number, Entry>();
  /** A backoff must end before anything is sent again. */
  isPaused = false;

  get size(): number {
    return this.#entries.size;
  }

  add(layer: Layer): void {
    this.#entries.set(layer.localSeq, { layer, inFlight: false, everSent: false });
  }

  find(localSeq: number): Layer | undefined {
    return this.#entries.get(localSeq)?.layer;
  }

  wasSent(localSeq: number): boolean {
    return this.#entries.get(localSeq)?.everSent === true;
  }

  delete(localSeq: number): void {
    this.#entries.delete(localSeq);
  }

  layers(): Layer[] {
    return [...this.#entries.values()].map(({ layer }) => layer);
  }

  hasUndecidedUpTo(localSeq: number, isDecided: (localSeq: number) => boolean): boolean {
    for (const each of this.#entries.keys()) if (each <= localSeq && !isDecided(each)) return true;
    return false;
  }

  /** What was in flight is sent again, in order, on the next connection. */
  rewind(): void {
    for (const entry of this.#entries.values()) entry.inFlight = false;
    this.isPaused = false;
  }

  /** The commit was not decided, and is to be sent again. */
  returned(localSeq: number): void {
    const entry = this.#entries.get(localSeq);
    if (entry !== undefined) entry.inFlight = false;
  }

  /**
   * Marks the layers that can be sent now as sent, and returns them. No layer overtakes one that waits, or one with
   * sends: its verdict may wait for a limiter, and later commits would be decided before it.
   */
  takeSendable(isDecided: (localSeq: number) => boolean): Layer[] {
    if (this.isPaused) return [];
    const sendable: Layer[] = [];
    let inFlight = 0;
    for (const [localSeq, entry] of this.#entries) {
      if (isDecided(localSeq)) continue;
      if (inFlight >= inFlightMax) break;
      if (!entry.inFlight) {
        entry.inFlight = true;
        entry.everSent = true;
        sendable.push(entry.layer);
      }
      inFlight += 1;
      if (entry.layer.hasSends) break;
    }
    return sendable;
  }
}
