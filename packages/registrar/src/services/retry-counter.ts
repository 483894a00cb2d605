// Counts retries without making them wait: they are added up in memory and written together a moment later, or when
// they are read. A crash may lose the counts of that moment; no decision depends on them.
// Why: docs/decisions/0011.
import type { Retry } from "../core/records.ts";
import type { AttemptStore } from "../ports.ts";

const flushAfterMs = 1_000;
/** When so many different attempts wait, they are written at once. */
const writeAtOnceFrom = 5_000;
/** When so many wait, a retry waits until it is counted, so that memory is bounded. */
const pendingMax = 10_000;
/** In one transaction. Other work that waits for the store has its turn between two of them. */
const rowsPerWrite = 500;

export type RetryCounterOptions = {
  readonly store: Pick<AttemptStore, "count">;
  readonly onFailure: (error: unknown) => void;
  /** Node's timers unless given. */
  readonly setTimer?: (delayMs: number, callback: () => void) => RetryTimer;
};

/** Counts on until it is taken to be written. */
type CountedRetry = { -readonly [Field in keyof Retry]: Retry[Field] };

type RetryTimer = { readonly cancel: () => void };

export class RetryCounter {
  readonly #options: RetryCounterOptions;
  #pending = new Map<string, CountedRetry>();
  #writing: Promise<void> = Promise.resolve();
  /** Begins when the write under way has ended, and takes all that waits by then. */
  #next: Promise<void> | undefined;
  #timer: RetryTimer | undefined;

  constructor(options: RetryCounterOptions) {
    this.#options = options;
  }

  /** A promise: so many wait that this one has to, too. */
  add(retry: Omit<Retry, "tries">): Promise<void> | undefined {
    const { meshId, logicalRequestKey, attemptId } = retry;
    // None of them has a NUL (checkRegistrarText).
    const key = `${meshId}\0${logicalRequestKey}\0${attemptId}`;
    const counted = this.#pending.get(key);
    if (counted === undefined) {
      this.#pending.set(key, { ...retry, tries: 1 });
    } else {
      counted.tries += 1;
      counted.memberPubkey = retry.memberPubkey;
      counted.atMs = retry.atMs;
    }
    if (this.#pending.size >= pendingMax) return this.flush();
    if (this.#pending.size >= writeAtOnceFrom) void this.flush();
    else this.#timer ??= (this.#options.setTimer ?? setNodeTimer)(flushAfterMs, () => void this.flush());
    return undefined;
  }

  /** Resolves when everything added before is written, or has failed to be. */
  flush(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#pending.size > 0) this.#next ??= this.#writing.then(() => this.#writeAll());
    return this.#next ?? this.#writing;
  }

  #writeAll(): Promise<void> {
    const batch = [...this.#pending.values()];
    this.#pending = new Map();
    this.#next = undefined;
    this.#writing = this.#write(batch);
    return this.#writing;
  }

  async #write(batch: readonly Retry[]): Promise<void> {
    try {
      for (let at = 0; at < batch.length; at += rowsPerWrite) {
        await this.#options.store.count(batch.slice(at, at + rowsPerWrite));
      }
    } catch (error) {
      this.#options.onFailure(error);
    }
  }
}

function setNodeTimer(delayMs: number, callback: () => void): RetryTimer {
  const timer = setTimeout(callback, delayMs).unref();
  return { cancel: () => clearTimeout(timer) };
}
