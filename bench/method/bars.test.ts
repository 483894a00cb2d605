import { describe, expect, it } from "vitest";
import { judgeBar } from "./bars.ts";

const throughput = { name: "throughput", kind: "at_least", limit: 0.75 } as const;
const latency = { name: "latency", kind: "at_most", limit: 1.8 } as const;

describe("a bar", () => {
  it("is judged on the median, whatever the best and the worst round say", () => {
    expect(judgeBar(throughput, [0.1, 0.75, 0.9]).verdict).toBe("pass");
    expect(judgeBar(throughput, [0.74, 0.74, 5]).verdict).toBe("miss");
    expect(judgeBar(latency, [1, 1.8, 9]).verdict).toBe("pass");
    expect(judgeBar(latency, [1, 1.81, 9]).verdict).toBe("miss");
  });

  it("is inconclusive without enough rounds, and then has no ratio to quote", () => {
    expect(judgeBar(latency, undefined)).toEqual({ ...latency, ratio: undefined, verdict: "inconclusive" });
  });
});
