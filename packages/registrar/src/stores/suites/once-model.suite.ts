// Random claims, renewals, records, resolves and passing time, several callers at once on several stores, against what
// `once` promises: no caller is permitted to run while another epoch may have run, unless a member said not_done; a result
// never changes; epochs grow (REG-9, REG-11).
import fc from "fast-check";
import { expect, test } from "vitest";
import { OnceWitness } from "../../../../../tests/support/once-witness.ts";
import type { OnceOutcome } from "../../ports/once-store.ts";
import { type OnceHarness, OnceWorld } from "./once.suite.ts";

type Call =
  | { readonly do: "claim"; readonly id: number; readonly member: number; readonly inputs: number }
  | { readonly do: "renew"; readonly epoch: number; readonly member: number }
  | { readonly do: "record"; readonly epoch: number; readonly member: number; readonly result: number }
  | { readonly do: "resolve"; readonly epoch: number; readonly member: number; readonly outcome: "done" | "not_done" };

/** Calls that go out together, each over a store of its own, and how long it is quiet after them. */
type Round = { readonly calls: readonly Call[]; readonly waitSeconds: number };

/** 0 is the newest epoch that was given out, 1 the one before it. */
const epoch = fc.constantFrom(0, 0, 0, 1);
const member = fc.nat(2);
const call: fc.Arbitrary<Call> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("claim" as const),
      id: fc.nat(4),
      member,
      inputs: fc.constantFrom(0, 0, 0, 0, 1),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("renew" as const), epoch, member }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("record" as const), epoch, member, result: fc.nat(1) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("resolve" as const),
      epoch,
      member,
      outcome: fc.constantFrom("not_done" as const, "not_done" as const, "not_done" as const, "done" as const),
    }),
  },
);
const round: fc.Arbitrary<Round> = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 4 }),
  waitSeconds: fc.constantFrom(0, 0, 4, 11),
});

function make(world: OnceWorld, wanted: Call, newest: number, store: number): Promise<OnceOutcome> {
  if (wanted.do === "claim") {
    return world.claim(`c${wanted.id}`, { member: wanted.member, inputs: wanted.inputs, store });
  }
  const at = { member: wanted.member, store };
  const number = Math.max(1, newest - wanted.epoch);
  if (wanted.do === "renew") return world.renew(number, at);
  if (wanted.do === "record") return world.record(number, `${wanted.result}`, at);
  const resolution =
    wanted.outcome === "done" ? { outcome: "done" as const, result: undefined } : { outcome: "not_done" as const };
  return world.resolve(number, resolution, at);
}

export function describeOnceModel(harness: OnceHarness): void {
  test("whatever callers do at once, one epoch may run at a time, and only over a not_done comes the next", async () => {
    const met = new Map<string, number>();
    const meet = (label: string) => met.set(label, (met.get(label) ?? 0) + 1);
    const property = fc.asyncProperty(
      fc.array(round, { minLength: 12, maxLength: 30, size: "max" }),
      async (rounds) => {
        const world = await OnceWorld.start(harness);
        const witness = new OnceWitness();
        for (const { calls, waitSeconds } of rounds) {
          const newest = witness.newest;
          const outcomes = await Promise.all(calls.map((wanted, store) => make(world, wanted, newest, store)));
          for (const [index, outcome] of outcomes.entries()) {
            const wanted = calls[index];
            if (wanted === undefined) throw new Error("an answer to no call");
            meet(`${wanted.do} ${outcome.type}`);
            witness.hear(outcome);
          }
          world.wait(waitSeconds);
        }
        const stored = await world.epochs();
        for (const one of stored) {
          // Answers of a round are heard in any order: what is stored decides.
          if (one.settlement?.how === "resolved_not_done") witness.notDone.add(one.epoch);
        }
        witness.check();
        expect(stored.map(({ epoch: number }) => number)).toEqual(stored.map((_, index) => stored.length - index));
        if (witness.result !== undefined) expect(stored[0]?.settlement).toMatchObject({ result: witness.result });
        if (stored.length > 2) meet("three epochs");
      },
    );
    await fc.assert(property, { numRuns: 60 });
    const floors: Readonly<Record<string, number>> = {
      "claim held": 60,
      "claim running": 60,
      "claim uncertain": 40,
      "claim done": 40,
      "claim inputs_mismatch": 20,
      "claim settled_otherwise": 6,
      "renew held": 8,
      "renew uncertain": 4,
      "record settled": 10,
      "resolve settled": 60,
      "resolve running": 40,
      "three epochs": 5,
    };
    for (const [kind, floor] of Object.entries(floors)) {
      expect(met.get(kind) ?? 0, `how often ${kind} was met`).toBeGreaterThanOrEqual(floor);
    }
  });
}
