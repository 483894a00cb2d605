// How long to wait before a transaction runs again. Pure: the randomness comes in.

export interface RetryPolicy {
  /** Runs of the body in all. */
  attempts: number;
  firstDelayMs: number;
  maxDelayMs: number;
}

export const defaultRetryPolicy: RetryPolicy = { attempts: 6, firstDelayMs: 5, maxDelayMs: 500 };

/** Full jitter: anything from nothing to a bound that doubles, so that those who collided do not meet again. */
export function retryDelayMs(policy: RetryPolicy, failures: number, random: number): number {
  const boundMs = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** (failures - 1));
  return Math.floor(random * boundMs);
}
