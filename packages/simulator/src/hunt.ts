// Runs plan after plan with fresh seeds, adds up what they did, and makes the first failure small.
import { drawPlan } from "./core/draw-plan.ts";
import { hourMs, type Plan } from "./core/plan.ts";
import { shrink } from "./core/shrink.ts";
import type { Regression } from "./regressions.ts";
import { type RunReport, runPlan } from "./run.ts";
import type { Plants } from "./world/world.ts";

export const runHoursDefault = 24;

export type Totals = {
  readonly runs: number;
  readonly hours: number;
  readonly operations: number;
  readonly faults: number;
  readonly committed: number;
  /** How often each operation got each answer. */
  readonly outcomes: ReadonlyMap<string, number>;
  readonly faultKinds: ReadonlyMap<string, number>;
};

export type Hunt = { readonly totals: Totals; readonly failed: RunReport | undefined };

export type HuntOptions = {
  readonly firstSeed: number;
  /** Undefined: until something fails. */
  readonly hours: number | undefined;
  readonly runHours?: number;
  readonly onRun?: (report: RunReport, totals: Totals) => void;
};

export async function hunt({ firstSeed, hours, runHours = runHoursDefault, onRun }: HuntOptions): Promise<Hunt> {
  let totals: Totals = {
    runs: 0,
    hours: 0,
    operations: 0,
    faults: 0,
    committed: 0,
    outcomes: new Map(),
    faultKinds: new Map(),
  };
  for (let seed = firstSeed; hours === undefined || totals.hours < hours; seed++) {
    const report = await runPlan(drawPlan(seed, runHours));
    totals = add(totals, report);
    onRun?.(report, totals);
    if (report.violation !== undefined) return { totals, failed: report };
  }
  return { totals, failed: undefined };
}

function add(totals: Totals, report: RunReport): Totals {
  return {
    runs: totals.runs + 1,
    hours: totals.hours + report.hours,
    operations: totals.operations + report.operations,
    faults: totals.faults + report.faults,
    committed: totals.committed + report.committed,
    outcomes: sumOf(totals.outcomes, report.outcomes),
    faultKinds: sumOf(totals.faultKinds, report.faultKinds),
  };
}

function sumOf(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): Map<string, number> {
  const sum = new Map(a);
  for (const [kind, count] of b) sum.set(kind, (sum.get(kind) ?? 0) + count);
  return sum;
}

/** Undefined: the plan does not fail. */
export async function makeSmall(plan: Plan, triesMax: number, plants: Plants = {}): Promise<Regression | undefined> {
  const { violation, hours, seed } = await runPlan(plan, plants);
  if (violation === undefined) return undefined;
  const { oracle } = violation;
  const stillFails = async (candidate: Plan) => (await runPlan(candidate, plants)).violation?.oracle === oracle;
  const small = await shrink(plan, hours * hourMs, stillFails, triesMax);
  const said = (await runPlan(small, plants)).violation?.message ?? violation.message;
  return { seed, oracle, said, plan: small };
}
