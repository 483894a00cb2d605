// The life of an outbox row: every pair of states, and every answer that a broker can give, in time or late.
import { describe, expect, it } from "vitest";
import { errorCatalogue } from "../errors/catalogue.ts";
import {
  canTransition,
  judgeLateAnswer,
  judgeTry,
  type OutboxStatus,
  outboxStatuses,
  outboxTransitions,
  type TryVerdict,
} from "./outbox-row.ts";

const allowed: ReadonlySet<string> = new Set([
  "pending → inflight",
  "pending → dead",
  "pending → aborted",
  "pending → done",
  "inflight → done",
  "inflight → pending",
  "inflight → dead",
  "dead → aborted",
  "dead → done",
]);
const pairs = outboxStatuses.flatMap((from) => outboxStatuses.map((to): [OutboxStatus, OutboxStatus] => [from, to]));
const statuses = Array.from({ length: 500 }, (_, at) => 100 + at);

describe("an outbox row", () => {
  it("has five states, so twenty-five pairs of them", () => {
    expect([...outboxStatuses].toSorted()).toEqual(["aborted", "dead", "done", "inflight", "pending"]);
    expect(pairs).toHaveLength(25);
    expect(allowed.size).toBe(9);
  });

  it.each(pairs)("%s → %s only where the contract says so", (from, to) => {
    expect(canTransition(from, to)).toBe(allowed.has(`${from} → ${to}`));
  });

  it("lists each transition once", () => {
    const listed = Object.entries(outboxTransitions).flatMap(([from, tos]) => tos.map((to) => `${from} → ${to}`));
    expect(listed.toSorted()).toEqual([...allowed].toSorted());
  });

  it("stays for ever once done or aborted, because nothing frees an id", () => {
    expect(outboxTransitions.done).toEqual([]);
    expect(outboxTransitions.aborted).toEqual([]);
  });
});

/** The contract once more, as a list of cases in its own order. */
function expectedVerdict(status: number): TryVerdict {
  switch (true) {
    case [200, 201].includes(status):
      return { next: "done" };
    case status === 401:
      return { next: "pending", counts: "refused", retry: "after_hello" };
    case status === 429:
      return { next: "pending", counts: "refused", retry: "backoff" };
    case [408, ...statuses.slice(400)].includes(status):
      return { next: "pending", counts: "unanswered", retry: "backoff" };
    case statuses.slice(300, 400).includes(status):
      return { next: "dead", counts: "refused" };
    default:
      return { next: "pending", counts: "unanswered", retry: "backoff" };
  }
}

describe("a try", () => {
  it.each([1, 2, 3, 4, 5])("answered with any status of %ixx has the verdict of the contract", (hundred) => {
    const ofHundred = statuses.filter((status) => Math.floor(status / 100) === hundred);
    expect(ofHundred).toHaveLength(100);
    for (const status of ofHundred) {
      const verdict = judgeTry({ type: "answered", status });
      expect(verdict, `${status}`).toEqual(expectedVerdict(status));
      expect(canTransition("inflight", verdict.next), `${status}`).toBe(true);
    }
  });

  it.each([
    ["a conflict kills the row", 409, "dead"],
    ["a body too large kills the row", 413, "dead"],
    ["a destination that is not there kills the row", 404, "dead"],
    ["a full budget leaves the row waiting", 429, "pending"],
    ["a request time-out leaves the row waiting", 408, "pending"],
    ["a limiter that is away leaves the row waiting", 503, "pending"],
    ["an ended membership leaves the row waiting", 401, "pending"],
    ["a duplicate is done", 200, "done"],
  ] as const)("in which %s (%i)", (_what, status, next) => {
    expect(judgeTry({ type: "answered", status }).next).toBe(next);
  });

  it.each(["timed_out", "connection_lost"] as const)("that ended %s waits and is unanswered", (type) => {
    expect(judgeTry({ type })).toEqual({ next: "pending", counts: "unanswered", retry: "backoff" });
  });

  it("is made again for every code that the catalogue calls retryable, and for a refusal only if it is about the link", () => {
    for (const [code, { status, retryable, name }] of Object.entries(errorCatalogue)) {
      // Errors with a name answer commits to a space, never a send.
      if (name !== undefined) continue;
      const triesAgain = judgeTry({ type: "answered", status }).next === "pending";
      expect(triesAgain, code).toBe(retryable || status === 401);
    }
  });

  it("counts as refused only after an answer that proves that nothing was committed", () => {
    const refused = statuses.filter((status) => {
      const verdict = judgeTry({ type: "answered", status });
      return "counts" in verdict && verdict.counts === "refused";
    });
    expect(refused).toEqual(statuses.slice(300, 400).filter((status) => status !== 408));
  });
});

describe("a late answer", () => {
  it("of any status moves a row only if it is a success, and settles its try only if it is a refusal", () => {
    for (const status of statuses) {
      const verdict = expectedVerdict(status);
      const settles = "counts" in verdict && verdict.counts === "refused";
      const expected = verdict.next === "done" ? "done" : settles ? "settles_its_try" : "nothing";
      expect(judgeLateAnswer(status), `${status}`).toBe(expected);
    }
  });

  it("that is a success can make a pending or dead row done, and no other", () => {
    expect(judgeLateAnswer(201)).toBe("done");
    expect(judgeLateAnswer(200)).toBe("done");
    expect(outboxStatuses.filter((status) => canTransition(status, "done")).toSorted()).toEqual([
      "dead",
      "inflight",
      "pending",
    ]);
  });
});
