// What is known about a row's fate: examples, and random lives of a row against a naive model that remembers every try.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Fate, type FateFacts, fateOf } from "./fate.ts";
import { canTransition, judgeLateAnswer, judgeTry, type OutboxStatus, type TryOutcome } from "./outbox-row.ts";

const facts = (given: Partial<FateFacts>): FateFacts => ({
  status: "pending",
  attempts: 0,
  unanswered: 0,
  fenced: false,
  ...given,
});

describe("a row's fate", () => {
  const cases: [string, Partial<FateFacts>, Fate][] = [
    ["unsent before its first try", {}, "unsent"],
    ["unsent if it died of age before its first try", { status: "dead" }, "unsent"],
    ["unsent if it was retired before its first try", { status: "aborted" }, "unsent"],
    ["unknown while its first try is under way", { status: "inflight" }, "unknown"],
    ["unknown while a further try is under way", { status: "inflight", attempts: 3 }, "unknown"],
    ["refused after one refusal", { status: "dead", attempts: 1 }, "refused"],
    ["refused after refusals alone", { attempts: 5 }, "refused"],
    ["unknown after one try without an answer", { attempts: 1, unanswered: 1 }, "unknown"],
    ["unknown if one of many tries had no answer", { status: "dead", attempts: 9, unanswered: 1 }, "unknown"],
    ["unknown for a retired row whose try had no answer", { status: "aborted", attempts: 1, unanswered: 1 }, "unknown"],
    ["committed once done", { status: "done", attempts: 1 }, "committed"],
    ["committed once done, whatever earlier tries met", { status: "done", attempts: 4, unanswered: 3 }, "committed"],
    ["refused once fenced", { status: "dead", attempts: 2, unanswered: 2, fenced: true }, "refused"],
    [
      "refused once fenced, though it was retired",
      { status: "aborted", attempts: 1, unanswered: 1, fenced: true },
      "refused",
    ],
  ];
  it.each(cases)("is %s", (_what, given, fate) => {
    expect(fateOf(facts(given))).toBe(fate);
  });
});

/** One step in the life of a row. `commits` is what really happened at the broker, which the daemon may never hear. */
type Step =
  | { readonly do: "start" }
  | { readonly do: "end"; readonly outcome: TryOutcome; readonly commits: boolean }
  | { readonly do: "crash"; readonly commits: boolean }
  | { readonly do: "late"; readonly which: number; readonly status: number }
  | { readonly do: "expire" }
  | { readonly do: "retire" }
  | { readonly do: "fence" };

const success = new Set([200, 201]);

/** What the daemon's store keeps: four facts, moved by the protocol's own judgements. */
class Row {
  status: OutboxStatus = "pending";
  attempts = 0;
  unanswered = 0;
  fenced = false;

  get fate(): Fate {
    return fateOf(this);
  }

  moveTo(next: OutboxStatus): void {
    expect(canTransition(this.status, next)).toBe(true);
    this.status = next;
  }

  /** A compare-and-set: a late success may have made the row done while this try was under way. */
  endTry(outcome: TryOutcome): void {
    if (this.status !== "inflight") return;
    const verdict = judgeTry(outcome);
    this.attempts += 1;
    if ("counts" in verdict && verdict.counts === "unanswered") this.unanswered += 1;
    this.moveTo(verdict.next);
  }

  hearLate(status: number): void {
    const judgement = judgeLateAnswer(status);
    if (judgement === "done" && canTransition(this.status, "done")) this.status = "done";
    if (judgement === "settles_its_try") this.unanswered -= 1;
  }
}

type Try = { state: "open" | "silent" | "refused" | "accepted" | "failed"; committed: boolean };

/** The rule in its own words: refused only if every try was answered by a refusal (429 and other 4xx, never 408). */
class NaiveModel {
  readonly tries: Try[] = [];
  isDone = false;
  isFenced = false;

  fate(): Fate {
    if (this.isDone) return "committed";
    if (this.isFenced) return "refused";
    if (this.tries.length === 0) return "unsent";
    return this.tries.every((one) => one.state === "refused") ? "refused" : "unknown";
  }

  answered(status: number): Try["state"] {
    if (success.has(status)) return "accepted";
    return status >= 400 && status <= 499 && status !== 408 ? "refused" : "failed";
  }
}

