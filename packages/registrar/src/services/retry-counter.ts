// Counts retries without making them wait: they are added up in memory and written together a moment later, or when
// somebody asks. A crash may lose the counts of that moment; nothing is decided by them.
import type { Retry } from "../core/records.ts";
import type { AttemptStore } from "../ports.ts";

const flushAfterMs = 250;
/** Different attempts that wait; from then on they are written at once. */
const pendingMax = 1_000;

export type RetryCounterOptions = {
  readonly store: Pick<AttemptStore, "count">;
  readonly onFailure: (error: unknown) => void;
};

export class RetryCounter {
  readonly #options: RetryCounterOptions;
  #pending = new Map<string, Retry>();
  #writing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RetryCounterOptions) {
    this.#options = options;
  }

  add(retry: Omit<Retry, "tries">): void {
    const { meshId, logicalRequestKey, attemptId } = retry;
    const key = JSON.stringify([meshId, logicalRequestKey, attemptId]);
    const tries = (this.#pending.get(key)?.tries ?? 0) + 1;
    this.#pending.set(key, { ...retry, tries });
    if (this.#pending.size >= pendingMax) void this.flush();
    else this.#timer ??= setTimeout(() => void this.flush(), flushAfterMs).unref();
  }

  /** Resolves when everything added before is written, or has failed to be. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = [...this.#pending.values()];
    this.#pending = new Map();
    if (batch.length > 0) this.#writing = this.#writing.then(() => this.#write(batch));
    return this.#writing;
  }

  async #write(batch: readonly Retry[]): Promise<void> {
    try {
      await this.#options.store.count(batch);
    } catch (error) {
      this.#options.onFailure(error);
    }
  }
}
