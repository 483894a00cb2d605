// Random sequences of what can happen to a drain, beside a naive account of where each row is. Whatever the sequence, no row
// is at two steps at once, the window is never exceeded, a frame leaves in the mode `running` alone, and the end of each row that was
// begun is recorded once.
import type { Priority } from "@claudemesh/protocol/messages/envelope";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import {
  type DrainEffect,
  type DrainEvent,
  type DrainLimits,
  type DrainState,
  hasRoom,
  initialDrain,
  stepDrain,
} from "./drain-state.ts";
import type { ClaimedRow } from "./outbox-row.ts";
import { prioritiesFirst } from "./priorities.ts";
import type { DrainSignal, TryEnd } from "./try-end.ts";

/** What happened over all runs: sequences that never met a case prove nothing about it. */
const met = new Map<string, number>();
const meet = (what: string) => met.set(what, (met.get(what) ?? 0) + 1);

const limits: DrainLimits = {
  backoff: { minMs: 10, maxMs: 1_000 },
  windowRows: 3,
  openRows: 6,
  openRowsUrgent: 8,
  openBytes: 100,
};

const tries = {
  done: [
    { next: "done", acceptance: { brokerMessageId: "b", historyId: 1, historyAvailable: true } },
    { type: "flows" },
  ],
  dead: [{ next: "dead", lastError: "x", fenced: false }, { type: "flows" }],
  troubled: [{ next: "pending", unanswered: 1, nextAttemptAt: 0, lastError: "x" }, { type: "troubled" }],
  limited: [
    { next: "pending", unanswered: 0, nextAttemptAt: 0, lastError: "x" },
    { type: "rate_limited", retryAfterMs: 50 },
  ],
  unauthorized: [
    { next: "pending", unanswered: 0, nextAttemptAt: 0, lastError: "x" },
    { type: "unauthorized", detail: "x" },
  ],
  notSent: [{ next: "put_back" }, { type: "not_sent" }],
} as const satisfies Readonly<Record<string, readonly [TryEnd, DrainSignal]>>;

const priority = fc.constantFrom<Priority>("now", "next", "low");
/** Some rows are so old that they expire while they wait. */
const content = fc.record({ priority, bytes: fc.nat(60), bornBeforeMs: fc.constantFrom(0, 0, 90) });

const command = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant("linkUp" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("linkDown" as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wake" as const), afterMs: fc.nat(40) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("store" as const), content }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("storeEnds" as const),
      at: fc.nat(),
      refused: fc.integer({ max: 9, min: 0 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("claimEnds" as const),
      rows: fc.array(content, { maxLength: 3 }),
      fails: fc.nat(9),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("tryEnds" as const),
      at: fc.nat(),
      how: fc.constantFrom<keyof typeof tries>(
        "done",
        "done",
        "done",
        "dead",
        "troubled",
        "limited",
        "unauthorized",
        "notSent",
      ),
    }),
  },
  { weight: 8, arbitrary: fc.record({ do: fc.constant("endIsRecorded" as const), at: fc.nat() }) },
);
type Command = typeof command extends fc.Arbitrary<infer Each> ? Each : never;

/** Where a row is, from the moment at which it is inflight on disk. */
type Tracked = {
  /** `behind a claim`: stored while one was under way. */
  where: "behind a claim" | "begun" | "at the broker" | "being recorded" | "closed";
  readonly row: ClaimedRow;
  end?: TryEnd;
};

const maxAgeMs = 100;

class Model {
  state: DrainState = initialDrain;
  nowMs = 1_000;
  readonly #rows = new Map<string, Tracked>();
  readonly #storing: ClaimedRow[] = [];
  #claim: Extract<DrainEffect, { type: "claim" }> | undefined;
  #made = 0;

