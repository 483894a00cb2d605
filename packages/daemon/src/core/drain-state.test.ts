import type { Priority } from "@claudemesh/protocol/messages/envelope";
import { describe, expect, it } from "vitest";
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
import type { DrainSignal, TryEnd } from "./try-end.ts";

const backoff = { minMs: 500, maxMs: 60_000 };
const limits: DrainLimits = { backoff, windowRows: 2, openRows: 4, openRowsUrgent: 5, openBytes: 1_000 };
const nowMs = 1_000_000;
const age = { expiredAtOrBefore: 0 };
const moment = { nowMs, random: 0 };

const acceptance = { brokerMessageId: "b", historyId: 1, historyAvailable: true };
const done: TryEnd = { next: "done", acceptance };
const later: TryEnd = { next: "pending", unanswered: 1, nextAttemptAt: nowMs + 700, lastError: "timed_out: x" };
const putBack: TryEnd = { next: "put_back" };
const flows: DrainSignal = { type: "flows" };
const troubled: DrainSignal = { type: "troubled" };
const limited: DrainSignal = { type: "rate_limited", retryAfterMs: 30_000 };
const unauthorized: DrainSignal = { type: "unauthorized", detail: "unauthorized: because" };

function rowOf(id: string, given: { priority?: Priority; bytes?: number; enqueuedAt?: number } = {}): ClaimedRow {
  return {
    id,
    clientMessageId: id,
    attempts: 0,
    unanswered: 0,
    destination: { kind: "topic", ref: "general" },
    priority: given.priority ?? "next",
    canonicalMeta: "",
    replyToId: undefined,
    envelopeVersion: "1",
    payload: new Uint8Array(given.bytes ?? 1),
    enqueuedAt: given.enqueuedAt ?? nowMs,
  };
}

/** Gives a drain one event after another, and says what each of them leads to. */
class TestDrain {
  state: DrainState = initialDrain;

  on(event: DrainEvent): string[] {
    const { state, effects } = stepDrain(this.state, event, limits);
    this.state = state;
    return effects.map(describeEffect);
  }

  /** Online, with nothing due. */
  static running(): TestDrain {
    const drain = new TestDrain();
    drain.on({ type: "link_up" });
    drain.claimed([]);
    return drain;
  }

  claimed(rows: readonly ClaimedRow[], more = false): string[] {
    return this.on({ type: "claimed", rows, more, madeAtMs: nowMs, ...age });
  }

  /** A new row as it comes: room is taken for it, and it is stored as inflight. */
  stored(row: ClaimedRow): string[] {
    this.on({ type: "room_taken", bytes: row.payload.length });
    return this.on({ type: "stored", row, ...age });
  }

  tried(row: ClaimedRow, end: TryEnd, signal: DrainSignal, at: Partial<typeof moment> = {}): string[] {
    return this.on({ type: "try_ended", row, end, signal, ...age, ...moment, ...at });
  }
}

function describeEffect(effect: DrainEffect): string {
  switch (effect.type) {
    case "claim":
      return `claim ${effect.rows}`;
    case "send":
      return `send ${effect.row.id}`;
    case "record_end":
      return `record ${effect.row.id} ${effect.end.next}`;
    case "wake_at":
      return `wake in ${effect.timeMs - nowMs}`;
    default:
      return effect.type;
  }
}

const [a, b, c, d] = ["a", "b", "c", "d"].map((id) => rowOf(id)) as [ClaimedRow, ClaimedRow, ClaimedRow, ClaimedRow];

