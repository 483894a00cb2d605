// The rules of `once`, step by step and then along random stories: who may run, what stands, what is refused.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decideOnceClaim,
  decideOnceRecord,
  decideOnceRenewal,
  decideOnceResolve,
  type OnceAnswer,
  type OnceClaim,
  type OnceDecision,
  type OnceEpoch,
  type OnceSettlement,
  onceStateAt,
} from "./once-state.ts";

const claimOf = (claimId: string, holder = "alice", inputs = "i1"): OnceClaim => ({
  claimId,
  holder,
  inputsFingerprint: inputs,
  leaseSeconds: 10,
});

const running: OnceEpoch = {
  ...claimOf("c1"),
  epoch: 1,
  claimedAtMs: 0,
  leaseUntilMs: 10_000,
  settlement: undefined,
};
const settledAs = (settlement: OnceSettlement): OnceEpoch => ({ ...running, settlement });
const recorded = settledAs({ how: "recorded", result: '"r"', by: "alice", atMs: 5 });
const resolvedDone = settledAs({ how: "resolved_done", result: '"r"', by: "bob", atMs: 20_000 });
const released = settledAs({ how: "resolved_not_done", by: "bob", atMs: 20_000 });

const claim = (newest: OnceEpoch | undefined, wanted: OnceClaim, nowMs = 1) => {
  const own = newest?.claimId === wanted.claimId && newest.holder === wanted.holder ? newest : undefined;
  return decideOnceClaim({ newest, own }, wanted, nowMs);
};

describe("a claim", () => {
  it("of a new key gets the first epoch and a lease from now on", () => {
    const { answer, next } = claim(undefined, claimOf("c1"), 500);
    expect(next).toMatchObject({ epoch: 1, claimedAtMs: 500, leaseUntilMs: 10_500, settlement: undefined });
    expect(answer).toEqual({ type: "held", epoch: next });
  });

  it("that is asked again gets the same epoch and lease, and nothing is written", () => {
    expect(claim(running, claimOf("c1"), 9_999)).toEqual({ answer: { type: "held", epoch: running } });
  });

  it("of a key that another holder runs is answered with the end of its lease; another member's claim with the same id is another claim", () => {
    expect(claim(running, claimOf("c2")).answer).toEqual({ type: "running", epoch: running });
    expect(claim(running, claimOf("c1", "bob")).answer).toEqual({ type: "running", epoch: running });
  });

  it("of a key whose lease has ended is uncertain, for its own holder too: the lease ends with its last millisecond", () => {
    for (const id of ["c1", "c2"]) {
      expect(claim(running, claimOf(id), 10_000)).toEqual({ answer: { type: "uncertain", epoch: running } });
    }
  });

  it("of a key that is done gets what was recorded or resolved", () => {
    for (const done of [recorded, resolvedDone]) {
      for (const id of ["c1", "c2"]) {
        expect(claim(done, claimOf(id), 99_999)).toEqual({ answer: { type: "done", epoch: done } });
      }
    }
  });

  it("with other inputs is a mismatch whatever became of the key, unless it was released", () => {
    for (const newest of [running, recorded, resolvedDone]) {
      for (const nowMs of [1, 99_999]) {
        const { answer, next } = claim(newest, claimOf("c2", "bob", "i2"), nowMs);
        expect([answer.type, next]).toEqual(["inputs_mismatch", undefined]);
      }
    }
    expect(claim(released, claimOf("c2", "bob", "i2")).next).toMatchObject({ epoch: 2, inputsFingerprint: "i2" });
  });

  it("of a released key gets the next epoch, but not the claim that was resolved away", () => {
    expect(claim(released, claimOf("c2"), 7).next).toMatchObject({ epoch: 2, claimId: "c2", leaseUntilMs: 10_007 });
    expect(claim(released, claimOf("c1"))).toEqual({ answer: { type: "settled_otherwise", epoch: released } });
    const second: OnceEpoch = { ...running, ...claimOf("c2", "bob"), epoch: 2 };
    const late = decideOnceClaim({ newest: second, own: released }, claimOf("c1"), 1);
    expect(late).toEqual({ answer: { type: "settled_otherwise", epoch: released } });
  });
});

