import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { setDisplay } from "./display.ts";
import { describeMessage, type MessageStatus } from "./message-timeline.ts";

const bob = "bb".repeat(32);
const carol = "cc".repeat(32);
const at = Date.UTC(2030, 0, 31, 12, 0, 0);
const queued = { stage: "queued", at, outbox_id: "OUT1" };
const stored = { stage: "stored", at: at + 1_000, broker_message_id: "b-1", history_id: 7 };

const facts: MessageStatus = {
  id: "build-42",
  client_message_id: "build-42",
  to: "#builds",
  destination: { kind: "topic", ref: "builds" },
  sender_pubkey: "aa".repeat(32),
  sender_name: "alice",
  state: "stored",
  fate: "committed",
  attempts: 1,
  next_attempt_at: null,
  last_error: null,
  broker: "asked",
  stages: [queued, stored],
  deliveries: [],
  queue: null,
  chain: [{ client_message_id: "build-42", status: "done", accept_duplicate: false }],
};

// Without how long ago that was.
beforeAll(() => setDisplay({ utc: true }));
afterAll(() => setDisplay({}));

const linesOf = (given: Partial<MessageStatus>) => describeMessage({ ...facts, ...given }, undefined).split("\n");

describe("a message's timeline", () => {
  it("has a line for every stage, and for each recipient that still waits", () => {
    const lines = linesOf({
      stages: [queued, stored, { stage: "delivered", at: at + 2_000, recipient_pubkey: bob, recipient_name: "bob" }],
      deliveries: [
        { recipient_pubkey: bob, recipient_name: "bob", state: "delivered" },
        { recipient_pubkey: carol, recipient_name: null, state: "unsettled" },
      ],
    });
    expect(lines).toEqual([
      "build-42  stored",
      "from alice to #builds",
      "WHEN                  WHAT       DETAILS",
      "2030-01-31T12:00:00Z  queued     outbox OUT1",
      "2030-01-31T12:00:01Z  stored     broker b-1, history 7",
      "2030-01-31T12:00:02Z  delivered  bob",
      "-                     waiting    for (cccccccccccc)",
    ]);
  });

  it("shows where a message stands in its queue, until it is settled", () => {
    const queue = { state: "parked", deliveries: 5 };
    expect(linesOf({ queue }).at(-1)).toBe("-                     parked  in its queue, handed out 5 times");
    expect(linesOf({ queue: { state: "acked", deliveries: 1 }, state: "delivered" }).at(-1)).toMatch(/stored/);
  });

  it("goes by the id that was asked for where no other is known", () => {
    expect(linesOf({ id: "b-1", client_message_id: null })[0]).toBe("b-1  stored");
  });

  it("says when the next try is due and why there is one", () => {
    const waiting = {
      state: "queued",
      fate: "unknown",
      attempts: 2,
      next_attempt_at: at,
      last_error: "timed_out: late",
    };
    const lines = linesOf({ ...waiting, stages: [queued], deliveries: null });
    expect(lines[0]).toBe("build-42  queued (fate: unknown)");
    expect(lines.at(-1)).toBe("2030-01-31T12:00:00Z  next try  after 2: timed_out: late");
  });

  it("says of a dead message why, and what the daemon advises", () => {
    const dead = { stage: "dead", at: null, fate: "refused", last_error: "destination_not_found: gone" };
    const notes = [{ text: "Create the topic, then requeue it." }];
    const lines = linesOf({ state: "dead", fate: "refused", stages: [queued, dead], deliveries: null, notes });
    expect(lines[0]).toBe("build-42  dead (fate: refused)");
    expect(lines).toContain("-                     dead    destination_not_found: gone");
    expect(lines.at(-1)).toBe("Create the topic, then requeue it.");
  });

  it("shows the chain of requeues, and what was accepted on the way", () => {
    const aborted = { stage: "aborted", at, by: "operator", superseded_by: "OUT2", fate: "unknown" };
    const lines = linesOf({
      state: "aborted",
      fate: "unknown",
      stages: [queued, aborted],
      chain: [
        { client_message_id: "build-42", status: "aborted", accept_duplicate: true },
        { client_message_id: "again", status: "pending", accept_duplicate: true },
      ],
    });
    expect(lines).toContain("2030-01-31T12:00:00Z  aborted  by operator, superseded by OUT2");
    expect(lines).toContain("Chain: build-42 (aborted, duplicate accepted) → again (pending, duplicate accepted)");
  });

  it.each([
    ["not_reachable", /could not be asked/],
    ["not_found", /no longer keeps it/],
  ])("says when the broker's part is missing: %s", (broker, remark) => {
    expect(linesOf({ broker }).at(-1)).toMatch(remark);
    expect(linesOf({ broker: "asked" }).at(-1)).not.toMatch(remark);
  });

  it("of a received message names sender and destination by what is known", () => {
    const received = { to: null, sender_name: null, fate: null, attempts: null, chain: [] };
    expect(linesOf(received)[1]).toBe("from (aaaaaaaaaaaa) to #builds");
    expect(linesOf({ ...received, destination: { kind: "dm", ref: bob } })[1]).toContain("to (bbbbbbbbbbbb)");
    expect(linesOf({ ...received, destination: null, sender_pubkey: null })[1]).toMatch(/^WHEN/);
  });
});
