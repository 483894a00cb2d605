// That a run is decided by its seed and by nothing else, and that what was found once is not found again.
import { describe, expect, it, test } from "vitest";
import { drawPlan } from "./core/draw-plan.ts";
import { readRegressions } from "./regressions.ts";
import { runPlan } from "./run.ts";

describe("a run", () => {
  it("happens in the same way again, and in another way from another seed", async () => {
    const first = await runPlan(drawPlan(1, 1, 2));
    const again = await runPlan(drawPlan(1, 1, 2));
    const other = await runPlan(drawPlan(2, 1, 2));
    expect(first.violation).toBeUndefined();
    expect(first.events).toBeGreaterThan(1_000);
    expect(again.digest).toBe(first.digest);
    expect(other.digest).not.toBe(first.digest);
  });
});

test("what was found once is not found again", async () => {
  for (const { seed, oracle, plan } of readRegressions()) {
    const { violation } = await runPlan(plan);
    expect(violation, `the plan kept for ${oracle}, seed ${seed}`).toBeUndefined();
  }
});
