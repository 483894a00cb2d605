import { describe, expect, it } from "vitest";
import {
  type Figures,
  httpSegment,
  latencyRow,
  oursSegment,
  sealingSegment,
  sqliteSegment,
  throughputRow,
} from "./accept-figures.ts";

const topic = { name: "topic", sealed: false };
const dm = { name: "dm", sealed: true };

const figures = (perSecond: number, p50Ms = 1): Figures => ({ perSecond, p50Ms, p99Ms: p50Ms * 2 });

describe("throughput at many callers", () => {
  const round = (http: number, sqlite: number, ours: number) =>
    new Map([
      [httpSegment(64), figures(http)],
      [sqliteSegment("topic", 64), figures(sqlite)],
      [sqliteSegment("dm", 64), figures(sqlite)],
      [sealingSegment, figures(10_000)],
      [oursSegment("topic", 64), figures(ours)],
      [oursSegment("dm", 64), figures(ours)],
    ]);

  it("is compared with the layers of the same round, and with those of no other", () => {
    const row = throughputRow([round(20_000, 20_000, 8_000), round(2_000, 2_000, 900)], topic);
    expect(row.ratios.map((ratio) => ratio.toFixed(3))).toEqual(["0.800", "0.900"]);
    expect(row.bound.median).toBeCloseTo(5_500, 6);
    expect(row.layers.sealing).toBeUndefined();
  });

  it("counts sealing as a layer where messages are sealed", () => {
    const row = throughputRow([round(20_000, 20_000, 4_000)], dm);
    expect(row.bound.median).toBeCloseTo(5_000, 6);
    expect(row.ratios[0]).toBeCloseTo(0.8, 9);
    expect(row.layers.sealing?.median).toBe(10_000);
  });

  it("cannot be told from a round that lacks a segment", () => {
    expect(() => throughputRow([new Map([[httpSegment(64), figures(1)]])], topic)).toThrow("no segment");
  });
});

describe("latency at one caller", () => {
  it("is compared with the sum of the layers' medians", () => {
    const round = new Map([
      [httpSegment(1), figures(20_000, 0.05)],
      [sqliteSegment("topic", 1), figures(5_000, 0.2)],
      [oursSegment("topic", 1), figures(2_500, 0.4)],
    ]);
    const row = latencyRow([round], topic);
    expect(row.bound.median).toBeCloseTo(0.25, 9);
    expect(row.ratios[0]).toBeCloseTo(1.6, 9);
    expect(row.p99Ms.median).toBeCloseTo(0.8, 9);
  });
});