const floors = { unsent: 0, refused: 0, unknown: 0, committed: 0, lateRefusals: 0, lateSuccesses: 0, hiddenCommits: 0 };

function live(steps: readonly Step[]): void {
  const row = new Row();
  const model = new NaiveModel();
  for (const step of steps) {
    take(step, row, model);
    expect(row.fate).toBe(model.fate());
    // The direction in which erring is dangerous: a committed send must never look as if it could be sent anew.
    if (model.tries.some((one) => one.committed) && !model.isFenced) {
      expect(["unknown", "committed"]).toContain(row.fate);
      if (row.fate === "unknown") floors.hiddenCommits += 1;
    }
    floors[row.fate] += 1;
  }
}

function take(step: Step, row: Row, model: NaiveModel): void {
  const open = model.tries.find((one) => one.state === "open");
  switch (step.do) {
    case "start":
      // A fenced id is never tried again.
      if (row.status !== "pending" || row.fenced) return;
      row.moveTo("inflight");
      model.tries.push({ state: "open", committed: false });
      return;
    case "end":
      if (open === undefined) return;
      row.endTry(step.outcome);
      settle(open, step.outcome.type === "answered" ? model.answered(step.outcome.status) : "silent", step.commits);
      model.isDone ||= open.state === "accepted";
      return;
    case "crash":
      if (open === undefined) return;
      row.endTry({ type: "connection_lost" });
      settle(open, "silent", step.commits);
      return;
    case "late":
      hearLate(step, row, model);
      return;
    case "expire":
      if (row.status === "pending") row.moveTo("dead");
      return;
    case "retire":
      if (row.status === "pending" || row.status === "dead") row.moveTo("aborted");
      return;
    case "fence":
      // A fence succeeds only where nothing was committed, and only rows at rest are fenced.
      if (open !== undefined || model.isDone || model.tries.some((one) => one.committed)) return;
      row.fenced = true;
      model.isFenced = true;
  }
}

/** An answer fixes the truth; silence and a server's failure leave it open. */
function settle(one: Try, state: Try["state"], commits: boolean): void {
  one.state = state;
  one.committed = state === "accepted" || ((state === "silent" || state === "failed") && commits);
}

function hearLate(step: Extract<Step, { do: "late" }>, row: Row, model: NaiveModel): void {
  const silent = model.tries.filter((one) => one.state === "silent");
  const one = silent[step.which % Math.max(silent.length, 1)];
  // The late answer tells the truth: a success for what was committed, a refusal for what was not.
  if (one === undefined || one.committed !== success.has(step.status)) return;
  const state = model.answered(step.status);
  row.hearLate(step.status);
  if (state === "accepted") {
    floors.lateSuccesses += 1;
    model.isDone ||= row.status === "done";
  }
  if (state === "refused") {
    floors.lateRefusals += 1;
    one.state = "refused";
  }
}

const status = fc.oneof(
  fc.constantFrom(200, 201, 401, 404, 408, 409, 413, 429, 500, 503),
  fc.integer({ min: 100, max: 599 }),
);
const lateStatus = fc.oneof(fc.constantFrom(200, 201), fc.constantFrom(401, 404, 409, 429), status);
const outcome: fc.Arbitrary<TryOutcome> = fc.oneof(
  fc.record({ type: fc.constant("answered" as const), status }),
  fc.constantFrom<TryOutcome>({ type: "timed_out" }, { type: "connection_lost" }),
);
const retryable: fc.Arbitrary<TryOutcome> = fc.constantFrom<TryOutcome>(
  { type: "answered", status: 429 },
  { type: "answered", status: 401 },
  { type: "timed_out" },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Step>({ do: "start" }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("end" as const),
      outcome: fc.oneof(outcome, retryable),
      commits: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("crash" as const), commits: fc.boolean() }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("late" as const), which: fc.nat({ max: 5 }), status: lateStatus }),
  },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ do: "expire" }, { do: "retire" }, { do: "fence" }) },
);

describe("any life of a row", () => {
  it("has the fate that a model which remembers every try would give it, and never hides a commit", () => {
    fc.assert(fc.property(fc.array(step, { minLength: 1, maxLength: 24 }), live), { numRuns: 3000 });
    for (const [what, count] of Object.entries(floors)) expect(count, what).toBeGreaterThan(30);
  });
});
