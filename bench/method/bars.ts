// A bar is a promise about a ratio. It is judged on the median over the clean rounds, and on nothing else.
import { type Summary, summarise } from "./statistics.ts";

export type Bar = {
  readonly name: string;
  readonly kind: "at_least" | "at_most";
  readonly limit: number;
};

type Verdict = "pass" | "miss" | "inconclusive";

export type JudgedBar = Bar & { readonly ratio: Summary | undefined; readonly verdict: Verdict };

/** Without ratios, because too few rounds were clean, nothing is concluded. */
export function judgeBar(bar: Bar, ratios: readonly number[] | undefined): JudgedBar {
  if (ratios === undefined) return { ...bar, ratio: undefined, verdict: "inconclusive" };
  const ratio = summarise(ratios);
  const kept = bar.kind === "at_least" ? ratio.median >= bar.limit : ratio.median <= bar.limit;
  return { ...bar, ratio, verdict: kept ? "pass" : "miss" };
}
