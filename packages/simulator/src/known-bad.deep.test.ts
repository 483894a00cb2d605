// That the oracles are awake: each of these faults is planted, and some run within a few seeds names it.
import { expect, test } from "vitest";
import { drawPlan } from "./core/draw-plan.ts";
import type { Plan } from "./core/plan.ts";
import { makeSmall } from "./hunt.ts";
import { runPlan } from "./run.ts";
import { type KnownBad, knownBadMessages } from "./testing/known-bad.ts";
import { knownBadAgents } from "./testing/known-bad-agents.ts";

const seedsMax = 12;

async function expectNamed({ named, plants }: KnownBad, draw: (seed: number) => Plan): Promise<void> {
  const found: string[] = [];
  for (let seed = 1; found.length === 0 && seed <= seedsMax; seed++) {
    const { violation } = await runPlan(draw(seed), plants);
    if (violation !== undefined) found.push(violation.oracle);
  }
  expect(named).toContain(found[0]);
}

test.each(knownBadMessages)("$what: is named", (bad) => expectNamed(bad, (seed) => drawPlan(seed, 6, 0)));

test.each(knownBadAgents)("$what: is named", (bad) => expectNamed(bad, (seed) => drawPlan(seed, 4, 2)));

test("what is found is made small and still fails in the same way", async () => {
  const [{ plants } = { plants: {} }] = knownBadMessages.filter(({ what }) => what.startsWith("an acknowledgement"));
  const plan = drawPlan(1, 2, 0);
  const small = await makeSmall(plan, 120, plants);
  expect(small?.oracle).toBe("queue_wrong");
  expect(small?.plan.operations.length).toBeLessThanOrEqual(8);
  expect(small?.plan.faults).toEqual([]);
  expect((await runPlan(small?.plan ?? plan, plants)).violation?.oracle).toBe("queue_wrong");
  expect((await runPlan(small?.plan ?? plan)).violation).toBeUndefined();
});
