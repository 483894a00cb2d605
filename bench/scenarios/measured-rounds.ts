// The rounds of a scenario, run as its settings ask and reported one by one.
import { cleanRounds, type RoundOutcome, type RoundPlan, runRounds } from "../method/rounds.ts";
import { readCpuTimes } from "../method/steal.ts";
import { describeRound } from "../report.ts";
import type { RunSettings } from "./scenario.ts";

type MeasuredRounds<Figures> = {
  readonly outcomes: readonly RoundOutcome<Figures>[];
  /** The figures of the rounds that count; undefined when they are too few to conclude anything. */
  readonly rounds: readonly ReadonlyMap<string, Figures>[] | undefined;
};

export async function measureRounds<World, Figures>(
  settings: RunSettings,
  plan: Pick<RoundPlan<World, Figures>, "open" | "segments" | "close">,
): Promise<MeasuredRounds<Figures>> {
  const outcomes = await runRounds({
    ...plan,
    rounds: settings.rounds,
    readCpuTimes,
    onRound: (outcome) => settings.progress(describeRound(outcome, settings.rounds)),
  });
  return { outcomes, rounds: cleanRounds(outcomes)?.map(({ figures }) => figures) };
}
