import { describe, expect, it } from "vitest";
import { createLogLimiter, isWorthLogging } from "./log-limiter.ts";

describe("a log limiter", () => {
  it("lets so many entries through per interval, and says how many it left out", () => {
    const limiter = createLogLimiter(2, 1_000);
    expect([0, 1, 2, 3, 999].map((nowMs) => limiter.admit(nowMs))).toEqual([
      { type: "write", leftOut: 0 },
      { type: "write", leftOut: 0 },
      { type: "leave_out" },
      { type: "leave_out" },
      { type: "leave_out" },
    ]);
    expect(limiter.admit(1_000)).toEqual({ type: "write", leftOut: 3 });
    expect(limiter.admit(1_001)).toEqual({ type: "write", leftOut: 0 });
  });

  it("finds a failing row worth logging after 1, 2, 4, 8 … tries", () => {
    const worth = Array.from({ length: 20 }, (_, attempts) => attempts).filter(isWorthLogging);
    expect(worth).toEqual([1, 2, 4, 8, 16]);
  });
});
