import { describe, expect, test } from "vitest";
import { judgeWebhookTry, type WebhookTry } from "./webhook-delivery.ts";

const rules = { attemptsMax: 3, backoff: { minMs: 1_000, maxMs: 60_000 } };
const answered = (status: number, retryAfterMs = 0): WebhookTry => ({ type: "answered", status, retryAfterMs });
const judge = (tried: WebhookTry, attempts = 1, random = 0) => judgeWebhookTry(tried, attempts, rules, 5_000, random);

describe("a try of a webhook's delivery", () => {
  test.for([200, 201, 204, 299])("that is answered with %i is delivered, also when it was the last", (status) => {
    expect(judge(answered(status), 3)).toEqual({ state: "delivered", status });
  });

  test.for([100, 199, 300, 301, 307, 400, 404, 410, 429, 500, 503])(
    "that is answered with %i is tried again",
    (status) => {
      expect(judge(answered(status))).toMatchObject({
        state: "pending",
        status,
        error: expect.stringContaining(`${status}`),
      });
    },
  );

  test("that has no answer is tried again after a delay that grows and is drawn at random", () => {
    const failed: WebhookTry = { type: "failed", reason: "ECONNREFUSED" };
    const again = { state: "pending", dueAtMs: 6_000, status: undefined, error: "ECONNREFUSED", failed: true };
    expect(judge(failed, 1, 0)).toEqual(again);
    expect(judge(failed, 2, 0.999_999)).toMatchObject({ dueAtMs: 5_000 + 4_000 });
  });

  test("that is asked to wait waits that long, and no longer than the longest delay", () => {
    expect(judge(answered(429, 30_000))).toMatchObject({ dueAtMs: 35_000 });
    expect(judge(answered(503, 86_400_000))).toMatchObject({ dueAtMs: 65_000 });
  });

  test("that the broker itself broke off is due again at once, and parks nothing", () => {
    expect(judge({ type: "interrupted" }, 3)).toMatchObject({ state: "pending", dueAtMs: 5_000, failed: false });
  });

  test("that was the last one parks the delivery", () => {
    expect(judge(answered(500), 3)).toEqual({ state: "parked", status: 500, error: "answered 500" });
    expect(judge(answered(302), 4)).toMatchObject({ state: "parked", error: expect.stringContaining("not followed") });
  });
});
