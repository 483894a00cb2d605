// Failures that were found and made small, kept as plans: what was drawn from a seed once may be drawn otherwise by a
// later version, but a plan stays what it is.
import { readFileSync, writeFileSync } from "node:fs";
import type { Plan } from "./core/plan.ts";
import type { OracleName } from "./oracles/violation.ts";

export type Regression = {
  readonly seed: number;
  readonly oracle: OracleName;
  /** What the violation said. */
  readonly said: string;
  readonly plan: Plan;
};

const listFile = new URL("../regressions.json", import.meta.url);

export function readRegressions(file: URL = listFile): readonly Regression[] {
  return JSON.parse(readFileSync(file, "utf8")) as Regression[];
}

/** One failure of a kind is enough: the same oracle with the same seed is kept once. */
export function keepRegression(found: Regression, file: URL = listFile): void {
  const others = readRegressions(file).filter(({ seed, oracle }) => seed !== found.seed || oracle !== found.oracle);
  writeFileSync(file, `${JSON.stringify([...others, found], undefined, 2)}\n`);
}
