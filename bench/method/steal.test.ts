import { describe, expect, it } from "vitest";
import { parseCpuTimes, stealShare } from "./steal.ts";

const stat = (line: string) => `${line}\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu1 9 9 9 9 9 9 9 9 9 9\nintr 12345 0 0\n`;

describe("the kernel's CPU times", () => {
  it("are those of all cores together, with steal in the eighth column", () => {
    expect(parseCpuTimes(stat("cpu  100 2 30 400 5 0 6 70 0 0"))).toEqual({ total: 613, steal: 70 });
  });

  it("count a guest's time once, though user and nice hold it too", () => {
    expect(parseCpuTimes(stat("cpu  100 2 30 400 5 0 6 70 50 1"))).toEqual({ total: 613, steal: 70 });
  });

  it("are unknown where the line is missing or too old to have steal", () => {
    expect(parseCpuTimes("")).toBeUndefined();
    expect(parseCpuTimes("cpu0 1 2 3 4 5 6 7 8 9 10\n")).toBeUndefined();
    expect(parseCpuTimes(stat("cpu  100 2 30 400 5 0 6"))).toBeUndefined();
  });
});

describe("the share of stolen time", () => {
  it("is what grew between two readings", () => {
    expect(stealShare({ total: 1_000, steal: 50 }, { total: 2_000, steal: 130 })).toBeCloseTo(0.08, 12);
    expect(stealShare({ total: 1_000, steal: 50 }, { total: 1_400, steal: 50 })).toBe(0);
  });

  it("is unknown without two readings that are apart", () => {
    expect(stealShare(undefined, { total: 2, steal: 1 })).toBeUndefined();
    expect(stealShare({ total: 2, steal: 1 }, undefined)).toBeUndefined();
    expect(stealShare({ total: 2, steal: 1 }, { total: 2, steal: 1 })).toBeUndefined();
  });
});
