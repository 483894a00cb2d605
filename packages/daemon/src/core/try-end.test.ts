import { describe, expect, it } from "vitest";
import { describeOutcome, endTry } from "./try-end.ts";

const facts = { attempts: 0, nowMs: 1_000, random: 0, backoff: { minMs: 500, maxMs: 60_000 } };
const answered = (status: number, body: unknown) => ({ type: "answered", status, body }) as const;

describe("the end of a try", () => {
  it("waits longer the more tries have failed, up to the bound", () => {
    const delays = [0, 1, 2, 5, 50].map((attempts) => {
      const { end } = endTry({ type: "timed_out" }, { ...facts, attempts, random: 0.999_999 });
      return end.next === "pending" ? end.nextAttemptAt - facts.nowMs : undefined;
    });
    expect(delays).toEqual([1_000, 2_000, 4_000, 32_000, 60_000]);
  });

  it("never waits less than a 429 asks for, nor for ever", () => {
    const after = (retry_after_s: unknown) => {
      const { end, signal } = endTry(answered(429, { retry_after_s }), facts);
      const rowMs = end.next === "pending" ? end.nextAttemptAt - facts.nowMs : undefined;
      return [rowMs, signal.type === "rate_limited" ? signal.retryAfterMs : undefined];
    };
    expect(after(12)).toEqual([12_000, 12_000]);
    expect(after(0.2)).toEqual([500, 200]);
    expect(after(undefined)).toEqual([500, 0]);
    expect(after("soon")).toEqual([500, 0]);
    expect(after(-5)).toEqual([500, 0]);
    expect(after(1e12)).toEqual([3_600_000, 3_600_000]);
  });

  it("reads success only where the ids are there", () => {
    const ids = { broker_message_id: "b", history_id: 3 };
    expect(endTry(answered(201, ids), facts).end).toEqual({
      next: "done",
      acceptance: { brokerMessageId: "b", historyId: 3, historyAvailable: true },
    });
    for (const body of [undefined, null, {}, { broker_message_id: "b" }, { ...ids, history_id: "3" }]) {
      expect(endTry(answered(200, body), facts).end).toMatchObject({ next: "pending", unanswered: 1 });
    }
  });

  it("is described in one bounded text that begins with a code", () => {
    const long = { error: "invalid_request", message: "x".repeat(5_000), retryable: false };
    expect(describeOutcome(answered(400, long))).toHaveLength(300);
    expect(describeOutcome(answered(502, "<html>"))).toBe("status_502: the broker's answer was not understood");
  });
});
