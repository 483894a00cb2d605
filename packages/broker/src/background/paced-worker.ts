// A worker that does small steps one after the other, and leaves most of the time to others: accepts wait for the same
// thread and the same disk. What it works on, and how far it is, is in the store; a restart loses nothing.

export type PacedWorkerOptions = {
  /** True: there is more to do. */
  readonly step: () => Promise<boolean>;
  /** Between a step that found nothing and the next look. */
  readonly idleMs: number;
  /** Before the first step: what can wait leaves the start to what cannot. */
  readonly startDelayMs?: number;
  readonly onFailure: (error: unknown) => void;
};

/** A worker with much to do works one part of the time and rests this many. */
const restParts = 9;
const restMsMin = 5;
const restMsMax = 1_000;
const failureRestMs = 5_000;

export class PacedWorker {
  readonly #options: PacedWorkerOptions;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(options: PacedWorkerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#next(this.#options.startDelayMs ?? 0);
  }

  /** Resolves when the step under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#working;
  }

  #next(waitMs: number): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#working = this.#work();
    }, waitMs);
  }

  async #work(): Promise<void> {
    const startedAtMs = performance.now();
    try {
      const more = await this.#options.step();
      const workedMs = performance.now() - startedAtMs;
      this.#next(more ? restAfterMs(workedMs, restParts) : this.#options.idleMs);
    } catch (error) {
      // What fails while the store is closed under it is no failure.
      if (!this.#stopped) this.#options.onFailure(error);
      this.#next(failureRestMs);
    }
  }
}

export function restAfterMs(workedMs: number, parts: number): number {
  return Math.min(Math.max(workedMs * parts, restMsMin), restMsMax);
}
