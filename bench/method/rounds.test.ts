import { describe, expect, it } from "vitest";
import { cleanRounds, mergeOutcomes, type RoundOutcome, type RoundPlan, runRounds } from "./rounds.ts";

/** Three segments in a world that writes down what happens; `steal` gives the stolen ticks of 100 in each round. */
function plan(steal: readonly number[], overrides: Partial<RoundPlan<string, number>> = {}) {
  const diary: string[] = [];
  let total = 0;
  let stolen = 0;
  let reading = 0;
  const full: RoundPlan<string, number> = {
    rounds: steal.length,
    open: async (round) => {
      diary.push(`open ${round}`);
      return `world ${round}`;
    },
    segments: ["a", "b", "c"].map((name, index) => ({
      name,
      measure: async (world) => {
        diary.push(`${name} in ${world}`);
        return index;
      },
    })),
    close: async (world) => {
      diary.push(`close ${world}`);
    },
    readCpuTimes: () => {
      if (reading % 2 === 1) {
        total += 100;
        stolen += steal[(reading - 1) / 2] ?? 0;
      }
      reading++;
      return { total, steal: stolen };
    },
    onRound: ({ round, clean }) => diary.push(`${clean ? "clean" : "dropped"} ${round}`),
    ...overrides,
  };
  return { plan: full, diary };
}

const outcome = (clean: boolean): RoundOutcome<number> => ({ round: 1, stealShare: 0, clean, figures: new Map() });

describe("a run of rounds", () => {
  it("measures every segment in every round, in a world of the round's own, and turns the order around", async () => {
    const { plan: two, diary } = plan([0, 0]);
    const outcomes = await runRounds(two);
    expect(diary).toEqual([
      "open 1",
      "a in world 1",
      "b in world 1",
      "c in world 1",
      "close world 1",
      "clean 1",
      "open 2",
      "c in world 2",
      "b in world 2",
      "a in world 2",
      "close world 2",
      "clean 2",
    ]);
    expect(Object.fromEntries(outcomes[1]?.figures ?? [])).toEqual({ a: 0, b: 1, c: 2 });
  });

  it("drops a round with more than 8 % steal, and keeps one with exactly 8 %", async () => {
    const outcomes = await runRounds(plan([8, 9, 0]).plan);
    expect(outcomes.map(({ clean }) => clean)).toEqual([true, false, true]);
    expect(outcomes.map(({ stealShare }) => stealShare)).toEqual([0.08, 0.09, 0]);
  });

  it("keeps rounds whose steal is not known", async () => {
    const outcomes = await runRounds(plan([50], { readCpuTimes: () => undefined }).plan);
    expect(outcomes).toMatchObject([{ clean: true, stealShare: undefined }]);
  });

  it("ends with the failure of a segment, and with no other", async () => {
    const failing = { name: "b", measure: () => Promise.reject(new Error("answered 507")) };
    const close = () => Promise.reject(new Error("the rows do not add up"));
    const { plan: broken, diary } = plan([0, 0], { segments: [failing], close });
    await expect(runRounds(broken)).rejects.toThrow("answered 507");
    expect(diary).toEqual(["open 1"]);
  });

  it("ends when what was measured is not there afterwards", async () => {
    const close = () => Promise.reject(new Error("the rows do not add up"));
    await expect(runRounds(plan([0, 0], { close }).plan)).rejects.toThrow("do not add up");
  });
});

describe("the rounds that count", () => {
  it("are the clean ones, and fewer than five conclude nothing", () => {
    expect(cleanRounds([...Array(5).fill(outcome(true)), outcome(false)])).toHaveLength(5);
    expect(cleanRounds([...Array(4).fill(outcome(true)), ...Array(9).fill(outcome(false))])).toBeUndefined();
  });
});

describe("two runs as one", () => {
  const half = (round: number, stealShare: number, name: string): RoundOutcome<number> => ({
    round,
    stealShare,
    clean: stealShare < 0.08,
    figures: new Map([[name, round]]),
  });

  it("have the figures of both in each round, which counts if both halves do", () => {
    const merged = mergeOutcomes([half(1, 0.01, "a"), half(2, 0.02, "a")], [half(1, 0.03, "b"), half(2, 0.5, "b")]);
    expect(merged).toEqual([
      { round: 1, stealShare: 0.03, clean: true, figures: new Map(Object.entries({ a: 1, b: 1 })) },
      { round: 2, stealShare: 0.5, clean: false, figures: new Map(Object.entries({ a: 2, b: 2 })) },
    ]);
    expect(mergeOutcomes([], merged)).toBe(merged);
  });

  it("must have the same rounds", () => {
    expect(() => mergeOutcomes([half(1, 0, "a"), half(2, 0, "a")], [half(1, 0, "b")])).toThrow("round 2");
  });
});
