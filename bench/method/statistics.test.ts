import { describe, expect, it } from "vitest";
import { combineRates, quantile, summarise } from "./statistics.ts";

describe("a quantile", () => {
  it("is a value itself where one stands at its place, and lies between two where none does", () => {
    expect(quantile([1, 2, 3, 4, 5], 0.5)).toBe(3);
    expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
    expect(quantile([10, 20], 0.25)).toBe(12.5);
    expect(quantile(Float64Array.of(7), 0.99)).toBe(7);
    expect(quantile([1, 2, 3], 0)).toBe(1);
    expect(quantile([1, 2, 3], 1)).toBe(3);
  });

  it("of nothing is a bug of the caller", () => {
    expect(() => quantile([], 0.5)).toThrow("no values");
    expect(() => quantile([1], 1.5)).toThrow("between 0 and 1");
  });
});

describe("a summary", () => {
  it("sorts by size, not as text, and leaves its input alone", () => {
    const values = [9, 100, 20, 3, 1000];
    expect(summarise(values)).toEqual({ median: 20, lowerQuartile: 9, upperQuartile: 100, count: 5 });
    expect(values).toEqual([9, 100, 20, 3, 1000]);
  });
});

describe("combined rates", () => {
  it("add the times that the layers take, not their rates", () => {
    expect(combineRates([10_000, 10_000])).toBeCloseTo(5_000, 6);
    expect(combineRates([20_000, 5_000])).toBeCloseTo(4_000, 6);
    expect(combineRates([123])).toBeCloseTo(123, 9);
  });

  it("refuse a layer that was not measured", () => {
    expect(() => combineRates([])).toThrow();
    expect(() => combineRates([1_000, 0])).toThrow();
    expect(() => combineRates([1_000, Number.NaN])).toThrow();
  });
});
