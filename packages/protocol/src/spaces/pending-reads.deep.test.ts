// SPC-3 at length: the rule for pending reads in a naive world of random stacks and foreign writes. The same world finds
// anomalies once the rule is weakened, which shows that it could find one.
import { describe, expect, it } from "vitest";
import { type PendingRule, tallyPendingWorlds } from "../testing/pending-world.ts";
import { decidePendingRead } from "./pending-reads.ts";
import { movedPaths, movesContent, touchOverlaps } from "./touch.ts";

const worlds = 60_000;
const seed = Number(process.env.CLAUDEMESH_SEED ?? Math.floor(Date.now() / 86_400_000));
const from = (seed * worlds) % 2 ** 31;

/** Reads count only where they look, whatever was moved there. */
const withoutSpread: PendingRule = (read, layers) => {
  const decision = decidePendingRead(read, layers);
  return decision.kind === "scan" ? { ...decision, scan: decision.scan.slice(0, 1) } : decision;
};

/** Reads follow one move, not the moves before it. */
const withoutTransitiveStep: PendingRule = (read, layers) => {
  const decision = withoutSpread(read, layers);
  if (decision.kind !== "scan") return decision;
  const moves = layers.flatMap(({ footprints }) => footprints.flat()).filter(movesContent);
  const reached = moves.filter((touch) => decision.scan.some((one) => touchOverlaps(touch, one)));
  return { ...decision, scan: [...decision.scan, ...reached.flatMap(movedPaths).map((path) => ({ path }))] };
};

describe(`pending reads, seed ${seed}`, () => {
  it.each([
    { withBasis: true, nameAll: true },
    { withBasis: true, nameAll: false },
    { withBasis: false, nameAll: true },
    { withBasis: false, nameAll: false },
  ])("are sound whenever they are accepted: %j", (choice) => {
    const counts = tallyPendingWorlds(decidePendingRead, choice, { from, to: from + worlds });
    expect(counts).toMatchObject({ anomaly: 0, anomalies: [] });
    expect(counts.sound).toBeGreaterThan(worlds / 20);
    expect(counts.stale).toBeGreaterThan(worlds / 20);
  });

  // From a fixed seed: that these worlds hold anomalies is a fact about them, not a matter of the day.
  it.each([
    ["reads do not follow moved content", withoutSpread],
    ["reads follow only the last move", withoutTransitiveStep],
  ])("let anomalies through when %s", (_what, rule) => {
    const choice = { withBasis: true, nameAll: true };
    expect(tallyPendingWorlds(rule, choice, { from: 0, to: worlds }).anomaly).toBeGreaterThan(0);
  });
});