describe("a renewal", () => {
  it("keeps the lease from now on, and never shortens it", () => {
    expect(decideOnceRenewal(running, "alice", 4_000).next?.leaseUntilMs).toBe(14_000);
    expect(decideOnceRenewal(running, "alice", -5_000).next?.leaseUntilMs).toBe(10_000);
  });

  it("comes too late once the lease has ended or the epoch is settled", () => {
    expect(decideOnceRenewal(running, "alice", 10_000)).toEqual({ answer: { type: "uncertain", epoch: running } });
    for (const epoch of [recorded, resolvedDone, released]) {
      expect(decideOnceRenewal(epoch, "alice", 1)).toEqual({ answer: { type: "settled_otherwise", epoch } });
    }
  });

  it("is the holder's alone, and needs an epoch", () => {
    expect(decideOnceRenewal(running, "bob", 1)).toEqual({ answer: { type: "not_the_holder", epoch: running } });
    expect(decideOnceRenewal(undefined, "alice", 1)).toEqual({ answer: { type: "unknown_epoch" } });
  });
});

describe("a record", () => {
  const record = (stored: OnceEpoch | undefined, result = '"r"', holder = "alice", nowMs = 5) =>
    decideOnceRecord(stored, { holder, result }, nowMs);

  it("by the holder makes it done, while it runs and while it is uncertain", () => {
    for (const nowMs of [5, 99_999]) {
      const { answer, next } = record(running, '"r"', "alice", nowMs);
      expect(next?.settlement).toEqual({ how: "recorded", result: '"r"', by: "alice", atMs: nowMs });
      expect(answer).toEqual({ type: "settled", epoch: next });
    }
  });

  it("again with the same result is the same answer; another result changes nothing", () => {
    expect(record(recorded)).toEqual({ answer: { type: "settled", epoch: recorded } });
    expect(record(recorded, '"other"')).toEqual({ answer: { type: "settled_otherwise", epoch: recorded } });
  });

  it("after a resolve is refused, even with the same result", () => {
    for (const epoch of [resolvedDone, released]) {
      expect(record(epoch)).toEqual({ answer: { type: "settled_otherwise", epoch } });
    }
  });

  it("is the holder's alone, and needs an epoch", () => {
    for (const epoch of [running, recorded, released]) {
      expect(record(epoch, '"r"', "bob")).toEqual({ answer: { type: "not_the_holder", epoch } });
    }
    expect(record(undefined)).toEqual({ answer: { type: "unknown_epoch" } });
  });
});

describe("a resolve", () => {
  const done = (stored: OnceEpoch | undefined, result?: string, nowMs = 10_000) =>
    decideOnceResolve(stored, { outcome: "done", result, by: "bob" }, nowMs);
  const notDone = (stored: OnceEpoch | undefined, nowMs = 10_000) =>
    decideOnceResolve(stored, { outcome: "not_done", by: "bob" }, nowMs);

  it("of a running epoch is refused for every member", () => {
    for (const decision of [done(running, undefined, 9_999), notDone(running, 9_999)]) {
      expect(decision).toEqual({ answer: { type: "running", epoch: running } });
    }
  });

  it("of an uncertain epoch settles it, with who said so; done without a result is null", () => {
    expect(done(running, "[1]").next?.settlement).toEqual({
      how: "resolved_done",
      result: "[1]",
      by: "bob",
      atMs: 10_000,
    });
    expect(done(running).next?.settlement).toMatchObject({ how: "resolved_done", result: "null" });
    expect(notDone(running).next?.settlement).toEqual({ how: "resolved_not_done", by: "bob", atMs: 10_000 });
  });

  it("that says what is known already gets the first settlement, and another changes nothing", () => {
    for (const epoch of [recorded, resolvedDone]) {
      expect(done(epoch)).toEqual({ answer: { type: "settled", epoch } });
      expect(done(epoch, '"r"')).toEqual({ answer: { type: "settled", epoch } });
      expect(done(epoch, '"x"')).toEqual({ answer: { type: "settled_otherwise", epoch } });
      expect(notDone(epoch)).toEqual({ answer: { type: "settled_otherwise", epoch } });
    }
    expect(notDone(released)).toEqual({ answer: { type: "settled", epoch: released } });
    expect(done(released)).toEqual({ answer: { type: "settled_otherwise", epoch: released } });
    expect(notDone(undefined)).toEqual({ answer: { type: "unknown_epoch" } });
  });
});

