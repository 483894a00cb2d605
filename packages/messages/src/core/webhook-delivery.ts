// Every state that a webhook's delivery can be in, and every step between them. A store reads a row, asks here what
// becomes of it, and writes that with a compare-and-set.
//
// pending → delivered | pending | parked | expired; parked, delivered, expired → pending by a replay, which also brings
// forward what waits for its next try. A delivery that is being tried is pending with `due_at` in the future: when its
// broker dies, it comes due by the clock alone.
import { type BackoffBounds, backoffDelayMs } from "@claudemesh/protocol/messages/backoff";

export const webhookDeliveryStates = ["pending", "delivered", "parked", "expired"] as const;
export type WebhookDeliveryState = (typeof webhookDeliveryStates)[number];

/** How one try ended. Whatever is not a 2xx answer is a failure, redirects included. */
export type WebhookTry =
  | { readonly type: "answered"; readonly status: number; readonly retryAfterMs: number }
  | { readonly type: "failed"; readonly reason: string }
  /** The broker broke the request off, for reasons of its own: how it would have ended is not known. */
  | { readonly type: "interrupted" };

export type WebhookRetryRules = { readonly attemptsMax: number; readonly backoff: BackoffBounds };

export type JudgedTry =
  | { readonly state: "delivered"; readonly status: number }
  | {
      readonly state: "pending";
      readonly dueAtMs: number;
      readonly status: number | undefined;
      readonly error: string;
      /** False where the broker broke the try off: that is no failure of the receiver. */
      readonly failed: boolean;
    }
  | { readonly state: "parked"; readonly status: number | undefined; readonly error: string };

/** `attempts` counts this try; `random` is in [0, 1). */
export function judgeWebhookTry(
  tried: WebhookTry,
  attempts: number,
  rules: WebhookRetryRules,
  nowMs: number,
  random: number,
): JudgedTry {
  if (tried.type === "interrupted") {
    return { state: "pending", dueAtMs: nowMs, status: undefined, error: "the broker was stopping", failed: false };
  }
  const status = tried.type === "answered" ? tried.status : undefined;
  if (status !== undefined && status >= 200 && status < 300) return { state: "delivered", status };
  const error = tried.type === "failed" ? tried.reason : describeStatus(tried.status);
  if (attempts >= rules.attemptsMax) return { state: "parked", status, error };
  // A receiver may ask for a longer delay, up to the longest that the rules allow.
  const requestedMs = tried.type === "answered" ? Math.min(tried.retryAfterMs, rules.backoff.maxMs) : 0;
  const dueAtMs = nowMs + backoffDelayMs(attempts, random, rules.backoff, requestedMs);
  return { state: "pending", dueAtMs, status, error, failed: true };
}

function describeStatus(status: number): string {
  if (status >= 300 && status < 400) return `answered ${status}; redirects are not followed`;
  return `answered ${status}`;
}
