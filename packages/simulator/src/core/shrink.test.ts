import { expect, test } from "vitest";
import { drawPlan } from "./draw-plan.ts";
import { shrink } from "./shrink.ts";

test("what the failure does not need is dropped, and what it needs stays", async () => {
  const plan = drawPlan(7, 12);
  const needed = [plan.operations[17], plan.operations[230]];
  const neededFault = plan.faults[3];
  let tries = 0;
  const small = await shrink(
    plan,
    plan.settings.rounds * 12 * 3_600_000,
    async ({ operations, faults }) => {
      tries++;
      return needed.every((each) => operations.includes(each as never)) && faults.includes(neededFault as never);
    },
    1_000,
  );
  expect(small.operations).toEqual(needed);
  expect(small.faults).toEqual([neededFault]);
  expect(tries).toBeLessThan(300);
});

test("rounds after the failure go first, and the number of tries is bounded", async () => {
  const plan = drawPlan(7, 12);
  const asked: number[] = [];
  const small = await shrink(
    plan,
    0,
    async ({ operations }) => {
      asked.push(operations.length);
      return asked.length === 1;
    },
    5,
  );
  expect(small.settings.rounds).toBe(1);
  expect(asked).toHaveLength(5);
});
