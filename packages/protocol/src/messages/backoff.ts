// When to try again. Jitter keeps many clients from returning at the same moment; the lower bound limits the rate of
// every retry path.
// Why: docs/decisions/0006.

export type BackoffBounds = { readonly minMs: number; readonly maxMs: number };

export const defaultBackoff: BackoffBounds = { minMs: 500, maxMs: 60_000 };

/** For links to a broker: a broker that is back is found within five seconds, however long it was away. */
export const defaultReconnect: BackoffBounds = { minMs: 500, maxMs: 5_000 };

/**
 * A delay drawn evenly from [min, min(max, min · 2^attempts)], never below what the server asked for.
 * `attempts` is how many tries have failed so far (1 after the first); `random` is in [0, 1).
 */
export function backoffDelayMs(
  attempts: number,
  random: number,
  bounds: BackoffBounds = defaultBackoff,
  retryAfterMs = 0,
): number {
  const exponent = Math.min(Math.max(attempts, 1), 31);
  const ceilingMs = Math.max(bounds.minMs, Math.min(bounds.maxMs, bounds.minMs * 2 ** exponent));
  const drawnMs = bounds.minMs + Math.floor(random * (ceilingMs - bounds.minMs + 1));
  return Math.max(drawnMs, retryAfterMs);
}
