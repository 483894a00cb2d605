// That the oracles are awake: each of these faults is planted, and some run within a few seeds names it.
import { expect, test } from "vitest";
import { drawPlan } from "./core/draw-plan.ts";
import { makeSmall } from "./hunt.ts";
import { runPlan } from "./run.ts";
import { knownBad } from "./testing/known-bad.ts";

const seedsMax = 12;
const hours = 6;

test.each(knownBad)("$what: is named", async ({ named, plants }) => {
  const found: string[] = [];
  for (let seed = 1; found.length === 0 && seed <= seedsMax; seed++) {
    const { violation } = await runPlan(drawPlan(seed, hours), plants);
    if (violation !== undefined) found.push(violation.oracle);
  }
  expect(named).toContain(found[0]);
});

test("what is found is made small and still fails in the same way", async () => {
  const [{ plants } = { plants: {} }] = knownBad.filter(({ what }) => what.startsWith("an acknowledgement"));
  const plan = drawPlan(1, 2);
  const small = await makeSmall(plan, 120, plants);
  expect(small?.oracle).toBe("queue_wrong");
  expect(small?.plan.operations.length).toBeLessThanOrEqual(8);
  expect(small?.plan.faults).toEqual([]);
  expect((await runPlan(small?.plan ?? plan, plants)).violation?.oracle).toBe("queue_wrong");
  expect((await runPlan(small?.plan ?? plan)).violation).toBeUndefined();
});