  run(step: Command): void {
    switch (step.do) {
      case "linkUp":
        this.#on({ type: "link_up" });
        break;
      case "linkDown":
        this.#on({ type: "link_down" });
        break;
      case "wake":
        this.nowMs += step.afterMs;
        this.#on({ type: "wake", nowMs: this.nowMs });
        break;
      case "store":
        this.#store(this.#make(step.content));
        break;
      case "storeEnds":
        this.#storeEnds(takeAt(this.#storing, step.at), step.refused === 0);
        break;
      case "claimEnds":
        this.#claimEnds(step.fails === 0 ? undefined : step.rows);
        break;
      case "tryEnds":
        this.#tryEnds(this.#at("at the broker", step.at), step.how);
        break;
      case "endIsRecorded":
        this.#endIsRecorded(this.#at("being recorded", step.at));
        break;
    }
  }

  /** Stops the drain, and lets everything end that is under way. */
  finish(): void {
    this.#on({ type: "stop" });
    while (this.#storing.length > 0) this.run({ do: "storeEnds", at: 0, refused: 1 });
    this.#claimEnds([]);
    for (const tracked of this.#all("at the broker")) this.#tryEnds(tracked, "unauthorized");
    for (const tracked of this.#all("being recorded")) this.#endIsRecorded(tracked);
    expect([...this.#rows.values()].filter(({ where }) => where !== "closed")).toEqual([]);
    expect(this.state).toMatchObject({ openRows: 0, openBytes: 0, framesOut: 0, claim: "none" });
  }

  #store(row: ClaimedRow): void {
    if (!hasRoom(this.state, row, limits)) return;
    this.#storing.push(row);
    this.#on({ type: "room_taken", bytes: row.payload.length });
  }

  #storeEnds(row: ClaimedRow | undefined, isRefused: boolean): void {
    if (row === undefined) return;
    if (isRefused) this.#on({ type: "room_returned", bytes: row.payload.length });
    else {
      const isBehind = this.#claim !== undefined && this.state.mode.state === "running";
      this.#rows.set(row.id, { where: isBehind ? "behind a claim" : "begun", row });
      if (isBehind) meet("stored behind a claim");
      this.#on({ type: "stored", row, ...this.#age() });
    }
  }

  /** The store gives no more than it is asked for, in the order of priorities. */
  #claimEnds(contents: readonly RowContent[] | undefined): void {
    if (this.#claim === undefined) return;
    const { rows: rowsMax } = this.#claim;
    this.#claim = undefined;
    const newer = this.#all("behind a claim");
    if (contents === undefined) {
      for (const tracked of newer) tracked.where = "begun";
      this.#on({ type: "claim_failed", nowMs: this.nowMs, random: 0 });
      return;
    }
    const rows = contents.slice(0, rowsMax).map((each) => this.#make(each));
    rows.sort((one, other) => rankOf(one) - rankOf(other));
    for (const row of rows) this.#rows.set(row.id, { where: "begun", row });
    // Behind the rows of the claim, also in the order of this map.
    for (const tracked of newer) {
      this.#rows.delete(tracked.row.id);
      this.#rows.set(tracked.row.id, { ...tracked, where: "begun" });
    }
    this.#on({ type: "claimed", rows, more: rows.length === rowsMax, madeAtMs: this.nowMs, ...this.#age() });
  }

  #tryEnds(tracked: Tracked | undefined, how: keyof typeof tries): void {
    if (tracked === undefined) return;
    const [end, signal] = tries[how];
    this.#on({ type: "try_ended", row: tracked.row, end, signal, nowMs: this.nowMs, random: 0, ...this.#age() });
    expect(tracked).toMatchObject({ where: "being recorded", end });
  }

  #endIsRecorded(tracked: Tracked | undefined): void {
    if (tracked?.end === undefined) return;
    tracked.where = "closed";
    this.#on({ type: "end_recorded", row: tracked.row, end: tracked.end });
  }

  #on(event: DrainEvent): void {
    const { state, effects } = stepDrain(this.state, event, limits);
    const before = this.state;
    this.state = state;
    meet(state.mode.state);
    for (const effect of effects) this.#perform(effect, before);
    this.#check();
  }

  #perform(effect: DrainEffect, before: DrainState): void {
    if (effect.type === "claim") {
      expect(this.#claim, "one claim at a time").toBeUndefined();
      expect(effect.rows).toBeLessThanOrEqual(limits.windowRows);
      this.#claim = effect;
    }
    if (effect.type === "send") this.#send(effect.row);
    if (effect.type === "record_end") {
      const tracked = this.#tracked(effect.row);
      if (effect.end.next === "put_back" && tracked.where === "begun") {
        meet(this.state.mode.state === "running" ? "too old" : "put back");
        if (before.waiting.size > 0) meet("put back after it waited");
      } else expect(tracked.where).toBe("at the broker");
      tracked.where = "being recorded";
      tracked.end = effect.end;
    }
  }

  #send(row: ClaimedRow): void {
    expect(this.state.mode.state).toBe("running");
    expect(row.enqueuedAt).toBeGreaterThan(this.#age().expiredAtOrBefore);
    const [first] = this.#all("begun").sort((one, other) => rankOf(one.row) - rankOf(other.row));
    expect(first?.row.id, "the first of the most urgent that wait").toBe(row.id);
    if (this.#all("begun").length > 1) meet("one of several left");
    this.#tracked(row).where = "at the broker";
  }

  #check(): void {
    const [begun, frames, newer] = [this.#all("begun"), this.#all("at the broker"), this.#all("behind a claim")];
    const tracked = [...newer, ...begun, ...frames, ...this.#all("being recorded")];
    const open = tracked.map(({ row }) => row).concat(this.#storing);
    const { state } = this;
    expect(state.framesOut).toBe(frames.length);
    expect(frames.length).toBeLessThanOrEqual(limits.windowRows);
    expect(state.waiting.size).toBe(begun.length);
    if (begun.length > 0) expect([state.mode.state, frames.length]).toEqual(["running", limits.windowRows]);
    expect(state.openRows).toBe(open.length);
    expect(state.openRows).toBeLessThanOrEqual(limits.openRowsUrgent + limits.windowRows);
    expect(state.openBytes).toBe(open.reduce((sum, { payload }) => sum + payload.length, 0));
    expect(state.claim === "none").toBe(this.#claim === undefined);
  }

  #make({ priority: rowPriority, bytes, bornBeforeMs }: RowContent): ClaimedRow {
    const id = `row-${++this.#made}`;
    return {
      id,
      clientMessageId: id,
      attempts: 0,
      unanswered: 0,
      destination: { kind: "topic", ref: "general" },
      priority: rowPriority,
      canonicalMeta: "",
      replyToId: undefined,
      envelopeVersion: "1",
      payload: new Uint8Array(bytes),
      enqueuedAt: this.nowMs - bornBeforeMs,
    };
  }

  #age() {
    return { expiredAtOrBefore: this.nowMs - maxAgeMs };
  }

  #tracked(row: ClaimedRow): Tracked {
    const tracked = this.#rows.get(row.id);
    if (tracked === undefined) throw new Error(`${row.id} was never begun`);
    return tracked;
  }

  #all(where: Tracked["where"]): Tracked[] {
    return [...this.#rows.values()].filter((each) => each.where === where);
  }

  #at(where: Tracked["where"], at: number): Tracked | undefined {
    const there = this.#all(where);
    return there[at % there.length];
  }
}

type RowContent = { readonly priority: Priority; readonly bytes: number; readonly bornBeforeMs: number };
const rankOf = (row: { readonly priority: Priority }) => prioritiesFirst.indexOf(row.priority);

function takeAt<Item>(items: Item[], at: number): Item | undefined {
  return items.length === 0 ? undefined : items.splice(at % items.length, 1)[0];
}

describe("a drain", () => {
  it("knows where each row is, sends only while it runs, and records each end once, whatever happens", () => {
    fc.assert(
      fc.property(fc.array(command, { minLength: 50, maxLength: 150 }), (steps) => {
        const model = new Model();
        model.run({ do: "linkUp" });
        for (const step of steps) model.run(step);
        model.finish();
      }),
      { numRuns: 300 },
    );
  });

  afterAll(() => {
    const cases = ["running", "waiting_for_broker", "resting", "halted", "stopped", "too old", "put back"];
    for (const what of [...cases, "put back after it waited", "one of several left", "stored behind a claim"]) {
      expect(met.get(what) ?? 0, what).toBeGreaterThan(10);
    }
  });
});
