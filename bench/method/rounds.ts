// Runs the rounds of one scenario and decides which of them count. A round prepares its own world, measures every
// segment in it, and leaves nothing behind; every second one measures in reverse order, so that a machine that slows
// down or speeds up favours no segment.
import { type CpuTimes, stealShare } from "./steal.ts";

/** A round with more stolen CPU time than this says more about the neighbours than about us. */
export const stealShareMax = 0.08;
export const cleanRoundsMin = 5;

export type Segment<World, Figures> = {
  readonly name: string;
  readonly measure: (world: World) => Promise<Figures>;
};

export type RoundPlan<World, Figures> = {
  readonly rounds: number;
  /** Everything up to the first timed segment, warm-up included. */
  readonly open: (round: number) => Promise<World>;
  readonly segments: readonly Segment<World, Figures>[];
  /**
   * After the last segment. Throws when what was measured turns out not to be there. A segment that fails ends the run,
   * and its world is left to the caller: an account that is not whole must not hide the failure.
   */
  readonly close: (world: World) => Promise<void>;
  readonly readCpuTimes: () => CpuTimes | undefined;
  readonly onRound: (outcome: RoundOutcome<Figures>) => void;
};

export type RoundOutcome<Figures> = {
  readonly round: number;
  /** Undefined where the kernel does not tell. */
  readonly stealShare: number | undefined;
  readonly clean: boolean;
  readonly figures: ReadonlyMap<string, Figures>;
};

export async function runRounds<World, Figures>(plan: RoundPlan<World, Figures>): Promise<RoundOutcome<Figures>[]> {
  const outcomes: RoundOutcome<Figures>[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const outcome = await runRound(plan, round);
    plan.onRound(outcome);
    outcomes.push(outcome);
  }
  return outcomes;
}

async function runRound<World, Figures>(
  plan: RoundPlan<World, Figures>,
  round: number,
): Promise<RoundOutcome<Figures>> {
  const world = await plan.open(round);
  const segments = round % 2 === 1 ? plan.segments : plan.segments.toReversed();
  const figures = new Map<string, Figures>();
  const before = plan.readCpuTimes();
  for (const { name, measure } of segments) figures.set(name, await measure(world));
  const share = stealShare(before, plan.readCpuTimes());
  await plan.close(world);
  return { round, stealShare: share, clean: share === undefined || share <= stealShareMax, figures };
}

/** The rounds that count; undefined when they are too few to conclude anything. */
export function cleanRounds<Figures>(
  outcomes: readonly RoundOutcome<Figures>[],
): readonly RoundOutcome<Figures>[] | undefined {
  const clean = outcomes.filter((outcome) => outcome.clean);
  return clean.length >= cleanRoundsMin ? clean : undefined;
}

/** Rounds of two runs with the same numbers as one: a round counts if both of its halves do. */
export function mergeOutcomes<Figures>(
  first: readonly RoundOutcome<Figures>[],
  second: readonly RoundOutcome<Figures>[],
): readonly RoundOutcome<Figures>[] {
  if (first.length === 0) return second;
  return first.map((one, index) => {
    const other = second[index];
    if (other?.round !== one.round) throw new Error(`round ${one.round} was measured in one of two runs only`);
    const shares = [one.stealShare, other.stealShare].filter((share) => share !== undefined);
    return {
      round: one.round,
      stealShare: shares.length === 0 ? undefined : Math.max(...shares),
      clean: one.clean && other.clean,
      figures: new Map([...one.figures, ...other.figures]),
    };
  });
}
