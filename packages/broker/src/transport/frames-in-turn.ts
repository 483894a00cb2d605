// The frames of one socket in the order in which they came. A large one waits for a turn of the event loop of its own, in
// which members take turns, and nothing more is read from its socket until then: one turn of the loop hears every socket,
// and what many of them say at once would otherwise be read in one go.
// Why: docs/decisions/0116.

/** Reading so many bytes takes a few milliseconds, whatever they hold. */
export const smallFrameBytes = 65_536;

export type FramesInTurnOptions = {
  readonly socket: { readonly pause: () => void; readonly resume: () => void };
  readonly nextTurn: (run: () => void) => void;
  readonly read: (frame: Buffer) => void;
};

export class FramesInTurn {
  readonly #options: FramesInTurnOptions;
  /** The first of them is large. */
  readonly #waiting: Buffer[] = [];

  constructor(options: FramesInTurnOptions) {
    this.#options = options;
  }

  take(frame: Buffer): void {
    const { socket, read } = this.#options;
    if (this.#waiting.length === 0 && frame.length <= smallFrameBytes) {
      read(frame);
      return;
    }
    this.#waiting.push(frame);
    // What was read with it waits as well.
    if (this.#waiting.length > 1) return;
    socket.pause();
    this.#readLater();
  }

  #readLater(): void {
    this.#options.nextTurn(() => this.#readSome());
  }

  #readSome(): void {
    do {
      const next = this.#waiting[0];
      if (next === undefined) break;
      this.#options.read(next);
      this.#waiting.shift();
    } while ((this.#waiting[0]?.length ?? 0) <= smallFrameBytes);
    if (this.#waiting.length > 0) this.#readLater();
    else this.#options.socket.resume();
  }
}
