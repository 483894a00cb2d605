import { describe, expect, it } from "vitest";
import type { Figures } from "./accept-figures.ts";
import {
  elsewhereSegment,
  growth,
  growthTable,
  noopSegment,
  registerSegment,
  registrarTables,
  retrySegment,
  sizeSegment,
  statementsSegment,
} from "./registrar-figures.ts";

const figures = (perSecond: number): Figures => ({ perSecond, p50Ms: 1, p99Ms: 2 });
const store = "sqlite";

function round(alone: number, registered: number, noop: number, retried: number) {
  return new Map([
    [statementsSegment(store), figures(alone)],
    [registerSegment(store), figures(registered)],
    [elsewhereSegment(store), figures(registered / 2)],
    [noopSegment(store), figures(noop)],
    [retrySegment(store), figures(retried)],
  ]);
}

describe("the registrar's figures", () => {
  const rounds = [round(1_000, 800, 10_000, 9_000), round(100, 70, 1_000, 600), round(100, 75, 1_000, 650)];

  it("show what was approved elsewhere beside what was approved here", () => {
    const [registered] = registrarTables(rounds, [store]);
    expect(registered?.rows.map((cells) => cells.slice(1, 3))).toEqual([
      ["here", "75 (73–438)"],
      ["elsewhere", "38 (36–219)"],
    ]);
  });

  it("say how many times as long one takes with the large store, and name both sizes", () => {
    const sized = new Map([
      [sizeSegment(store, "register", "small"), figures(130)],
      [sizeSegment(store, "register", "large"), figures(100)],
      [sizeSegment(store, "retry over HTTP", "small"), figures(140)],
      [sizeSegment(store, "retry over HTTP", "large"), figures(100)],
      [sizeSegment(store, "retry in process", "small"), figures(300)],
      [sizeSegment(store, "retry in process", "large"), figures(100)],
    ]);
    expect(growth([sized], store, "register")).toEqual([1.3]);
    const table = growthTable([sized], [store], { small: "1,000", large: "50,000" });
    expect(table.rows.map((cells) => cells.at(-1))).toEqual([
      "1.30 (1.30–1.30)",
      "1.40 (1.40–1.40)",
      "3.00 (3.00–3.00)",
    ]);
    expect(table.columns).toEqual(["store", "what", "1,000 registrations", "50,000 registrations", "small ÷ large"]);
  });
});
