// The wait doubles up to its bound, and chance decides where below it.
import { expect, test } from "vitest";
import { retryDelayMs } from "./retry-delay.ts";

const policy = { attempts: 6, firstDelayMs: 10, maxDelayMs: 100 };

test("the bound doubles with each failure and then stays", () => {
  expect([1, 2, 3, 4, 5, 60].map((failures) => retryDelayMs(policy, failures, 1))).toEqual([10, 20, 40, 80, 100, 100]);
});

test("chance spreads the wait over everything below the bound", () => {
  expect([0, 0.25, 0.5, 0.999].map((random) => retryDelayMs(policy, 3, random))).toEqual([0, 10, 20, 39]);
});
