// A budget in bytes per mesh and window, for what is too frequent to ask a ledger about each time: this process counts, and
// tells the ledger a sixty-fourth of the limit at a time. So brokers side by side, and one that starts again, know what was
// spent but for the last such part of each, and counting costs a commit nothing.
// Why: docs/decisions/0118.
import { type RateLimit, retryAfterSeconds, windowStartMs } from "../core/rate-limit.ts";
import type { ByteLedger } from "../ports/byte-ledger.ts";

export type ByteBudgetOptions = {
  readonly ledger: ByteLedger;
  readonly rate: RateLimit;
  /** What the mesh's owner has chosen instead; undefined: the broker's own. */
  readonly rateOf?: ((meshId: string) => RateLimit | undefined) | undefined;
  readonly nowMs: () => number;
  /** The ledger could not be asked: this process goes on with what it knows itself. */
  readonly onFailure: (error: unknown) => void;
};

export type TakenBytes =
  /** `settle` once, when it is known whether they count. */
  | { readonly type: "taken"; readonly settle: (isCounted: boolean) => void }
  | { readonly type: "denied"; readonly retryAfterSeconds: number };

const partsPerLimit = 64;

type Window = {
  readonly startMs: number;
  readonly rate: RateLimit;
  /** As the ledger said last, with what was told it from here. */
  told: number;
  /** Counted here, and not told yet. */
  untold: number;
  /** Taken by what is not decided yet. */
  open: number;
  telling: Promise<void> | undefined;
  isKnown: boolean;
};

export class ByteBudget {
  readonly #options: ByteBudgetOptions;
  readonly #windows = new Map<string, Window>();

  constructor(options: ByteBudgetOptions) {
    this.#options = options;
  }

  /** At once, but for the first call of a window, which asks the ledger. */
  take(meshId: string, bytes: number): TakenBytes | Promise<TakenBytes> {
    const window = this.#windowOf(meshId);
    if (window.isKnown) return this.#takeFrom(window, meshId, bytes);
    return this.#tell(meshId, window).then(() => this.#takeFrom(window, meshId, bytes));
  }

  #takeFrom(window: Window, meshId: string, bytes: number): TakenBytes {
    const { limit } = window.rate;
    const used = window.told + window.untold + window.open;
    // What is larger than the whole budget passes in a window of its own: else it never would.
    if (used > 0 && used + bytes > limit) {
      return { type: "denied", retryAfterSeconds: retryAfterSeconds(window.rate, this.#options.nowMs()) };
    }
    window.open += bytes;
    return {
      type: "taken",
      settle: (isCounted) => {
        window.open -= bytes;
        if (!isCounted) return;
        window.untold += bytes;
        if (window.untold >= limit / partsPerLimit) void this.#tell(meshId, window);
      },
    };
  }

  #windowOf(meshId: string): Window {
    const { rate: usual, rateOf, nowMs } = this.#options;
    const rate = rateOf?.(meshId) ?? usual;
    const startMs = windowStartMs(rate, nowMs());
    const known = this.#windows.get(meshId);
    if (
      known?.startMs === startMs &&
      known.rate.limit === rate.limit &&
      known.rate.windowSeconds === rate.windowSeconds
    ) {
      return known;
    }
    this.#forgetOld();
    const window = { startMs, rate, told: 0, untold: 0, open: 0, telling: undefined, isKnown: false };
    this.#windows.set(meshId, window);
    return window;
  }

  /** Meshes that wrote in windows which have ended; looked for once per new window, so that memory follows those that write. */
  #forgetOld(): void {
    for (const [meshId, { startMs, rate }] of this.#windows) {
      if (startMs + rate.windowSeconds * 1000 <= this.#options.nowMs()) this.#windows.delete(meshId);
    }
  }

  /** One at a time for each window; what is counted meanwhile goes with the next. */
  #tell(meshId: string, window: Window): Promise<void> {
    window.telling ??= this.#tellNow(meshId, window).finally(() => {
      window.telling = undefined;
    });
    return window.telling;
  }

  async #tellNow(meshId: string, window: Window): Promise<void> {
    const { ledger, onFailure } = this.#options;
    const bytes = window.untold;
    window.untold = 0;
    // Until there is an answer they count as told.
    window.told += bytes;
    try {
      const total = await ledger.add(meshId, window.startMs, window.rate.windowSeconds, bytes);
      window.told = Math.max(window.told, total);
    } catch (error) {
      onFailure(error);
    }
    window.isKnown = true;
  }
}
