// Windows and their rest, and the text that sets a rate.
import { describe, expect, test } from "vitest";
import { parseRateLimit, retryAfterSeconds, windowStartMs } from "./rate-limit.ts";

const rate = { limit: 10, windowSeconds: 60 };

describe("a window", () => {
  test("is aligned to the epoch, so that every broker divides time at the same moments", () => {
    expect(windowStartMs(rate, 0)).toBe(0);
    expect(windowStartMs(rate, 59_999)).toBe(0);
    expect(windowStartMs(rate, 60_000)).toBe(60_000);
    expect(windowStartMs({ limit: 1, windowSeconds: 7 }, 1_700_000_000_123)).toBe(1_699_999_994_000);
    expect(1_699_999_994_000 % 7_000).toBe(0);
  });

  test("says how many whole seconds are left, at least one", () => {
    expect(retryAfterSeconds(rate, 60_000)).toBe(60);
    expect(retryAfterSeconds(rate, 60_001)).toBe(60);
    expect(retryAfterSeconds(rate, 61_000)).toBe(59);
    expect(retryAfterSeconds(rate, 119_000)).toBe(1);
    expect(retryAfterSeconds(rate, 119_999)).toBe(1);
  });
});

describe("the text of a rate", () => {
  test("is <messages>/<seconds>s", () => {
    expect(parseRateLimit("6000/60s")).toEqual({ limit: 6000, windowSeconds: 60 });
    expect(parseRateLimit("1/1s")).toEqual({ limit: 1, windowSeconds: 1 });
  });

  test.each(["", "6000", "6000/60", "6000/60m", "0/60s", "10/0s", "-1/60s", "1.5/60s", " 1/1s", "1/1s ", "1e3/60s"])(
    "%j is none",
    (text) => expect(parseRateLimit(text)).toBeUndefined(),
  );
});
