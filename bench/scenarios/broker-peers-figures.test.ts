import { describe, expect, it } from "vitest";
import { type PeerFigures, peerTable, ratiosTo } from "./broker-peers-figures.ts";

const figures = (perSecond: number): PeerFigures => ({ perSecond, p50Ms: 1, p99Ms: Number.NaN, answered: perSecond });

const rounds = [
  new Map([
    ["ours, 64 callers", figures(10_000)],
    ["pg-boss send, 64 callers", figures(1_000)],
    ["Redis streams, 64 callers", figures(50_000)],
    ["ours, 512 callers", figures(20_000)],
    ["pg-boss send, 512 callers", figures(4_000)],
  ]),
  new Map([
    ["ours, 64 callers", figures(6_000)],
    ["pg-boss send, 64 callers", figures(1_200)],
    ["Redis streams, 64 callers", figures(40_000)],
    ["ours, 512 callers", figures(18_000)],
    ["pg-boss send, 512 callers", figures(2_000)],
  ]),
];
describe("the table of peers", () => {
  it("compares within a round and a number of callers, never across them", () => {
    expect(ratiosTo(rounds, "ours", "pg-boss send", 64)).toEqual([10, 5]);
    expect(ratiosTo(rounds, "ours", "pg-boss send", 512)).toEqual([5, 9]);
  });

  it("shows flushes as they were counted, and a dash for a quantile that is not known", () => {
    const rows = [{ name: "ours", version: "1", durability: "", flushes: "0.020" }];
    const [cells] = peerTable(rounds, rows, "pg-boss send", 64).rows;
    expect(cells).toEqual(["ours", "1", "8,000 (7,000–9,000)", "7.50 (6.25–8.75)", "0.020", "1.00 (1.00–1.00)", "–"]);
  });

  it("keeps a line for a peer that was not there", () => {
    const absent = {
      name: "NATS JetStream",
      version: "skipped: it does not answer here",
      durability: "",
      flushes: "–",
    };
    expect(peerTable(rounds, [absent], "pg-boss send", 64).rows).toEqual([
      ["NATS JetStream", absent.version, "–", "–", "–", "–", "–"],
    ]);
  });
});
