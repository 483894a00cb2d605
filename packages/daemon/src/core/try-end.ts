// What the end of one try does to its row, as values for the store. The judgement is the protocol's; here it meets the
// clock, the backoff and the text that people read in `last_error`.
import assert from "node:assert/strict";
import type { LinkOutcome } from "@claudemesh/client/internal/link-contract";
import { isErrorBody } from "@claudemesh/protocol/errors";
import { type BackoffBounds, backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import { judgeTry, type TryOutcome } from "@claudemesh/protocol/messages/outbox-row";

export type Acceptance = {
  readonly brokerMessageId: string;
  readonly historyId: number;
  /** False: the broker kept the id and has dropped the message. */
  readonly historyAvailable: boolean;
};

export type TryEnd =
  | { readonly next: "done"; readonly acceptance: Acceptance }
  | { readonly next: "dead"; readonly lastError: string; readonly fenced: boolean }
  | { readonly next: "pending"; readonly unanswered: 0 | 1; readonly nextAttemptAt: number; readonly lastError: string }
  /** No byte left the host: no try took place. */
  | { readonly next: "put_back" };

/** What the end of one try says about trying other rows. */
export type DrainSignal =
  | { readonly type: "flows" }
  /** The broker refuses the member, not the row. */
  | { readonly type: "unauthorized"; readonly detail: string }
  | { readonly type: "rate_limited"; readonly retryAfterMs: number }
  /** The broker could not deal with it; the next row would fare no better just now. */
  | { readonly type: "troubled" }
  | { readonly type: "not_sent" };

export type TryFacts = {
  /** Tries that ended before this one. */
  readonly attempts: number;
  readonly nowMs: number;
  /** In [0, 1). */
  readonly random: number;
  readonly backoff: BackoffBounds;
};

const lastErrorCharacters = 300;
/** A broker that asks for more is asked again after this long anyway. */
const retryAfterMsMax = 3_600_000;

export function endTry(outcome: LinkOutcome, facts: TryFacts): { readonly end: TryEnd; readonly signal: DrainSignal } {
  if (outcome.type === "not_sent") return { end: { next: "put_back" }, signal: { type: "not_sent" } };
  const understood = understand(outcome);
  if ("acceptance" in understood) {
    return { end: { next: "done", acceptance: understood.acceptance }, signal: { type: "flows" } };
  }
  const verdict = judgeTry(understood.outcome);
  assert(verdict.next !== "done", "a success was read above");
  const lastError = describeOutcome(outcome);
  if (verdict.next === "dead") {
    return { end: { next: "dead", lastError, fenced: isFenced(outcome) }, signal: { type: "flows" } };
  }
  const unanswered = verdict.counts === "unanswered" ? 1 : 0;
  if (verdict.retry === "after_hello") {
    const end: TryEnd = { next: "pending", unanswered, nextAttemptAt: facts.nowMs, lastError };
    return { end, signal: { type: "unauthorized", detail: lastError } };
  }
  const rateLimited = outcome.type === "answered" && outcome.status === 429;
  const retryAfterMs = rateLimited ? readRetryAfterMs(outcome.body) : 0;
  const delayMs = backoffDelayMs(facts.attempts + 1, facts.random, facts.backoff, retryAfterMs);
  const end: TryEnd = { next: "pending", unanswered, nextAttemptAt: facts.nowMs + delayMs, lastError };
  return { end, signal: rateLimited ? { type: "rate_limited", retryAfterMs } : { type: "troubled" } };
}

/** The ids of a 200 or 201; undefined where the answer lacks them. */
export function readAcceptance(body: unknown): Acceptance | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { broker_message_id, history_id, history_available } = body as Record<string, unknown>;
  if (typeof broker_message_id !== "string" || broker_message_id === "") return undefined;
  if (typeof history_id !== "number" || !Number.isSafeInteger(history_id)) return undefined;
  return { brokerMessageId: broker_message_id, historyId: history_id, historyAvailable: history_available !== false };
}

/** A success that names no message cannot be recorded as one: it counts as unanswered, and the retry is a duplicate. */
function understand(
  outcome: TryOutcome & { readonly body?: unknown },
): { readonly acceptance: Acceptance } | { readonly outcome: TryOutcome } {
  if (outcome.type !== "answered" || (outcome.status !== 200 && outcome.status !== 201)) return { outcome };
  const acceptance = readAcceptance(outcome.body);
  return acceptance === undefined ? { outcome: { type: "connection_lost" } } : { acceptance };
}

function isFenced(outcome: LinkOutcome): boolean {
  return outcome.type === "answered" && isErrorBody(outcome.body) && outcome.body.error === "fenced";
}

function readRetryAfterMs(body: unknown): number {
  const seconds = typeof body === "object" && body !== null ? (body as Record<string, unknown>).retry_after_s : 0;
  if (typeof seconds !== "number" || !(seconds > 0)) return 0;
  return Math.min(Math.ceil(seconds * 1000), retryAfterMsMax);
}

/** One line for `last_error`: a stable code, then words. */
export function describeOutcome(outcome: LinkOutcome): string {
  switch (outcome.type) {
    case "timed_out":
      return "timed_out: the broker did not answer in time";
    case "connection_lost":
      return "connection_lost: the connection ended before the answer came";
    case "not_sent":
      return "not_sent: the connection was down";
    case "answered": {
      const text = isErrorBody(outcome.body)
        ? `${outcome.body.error}: ${outcome.body.message}`
        : `status_${outcome.status}: the broker's answer was not understood`;
      return text.slice(0, lastErrorCharacters);
    }
  }
}
