// The layers without a verdict, in the order of their localSeq: which are to be sent now, which are under way, which
// have to be sent again (SPC-16). What is sent for a layer is always the same. Makes no messages itself.
import type { Layer } from "../tiers/layer.ts";

/** Verdicts that are on their way do not keep others waiting, but there is an end to it. */
const inFlightMax = 64;

type Entry = { readonly layer: Layer; inFlight: boolean; everSent: boolean };

export class Outbox {
  readonly #entries = new Map<number, Entry>();
  /** Something must pass before anything is sent again. */
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

  /** Ends what was under way: it is sent again, in order, on the next connection. */
  rewind(): void {
    for (const entry of this.#entries.values()) entry.inFlight = false;
    this.isPaused = false;
  }

  /** It was not decided, and is to be sent again. */
  returned(localSeq: number): void {
    const entry = this.#entries.get(localSeq);
    if (entry !== undefined) entry.inFlight = false;
  }

  /**
   * Marks what can be sent now as sent and returns it. Nothing passes a layer that waits, or one with sends: its verdict
   * may take a limiter's time, and what came before it would pass it over.
   */
  takeSendable(isDecided: (localSeq: number) => boolean): Layer[] {
    if (this.isPaused) return [];
    const taken: Layer[] = [];
    let inFlight = 0;
    for (const [localSeq, entry] of this.#entries) {
      if (isDecided(localSeq)) continue;
      if (inFlight >= inFlightMax) break;
      if (!entry.inFlight) {
        entry.inFlight = true;
        entry.everSent = true;
        taken.push(entry.layer);
      }
      inFlight += 1;
      if (entry.layer.hasSends) break;
    }
    return taken;
  }
}
