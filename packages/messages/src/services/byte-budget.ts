// A budget in bytes per mesh and window, for writes that are too frequent to ask a ledger about each time. This process counts,
// and reports to the ledger a sixty-fourth of the limit at a time. So brokers side by side, and one that has just restarted,
// know everything that was spent but for the last such part of each broker, and counting costs a commit nothing.
// Why: docs/decisions/0118.
import { type RateLimit, retryAfterSeconds, windowStartMs } from "../core/rate-limit.ts";
import type { ByteLedger } from "../ports/byte-ledger.ts";

export type ByteBudgetOptions = {
  readonly ledger: ByteLedger;
  readonly rate: RateLimit;
  /** What the mesh's owner has chosen instead; undefined where the broker's own rate holds. */
  readonly rateOf?: ((meshId: string) => RateLimit | undefined) | undefined;
  readonly nowMs: () => number;
  /** The ledger could not be asked: this process goes on with what it knows itself. */
  readonly onFailure: (error: unknown) => void;
};

export type TakenBytes =
  /** Call `settle` once, when it is known whether the bytes count. */
  | { readonly type: "taken"; readonly settle: (isCounted: boolean) => void }
  | { readonly type: "denied"; readonly retryAfterSeconds: number };

const partsPerLimit = 64;

type Window = {
  readonly startMs: number;
  readonly rate: RateLimit;
  /** The sum that the ledger answered last, with what was reported to it since. */
  reported: number;
  /** Counted here, and not reported yet. */
  unreported: number;
  /** Taken by commits that are not decided yet. */
  open: number;
  reporting: Promise<void> | undefined;
  isKnown: boolean;
};

export class ByteBudget {
  readonly #options: ByteBudgetOptions;
  readonly #windows = new Map<string, Window>();

  constructor(options: ByteBudgetOptions) {
    this.#options = options;
  }

  /** Answers at once, but for the first call of a window, which asks the ledger. */
  take(meshId: string, bytes: number): TakenBytes | Promise<TakenBytes> {
    const window = this.#windowOf(meshId);
    if (window.isKnown) return this.#takeFrom(window, meshId, bytes);
    return this.#report(meshId, window).then(() => this.#takeFrom(window, meshId, bytes));
  }

  #takeFrom(window: Window, meshId: string, bytes: number): TakenBytes {
    const { limit } = window.rate;
    const used = window.reported + window.unreported + window.open;
    // A commit that is larger than the whole budget passes where it is the first of its window: otherwise it never would.
    if (used > 0 && used + bytes > limit) {
      return { type: "denied", retryAfterSeconds: retryAfterSeconds(window.rate, this.#options.nowMs()) };
    }
    window.open += bytes;
    return {
      type: "taken",
      settle: (isCounted) => {
        window.open -= bytes;
        if (!isCounted) return;
        window.unreported += bytes;
        if (window.unreported >= limit / partsPerLimit) void this.#report(meshId, window);
      },
    };
  }

  #windowOf(meshId: string): Window {
    const { rate: usual, rateOf, nowMs } = this.#options;
    const rate = rateOf?.(meshId) ?? usual;
    const startMs = windowStartMs(rate, nowMs());
    const current = this.#windows.get(meshId);
    if (
      current?.startMs === startMs &&
      current.rate.limit === rate.limit &&
      current.rate.windowSeconds === rate.windowSeconds
    ) {
      return current;
    }
    this.#forgetOld();
    const window = { startMs, rate, reported: 0, unreported: 0, open: 0, reporting: undefined, isKnown: false };
    this.#windows.set(meshId, window);
    return window;
  }

  /** Forgets windows that have ended. Called once per new window, so that memory grows with the meshes that write now. */
  #forgetOld(): void {
    for (const [meshId, { startMs, rate }] of this.#windows) {
      if (startMs + rate.windowSeconds * 1000 <= this.#options.nowMs()) this.#windows.delete(meshId);
    }
  }

  /** One report at a time for each window; what is counted meanwhile is in the next one. */
  #report(meshId: string, window: Window): Promise<void> {
    window.reporting ??= this.#reportNow(meshId, window).finally(() => {
      window.reporting = undefined;
    });
    return window.reporting;
  }

  async #reportNow(meshId: string, window: Window): Promise<void> {
    const { ledger, onFailure } = this.#options;
    const bytes = window.unreported;
    window.unreported = 0;
    // Until there is an answer the bytes count as reported.
    window.reported += bytes;
    try {
      const total = await ledger.add(meshId, window.startMs, window.rate.windowSeconds, bytes);
      window.reported = Math.max(window.reported, total);
    } catch (error) {
      onFailure(error);
    }
    window.isKnown = true;
  }
}
