import { describe, expect, it } from "vitest";
import type { Figures } from "./accept-figures.ts";
import {
  growth,
  idOrders,
  noopSegment,
  retryRatios,
  retrySegment,
  retryTables,
  sizeSegment,
  works,
} from "./broker-retry-figures.ts";

const figures = (perSecond: number): Figures => ({ perSecond, p50Ms: 1, p99Ms: 2 });

function round(noop: number, retry: number, small: number, large: number) {
  const sizes = works.flatMap((work) =>
    idOrders.flatMap((ids): [string, Figures][] => [
      [sizeSegment("sqlite", work, ids, "small"), figures(small)],
      [sizeSegment("sqlite", work, ids, "large"), figures(large)],
    ]),
  );
  return new Map([[noopSegment("sqlite"), figures(noop)], [retrySegment("sqlite"), figures(retry)], ...sizes]);
}

describe("retries and large stores", () => {
  const rounds = [round(10_000, 8_000, 13_000, 10_000), round(1_000, 700, 1_100, 1_000)];

  it("compare a retry with the no-op of its own round", () => {
    expect(retryRatios(rounds, "sqlite")).toEqual([0.8, 0.7]);
  });

  it("say how many times as long one takes with the large store", () => {
    expect(growth(rounds, "sqlite", "accept", "random")).toEqual([1.3, 1.1]);
  });

  it("name both sizes in the table, and have a row for each work and order of ids", () => {
    const [, sizes] = retryTables(rounds, ["sqlite"], { small: "10,000", large: "500,000" });
    expect(sizes?.columns).toContain("500,000 rows");
    expect(sizes?.rows.map((cells) => cells.slice(1, 3))).toEqual([
      ["accept", "time-ordered"],
      ["retry over HTTP", "time-ordered"],
      ["retry", "time-ordered"],
      ["accept", "random"],
      ["retry over HTTP", "random"],
      ["retry", "random"],
    ]);
  });
});
