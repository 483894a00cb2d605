// That nothing real gets into a run: traps replace every clock, chance, timer and socket.
import type { Link } from "@claudemesh/client/internal/link-contract";
import { expect, test } from "vitest";
import { drawPlan } from "./core/draw-plan.ts";
import { runPlan } from "./run.ts";
import { amongTraps } from "./testing/traps.ts";

const hours = 6;

test("a run reaches for no real clock, chance, timer or socket", async () => {
  const free = await runPlan(drawPlan(3, hours, 2));
  const { result, sprung } = await amongTraps(() => runPlan(drawPlan(3, hours, 2)));
  expect(sprung).toEqual([]);
  expect(result.violation).toBeUndefined();
  expect(result.digest).toBe(free.digest);
});

test("a run that reaches for the real world is caught", async () => {
  const reachOut = (link: Link): Link => {
    setTimeout(() => undefined, 0);
    return link;
  };
  const { result, sprung } = await amongTraps(() => runPlan(drawPlan(3, hours, 2), { daemon: { link: reachOut } }));
  expect(sprung).toContain("setTimeout");
  expect(result.violation?.message).toContain("reached for the real setTimeout");
});
