import { describe, expect, it } from "vitest";
import { createLogLimiter, isWorthALine } from "./log-limiter.ts";

describe("a log limiter", () => {
  it("lets so many lines through per interval, and tells how many it left out", () => {
    const limiter = createLogLimiter(2, 1_000);
    expect([0, 1, 2, 3, 999].map((nowMs) => limiter.admit(nowMs))).toEqual([
      { leftOut: 0 },
      { leftOut: 0 },
      undefined,
      undefined,
      undefined,
    ]);
    expect(limiter.admit(1_000)).toEqual({ leftOut: 3 });
    expect(limiter.admit(1_001)).toEqual({ leftOut: 0 });
  });

  it("finds a failing row worth a line after 1, 2, 4, 8 … tries", () => {
    const worth = Array.from({ length: 20 }, (_, attempts) => attempts).filter(isWorthALine);
    expect(worth).toEqual([1, 2, 4, 8, 16]);
  });
});
