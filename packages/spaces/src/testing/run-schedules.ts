// Runs schedules by the thousand from one seed, and says what they met. A failing one shrinks and is printed with the
// seed and path that repeat it.
import fc from "fast-check";
import type { SpaceRef } from "../ports/rows.ts";
import { newTally, Schedule, type ScheduleHost, type Step, stepKinds, type Tally } from "./schedule.ts";

const anyStep: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom(...stepKinds),
  client: fc.nat(2),
  salt: fc.nat(2 ** 31 - 1),
});

export type ScheduleRuns = {
  readonly count: number;
  readonly seed: number;
  readonly members: readonly string[];
  readonly meshId: string;
  /** Called before each run. */
  readonly host: () => Promise<ScheduleHost>;
};

export async function runSchedules({ count, seed, members, meshId, host }: ScheduleRuns): Promise<Tally> {
  const tally = newTally();
  let runs = 0;
  const property = fc.asyncProperty(fc.array(anyStep, { minLength: 20, maxLength: 60, size: "max" }), async (steps) => {
    const space: SpaceRef = { meshId, spaceId: `run-${++runs}` };
    await new Schedule(await host(), space, tally).run(members, steps);
  });
  await fc.assert(property, { numRuns: count, seed });
  return tally;
}

type Floor = readonly [name: string, met: number, floor: number];

/** A run that never met a case would prove nothing about it. */
export function missedFloors(tally: Tally, scale = 1): string[] {
  const decided = tally.accepted + tally.rejected;
  const shares: Floor[] = [
    ["accepted share", tally.accepted / decided, 0.4],
    ["rejected share", tally.rejected / decided, 0.05],
  ];
  const counts: Floor[] = [
    ["accepted reads through pending work", tally.pendingReads, 300],
    ["of them through a splice or move", tally.movedReads, 100],
    ["accepted on three layers or more", tally.deepStacks, 100],
    ["merges", tally.merges, 100],
    ["takeovers", tally.takeovers, 100],
    ["replays", tally.replays, 100],
    ["crashes", tally.crashes, 100],
    ["lost answers", tally.lost, 100],
    ["accepted together", tally.shared, 300],
    ["revoked holders", tally.revoked, 50],
  ];
  const scaled = counts.map(([name, met, floor]): Floor => [name, met, floor * scale]);
  const missed = [...shares, ...scaled].filter(([, met, floor]) => !(met >= floor));
  return missed.map(([name, met, floor]) => `${name}: ${met} < ${floor}`);
}