describe("the modes of the drain", () => {
  it("begins by waiting for the broker, and does nothing until a hello has succeeded", () => {
    const drain = new TestDrain();
    expect(drain.state.mode).toEqual({ state: "waiting_for_broker" });
    expect(drain.on({ type: "wake", nowMs })).toEqual([]);
    expect(hasRoom(drain.state, a, limits)).toBe(false);
    expect(drain.on({ type: "link_up" })).toEqual(["claim 2"]);
    expect(drain.state.mode).toEqual({ state: "running" });
  });

  it("rests after trouble, longer each time, until a success has followed", () => {
    const drain = TestDrain.running();
    const trouble = (row: ClaimedRow, random: number) => {
      drain.stored(row);
      const effects = drain.tried(row, later, troubled, { random });
      drain.on({ type: "end_recorded", row, end: later });
      return effects;
    };
    expect(trouble(a, 0.999999)).toEqual(["record a pending", "wake in 1000"]);
    expect(drain.state.mode).toEqual({ state: "resting", until: nowMs + 1_000 });
    drain.on({ type: "wake", nowMs: nowMs + 1_000 });
    drain.claimed([]);
    expect(trouble(b, 0.999999)).toEqual(["record b pending", "wake in 2000"]);
    drain.on({ type: "wake", nowMs: nowMs + 2_000 });
    drain.claimed([c]);
    drain.tried(c, done, flows);
    expect(trouble(d, 0.999999)).toEqual(["record d pending", "wake in 1000"]);
  });

  it("counts the failures of one window as one", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    drain.stored(b);
    drain.tried(a, later, troubled);
    const { mode } = drain.state;
    drain.tried(b, later, troubled, { random: 0.999999 });
    expect(drain.state).toMatchObject({ mode, rests: 1 });
  });

  it("rests at least as long as the broker asks, and says since when the budget is spent until a success follows", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    drain.stored(b);
    drain.tried(a, later, limited);
    const resting = { state: "resting", until: nowMs + 30_000 };
    expect(drain.state.mode).toEqual({ ...resting, rate_limited_since: nowMs });
    drain.tried(b, done, flows);
    expect(drain.state.mode).toEqual(resting);
  });

  it("goes on when the rest is over and not before, whatever wakes it", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    drain.tried(a, later, limited);
    expect(drain.on({ type: "wake", nowMs: nowMs + 29_999 })).toEqual(["wake in 30000"]);
    expect(drain.on({ type: "wake", nowMs: nowMs + 30_000 })).toEqual(["claim 1"]);
    expect(drain.state.mode).toEqual({ state: "running" });
  });

  it("rests when the disk refuses a claim, and claims anew after it", () => {
    const drain = new TestDrain();
    drain.on({ type: "link_up" });
    expect(drain.on({ type: "claim_failed", ...moment })).toEqual(["wake in 500"]);
    expect(drain.on({ type: "wake", nowMs: nowMs + 500 })).toEqual(["claim 2"]);
  });

  it("halts when the broker refuses the member, asks once for another hello, and runs again after it", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    drain.stored(b);
    expect(drain.tried(a, later, unauthorized)).toEqual(["record a pending", "cancel_wake", "renew_link"]);
    expect(drain.tried(b, later, unauthorized)).toEqual(["record b pending"]);
    const halted = { state: "halted", reason: "unauthorized", detail: "unauthorized: because" };
    drain.on({ type: "link_down" });
    expect(drain.state.mode).toEqual(halted);
    for (const row of [a, b]) expect(drain.on({ type: "end_recorded", row, end: later })).toEqual([]);
    expect(drain.on({ type: "wake", nowMs: nowMs + 1e9 })).toEqual([]);
    expect(drain.on({ type: "link_up" })).toEqual(["claim 2"]);
    expect(drain.state.mode).toEqual({ state: "running" });
  });

  it("stops for good", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    expect(drain.on({ type: "stop" })).toEqual(["cancel_wake"]);
    expect(drain.on({ type: "link_up" })).toEqual([]);
    expect(drain.tried(a, later, unauthorized)).toEqual(["record a pending"]);
    expect(drain.on({ type: "end_recorded", row: a, end: later })).toEqual([]);
    expect(drain.state).toMatchObject({ mode: { state: "stopped" }, openRows: 0, framesOut: 0 });
  });
});

describe("a row", () => {
  it("leaves at once where the window has room, and waits behind a full one", () => {
    const drain = TestDrain.running();
    expect(drain.stored(a)).toEqual(["send a"]);
    expect(drain.stored(b)).toEqual(["send b"]);
    expect(drain.stored(c)).toEqual([]);
    expect(drain.tried(a, done, flows)).toEqual(["record a done", "send c"]);
  });

  it("that is more urgent overtakes those that wait, and has room where others have none left", () => {
    const drain = TestDrain.running();
    for (const row of [a, b, c, d]) drain.stored(row);
    const urgent = rowOf("urgent", { priority: "now" });
    expect(hasRoom(drain.state, a, limits)).toBe(false);
    expect(hasRoom(drain.state, urgent, limits)).toBe(true);
    drain.stored(urgent);
    expect(drain.tried(a, done, flows)).toEqual(["record a done", "send urgent"]);
    expect(drain.tried(b, done, flows)).toEqual(["record b done", "send c"]);
  });

  it.each<[string, (drain: TestDrain) => string[], string[]]>([
    ["the link goes down", (drain) => drain.on({ type: "link_down" }), ["cancel_wake"]],
    ["the daemon stops", (drain) => drain.on({ type: "stop" }), ["cancel_wake"]],
  ])("that waits is pending again, untried, when %s", (_, happens, after) => {
    const drain = TestDrain.running();
    for (const row of [a, b, c, d]) drain.stored(row);
    expect(happens(drain)).toEqual(["record c put_back", "record d put_back", ...after]);
    expect(drain.state.waiting.size).toBe(0);
  });

  it("that waits is pending again, untried, when the broker needs a rest", () => {
    const drain = TestDrain.running();
    for (const row of [a, b, c]) drain.stored(row);
    expect(drain.tried(a, later, troubled)).toEqual(["record a pending", "record c put_back", "wake in 500"]);
  });

  it("that is inflight only after the drain ceased to run is pending again, untried", () => {
    const drain = TestDrain.running();
    drain.on({ type: "room_taken", bytes: 1 });
    drain.on({ type: "wake", nowMs });
    drain.on({ type: "link_down" });
    expect(drain.on({ type: "stored", row: a, ...age })).toEqual(["record a put_back"]);
    expect(drain.claimed([b])).toEqual(["record b put_back"]);
  });

  it("that is too old to be tried is pending again, also after it has waited (MSG-11)", () => {
    const drain = TestDrain.running();
    const old = rowOf("old", { enqueuedAt: nowMs - 1 });
    drain.on({ type: "room_taken", bytes: 1 });
    expect(drain.on({ type: "stored", row: old, expiredAtOrBefore: nowMs - 1 })).toEqual(["record old put_back"]);
    for (const row of [a, b, rowOf("ages", { enqueuedAt: nowMs - 1 }), c]) drain.stored(row);
    const ended = { type: "try_ended", row: a, end: done, signal: flows, ...moment } as const;
    expect(drain.on({ ...ended, expiredAtOrBefore: nowMs - 1 })).toEqual([
      "record a done",
      "record ages put_back",
      "send c",
    ]);
  });

  it("that is to be tried later wakes the drain then, once that is recorded", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    drain.tried(a, later, flows);
    expect(drain.on({ type: "end_recorded", row: a, end: later })).toEqual(["wake in 700"]);
  });
});

