import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { drawPlan } from "./core/draw-plan.ts";
import { keepRegression, readRegressions } from "./regressions.ts";

test("a failure is kept once, as a whole plan, beside those that are there", () => {
  const folder = mkdtempSync(join(tmpdir(), "claudemesh-regressions-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = pathToFileURL(join(folder, "list.json"));
  writeFileSync(file, "[]");
  const found = { seed: 5, oracle: "not_settled", said: "first", plan: drawPlan(5, 1) } as const;
  keepRegression(found, file);
  keepRegression({ ...found, oracle: "delivery_lost" }, file);
  keepRegression({ ...found, said: "again" }, file);
  expect(readRegressions(file).map(({ oracle, said }) => [oracle, said])).toEqual([
    ["delivery_lost", "first"],
    ["not_settled", "again"],
  ]);
  // A plan in the list is the plan that was run: nothing in it is lost on the way through JSON.
  expect(readRegressions(file)[0]?.plan).toEqual(JSON.parse(JSON.stringify(found.plan)));
});
