import { describe, expect, it } from "vitest";
import type { Figures } from "./accept-figures.ts";
import {
  apiRow,
  apiSegment,
  inProcessRow,
  limiterSegment,
  oursSegment,
  rawSegment,
  shapes,
  transportSegment,
} from "./broker-accept-figures.ts";

const figures = (perSecond: number): Figures => ({ perSecond, p50Ms: 1, p99Ms: 2 });
const shape = { outstanding: 64, meshes: 1 };

describe("the broker's accepts", () => {
  it("are measured at 64 and 512 outstanding, on one mesh and on eight", () => {
    expect(shapes.map(({ outstanding, meshes }) => [outstanding, meshes])).toEqual([
      [64, 1],
      [512, 1],
      [64, 8],
      [512, 8],
    ]);
  });

  it("in process are compared with the statements of the same round alone, and the limiter is shown beside them", () => {
    const round = (raw: number, ours: number) =>
      new Map([
        [rawSegment("postgres", shape), figures(raw)],
        [limiterSegment(shape), figures(80_000)],
        [oursSegment("postgres", shape), figures(ours)],
      ]);
    const row = inProcessRow([round(10_000, 8_000), round(1_000, 900)], "postgres", shape);
    expect(row.ratios.map((ratio) => ratio.toFixed(2))).toEqual(["0.80", "0.90"]);
    expect(row.layers.map((layer) => layer?.median)).toEqual([5_500, 80_000]);
  });

  it("through the API are compared with transport, storage and limiter in a row", () => {
    const round = new Map([
      [transportSegment("http", 64), figures(20_000)],
      [rawSegment("sqlite", shape), figures(20_000)],
      [rawSegment("postgres", shape), figures(20_000)],
      [limiterSegment(shape), figures(10_000)],
      [apiSegment("sqlite", "http", shape), figures(8_000)],
      [apiSegment("postgres", "http", shape), figures(4_000)],
    ]);
    expect(apiRow([round], "sqlite", "http", shape).ratios[0]).toBeCloseTo(0.8, 9);
    expect(apiRow([round], "postgres", "http", shape).ratios[0]).toBeCloseTo(0.8, 9);
    expect(() => apiRow([round], "sqlite", "websocket", shape)).toThrow("no segment");
  });
});
