// When a connection was last heard, by the wall clock, which goes on while a machine sleeps. A peer is pinged every few
// seconds, so that a longer silence means that one of the two slept: what arrives behind it was sent before, and its sender
// has long given it up or asked again. Were it read after ids have been forgotten, it would take effect twice (MSG-24).
// Why: docs/decisions/0082.
import { isOutdated } from "@claudemesh/messages/claim-time";

export class LastHeard {
  readonly #nowMs: () => number;
  #atMs: number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#atMs = nowMs();
  }

  /** Something arrived. False: it comes too late, and so does whatever else this connection brings. */
  again(): boolean {
    const nowMs = this.#nowMs();
    const isInTime = !isOutdated(this.#atMs, nowMs);
    this.#atMs = nowMs;
    return isInTime;
  }
}
