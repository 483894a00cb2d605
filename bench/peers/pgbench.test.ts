import { describe, expect, it } from "vitest";
import { readPgbench } from "./pgbench.ts";

describe("pgbench's report", () => {
  it("gives the rate and the mean latency, and no quantile that is not in it", () => {
    const output =
      "latency average = 3.512 ms\ninitial connection time = 40.1 ms\ntps = 18221.52 (without initial connection time)\n";
    expect(readPgbench(output)).toEqual({ perSecond: 18_221.52, p50Ms: 3.512, p99Ms: Number.NaN });
  });

  it("of a run that failed gives nothing", () => {
    expect(readPgbench("pgbench: error: connection to server failed")).toBeUndefined();
  });
});