type Step =
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "claim"; readonly id: number; readonly holder: number; readonly inputs: number }
  | { readonly do: "renew"; readonly epoch: number; readonly holder: number }
  | { readonly do: "record"; readonly epoch: number; readonly holder: number; readonly result: number }
  | { readonly do: "resolve"; readonly epoch: number; readonly done: boolean };

const anEpoch = fc.integer({ min: 1, max: 3 });
const oneStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 4_000, 11_000) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("claim" as const),
      id: fc.nat(2),
      holder: fc.nat(1),
      inputs: fc.constantFrom(0, 0, 0, 1),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("renew" as const), epoch: anEpoch, holder: fc.nat(1) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("record" as const),
      epoch: anEpoch,
      holder: fc.nat(1),
      result: fc.nat(1),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("resolve" as const),
      epoch: anEpoch,
      done: fc.constantFrom(false, false, false, true),
    }),
  },
);

function decide(epochs: readonly OnceEpoch[], step: Exclude<Step, { do: "wait" }>, nowMs: number): OnceDecision {
  if (step.do === "claim") {
    const wanted = claimOf(`c${step.id}`, `m${step.holder}`, `i${step.inputs}`);
    const own = epochs.find(({ claimId, holder }) => claimId === wanted.claimId && holder === wanted.holder);
    return decideOnceClaim({ newest: epochs.at(-1), own }, wanted, nowMs);
  }
  const stored = epochs.find(({ epoch }) => epoch === step.epoch);
  if (step.do === "renew") return decideOnceRenewal(stored, `m${step.holder}`, nowMs);
  if (step.do === "record") {
    return decideOnceRecord(stored, { holder: `m${step.holder}`, result: `${step.result}` }, nowMs);
  }
  if (step.done) return decideOnceResolve(stored, { outcome: "done", result: undefined, by: "m9" }, nowMs);
  return decideOnceResolve(stored, { outcome: "not_done", by: "m9" }, nowMs);
}

describe("along any story", () => {
  it("epochs grow by one and only over a not_done; a settlement never changes; a claim never gets two epochs", () => {
    const seen = new Map<string, number>();
    const count = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
    fc.assert(
      fc.property(fc.array(oneStep, { minLength: 20, maxLength: 40, size: "max" }), (steps) => {
        let nowMs = 0;
        const epochs: OnceEpoch[] = [];
        for (const step of steps) {
          if (step.do === "wait") {
            nowMs += step.ms;
            continue;
          }
          const { answer, next } = decide(epochs, step, nowMs);
          count(`${step.do} ${answer.type}`);
          checkNext(epochs, next, answer, nowMs);
          if (next !== undefined) epochs[next.epoch - 1] = next;
          if (epochs.length > 1) count("more than one epoch");
        }
        const claims = epochs.map(({ claimId, holder }) => `${claimId} ${holder}`);
        expect(new Set(claims).size).toBe(claims.length);
        for (const older of epochs.slice(0, -1)) expect(older.settlement?.how).toBe("resolved_not_done");
      }),
      { numRuns: 1_000 },
    );
    for (const wanted of ["claim held", "claim done", "claim running", "claim uncertain", "claim inputs_mismatch"]) {
      expect(seen.get(wanted) ?? 0, wanted).toBeGreaterThan(100);
    }
    for (const wanted of ["claim settled_otherwise", "renew held", "record settled", "resolve settled"]) {
      expect(seen.get(wanted) ?? 0, wanted).toBeGreaterThan(50);
    }
    expect(seen.get("more than one epoch") ?? 0).toBeGreaterThan(300);
  });
});

/** What is written is a lawful step from what is stored, and says what the caller hears. */
function checkNext(epochs: readonly OnceEpoch[], next: OnceEpoch | undefined, answer: OnceAnswer, nowMs: number): void {
  if (next === undefined) return;
  expect("epoch" in answer && answer.epoch).toBe(next);
  const stored = epochs[next.epoch - 1];
  if (stored === undefined) {
    expect(next.epoch).toBe(epochs.length + 1);
    expect(["absent", "released"]).toContain(onceStateAt(epochs.at(-1), nowMs));
    expect(onceStateAt(next, nowMs)).toBe("running");
    return;
  }
  expect(stored.settlement).toBeUndefined();
  expect(next).toEqual({ ...stored, leaseUntilMs: next.leaseUntilMs, settlement: next.settlement });
  expect(next.leaseUntilMs).toBeGreaterThanOrEqual(stored.leaseUntilMs);
}