describe("a claim", () => {
  it("takes what the window has room for, and no other is begun beside it", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    expect(drain.on({ type: "wake", nowMs })).toEqual(["claim 1"]);
    expect(drain.on({ type: "wake", nowMs })).toEqual([]);
    expect(drain.claimed([])).toEqual(["claim 1"]);
    expect(drain.claimed([])).toEqual(["wake_when_due"]);
  });

  it("follows as soon as there is room where due rows were left behind", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    drain.stored(b);
    expect(drain.on({ type: "wake", nowMs })).toEqual([]);
    drain.tried(a, done, flows);
    expect(drain.on({ type: "end_recorded", row: a, end: done })).toEqual(["claim 1"]);
    expect(drain.claimed([c], true)).toEqual(["send c"]);
    drain.tried(b, done, flows);
    expect(drain.on({ type: "end_recorded", row: b, end: done })).toEqual(["claim 1"]);
  });

  it("follows when a row was put back so late that the last one did not see it", () => {
    const drain = TestDrain.running();
    drain.stored(a);
    drain.tried(a, putBack, { type: "not_sent" });
    expect(drain.on({ type: "wake", nowMs: nowMs + 500 })).toEqual(["claim 1"]);
    expect(drain.claimed([])).toEqual(["wake_when_due"]);
    expect(drain.on({ type: "end_recorded", row: a, end: putBack })).toEqual(["claim 2"]);
  });

  it("follows when a row became due while another was under way and new rows filled the window", () => {
    const drain = TestDrain.running();
    expect(drain.on({ type: "wake", nowMs })).toEqual(["claim 2"]);
    for (const row of [a, b]) drain.stored(row);
    drain.on({ type: "wake", nowMs });
    expect(drain.claimed([])).toEqual(["send a", "send b"]);
    drain.tried(a, done, flows);
    expect(drain.on({ type: "end_recorded", row: a, end: done })).toEqual(["claim 1"]);
  });

  it("is followed by new rows that were stored while it was under way, and more urgent ones go first", () => {
    const drain = TestDrain.running();
    drain.on({ type: "wake", nowMs });
    expect(drain.stored(b)).toEqual([]);
    expect(drain.stored(rowOf("urgent", { priority: "now" }))).toEqual([]);
    expect(drain.claimed([a])).toEqual(["send urgent", "send a", "wake_when_due"]);
    expect(drain.tried(a, done, flows)).toEqual(["record a done", "send b"]);
  });

  it("that fails leaves new rows that were stored meanwhile pending, untried", () => {
    const drain = TestDrain.running();
    drain.on({ type: "wake", nowMs });
    drain.stored(a);
    expect(drain.on({ type: "claim_failed", ...moment })).toEqual(["record a put_back", "wake in 500"]);
  });

  it("that was short of bytes is not repeated before a row has ended", () => {
    const drain = TestDrain.running();
    drain.on({ type: "wake", nowMs });
    const large = rowOf("large", { bytes: 600 });
    expect(drain.claimed([large], true)).toEqual(["send large", "wake_when_due"]);
    drain.tried(large, done, flows);
    expect(drain.on({ type: "end_recorded", row: large, end: done })).toEqual(["claim 2"]);
  });

  it("leaves new rows their room, and payloads have a bound of their own", () => {
    const drain = TestDrain.running();
    drain.on({ type: "wake", nowMs });
    expect(hasRoom(drain.state, a, limits)).toBe(true);
    drain.claimed([]);
    drain.stored(rowOf("large", { bytes: 1_000 }));
    expect(hasRoom(drain.state, a, limits)).toBe(false);
    expect(drain.on({ type: "wake", nowMs })).toEqual([]);
  });
});
