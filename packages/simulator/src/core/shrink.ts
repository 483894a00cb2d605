// Makes a failing plan small: drops what the failure does not need, in ever smaller pieces, as long as what is left
// still fails in the same way. Whether it does is for the caller to find out.
import { type Plan, roundMs } from "./plan.ts";

/** True: the plan still fails, in the same way. */
export type StillFails = (plan: Plan) => Promise<boolean>;

/** Tries at most so many plans. `failedAtMs`: nothing that was planned for later can have caused it. */
export async function shrink(plan: Plan, failedAtMs: number, stillFails: StillFails, triesMax: number): Promise<Plan> {
  const tries = { left: triesMax };
  const attempt: StillFails = async (candidate) => {
    if (tries.left <= 0) return false;
    tries.left--;
    return stillFails(candidate);
  };
  let small = plan;
  const early = withoutLaterRounds(plan, failedAtMs);
  if (await attempt(early)) small = early;
  let before: number;
  do {
    before = sizeOf(small);
    const { operations, faults } = small;
    const fewer = await dropPieces(faults, (kept) => attempt({ ...small, faults: kept }));
    small = { ...small, faults: fewer };
    const less = await dropPieces(operations, (kept) => attempt({ ...small, operations: kept }));
    small = { ...small, operations: less };
  } while (sizeOf(small) < before && tries.left > 0);
  return small;
}

function sizeOf({ operations, faults }: Plan): number {
  return operations.length + faults.length;
}

function withoutLaterRounds(plan: Plan, failedAtMs: number): Plan {
  const rounds = Math.min(plan.settings.rounds, Math.floor(failedAtMs / roundMs(plan.settings)) + 1);
  const endMs = rounds * roundMs(plan.settings);
  return {
    settings: { ...plan.settings, rounds },
    operations: plan.operations.filter(({ atMs }) => atMs < endMs),
    faults: plan.faults.filter(({ atMs }) => atMs < endMs),
  };
}

async function dropPieces<T>(
  items: readonly T[],
  stillFailsWith: (kept: readonly T[]) => Promise<boolean>,
): Promise<readonly T[]> {
  let kept = items;
  for (let piece = items.length; piece >= 1; piece = Math.floor(piece / 2)) {
    for (let from = 0; from < kept.length; ) {
      const without = [...kept.slice(0, from), ...kept.slice(from + piece)];
      if (await stillFailsWith(without)) kept = without;
      else from += piece;
    }
  }
  return kept;
}
