// Keeps a lease alive while an effect runs, and aborts a signal when it is lost. The end of the lease is computed from
// this process's own clock and the moment at which a request was sent, so that no difference between clocks can make a
// lost lease look alive (REG-13).
import { backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import type { OnceClock } from "./once-clock.ts";

export type KeptLease = {
  /** Aborted with the reason when the lease is lost. */
  readonly signal: AbortSignal;
  readonly stop: () => void;
};

export type LeaseTerms = {
  readonly clock: OnceClock;
  readonly random: () => number;
  readonly leaseMs: number;
  /** When the request that got the lease was sent. */
  readonly sinceMs: number;
  readonly renew: () => Promise<unknown>;
  readonly isTransient: (error: unknown) => boolean;
  /** The reason with which the signal is aborted; `cause` is undefined where time ran out. */
  readonly lost: (cause: unknown) => Error;
};

const retryBackoff = { minMs: 100, maxMs: 2_000 };

export function keepLease(terms: LeaseTerms): KeptLease {
  const lost = new AbortController();
  const stopped = new AbortController();
  // Every end of the loop becomes an abort, so no rejection can be lost.
  renewUntil(terms, stopped.signal).then(
    (cause) => {
      if (!stopped.signal.aborted) lost.abort(terms.lost(cause));
    },
    (error: unknown) => lost.abort(terms.lost(error)),
  );
  return { signal: lost.signal, stop: () => stopped.abort() };
}

/** Ends when it is stopped or when the lease is lost: with the refusal, or with undefined when time ran out. */
async function renewUntil(terms: LeaseTerms, stopped: AbortSignal): Promise<unknown> {
  const { clock, leaseMs } = terms;
  let endsAtMs = terms.sinceMs + leaseMs;
  let waitMs = leaseMs / 3;
  let failures = 0;
  for (;;) {
    await clock.sleep(Math.min(waitMs, endsAtMs - clock.monotonicMs()), stopped);
    const askedAtMs = clock.monotonicMs();
    if (stopped.aborted || askedAtMs >= endsAtMs) return undefined;
    const outcome = await renewBefore(terms, endsAtMs, stopped);
    if (outcome.type === "renewed") {
      endsAtMs = askedAtMs + leaseMs;
      waitMs = leaseMs / 3;
      failures = 0;
    } else if (outcome.type === "refused" && !terms.isTransient(outcome.error)) {
      return outcome.error;
    } else {
      failures += 1;
      waitMs = backoffDelayMs(failures, terms.random(), retryBackoff);
    }
  }
}

type Renewal =
  | { readonly type: "renewed" }
  | { readonly type: "refused"; readonly error: unknown }
  | { readonly type: "out_of_time" };

/** An answer after the end of the lease counts as no answer. */
async function renewBefore(terms: LeaseTerms, endsAtMs: number, stopped: AbortSignal): Promise<Renewal> {
  const answered = new AbortController();
  const renewing: Promise<Renewal> = terms.renew().then(
    () => ({ type: "renewed" }),
    (error: unknown) => ({ type: "refused", error }),
  );
  const giveUp = AbortSignal.any([answered.signal, stopped]);
  const ending = terms.clock
    .sleep(endsAtMs - terms.clock.monotonicMs(), giveUp)
    .then((): Renewal => ({ type: "out_of_time" }));
  const first = await Promise.race([renewing, ending]);
  answered.abort();
  return first;
}
