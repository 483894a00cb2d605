// The arithmetic of the limiter: windows aligned to the epoch, so that every broker divides time at the same moments.

export type RateLimit = { readonly limit: number; readonly windowSeconds: number };

export const defaultRateLimit: RateLimit = { limit: 6000, windowSeconds: 60 };

export function windowStartMs(rate: RateLimit, nowMs: number): number {
  const windowMs = rate.windowSeconds * 1000;
  return Math.floor(nowMs / windowMs) * windowMs;
}

/** Whole seconds until the next window, at least one. */
export function retryAfterSeconds(rate: RateLimit, nowMs: number): number {
  const restMs = windowStartMs(rate, nowMs) + rate.windowSeconds * 1000 - nowMs;
  return Math.max(1, Math.ceil(restMs / 1000));
}

/** `6000/60s`: so many new messages of one mesh in so many seconds. */
export function parseRateLimit(text: string): RateLimit | undefined {
  const match = /^([1-9][0-9]{0,11})\/([1-9][0-9]{0,4})s$/.exec(text);
  if (match === null) return undefined;
  return { limit: Number(match[1]), windowSeconds: Number(match[2]) };
}
