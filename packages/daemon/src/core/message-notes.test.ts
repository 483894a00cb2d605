import type { MessageNote } from "@claudemesh/client/daemon";
import { describe, expect, it } from "vitest";
import { notesOf, type WayNow } from "./message-notes.ts";
import type { MessageState } from "./message-state.ts";
import type { OutboxRecord } from "./outbox-row.ts";

const calm: WayNow = {};
const topic = { destination_kind: "topic", destination_ref: "news" } as const;

function notes(row: Partial<OutboxRecord>, way = calm, counts?: MessageState["counts"]) {
  const whole = {
    client_message_id: "m1",
    dismissed_at: null,
    unanswered: 0,
    fenced: 0,
    attempts: 1,
    ...topic,
    ...row,
  };
  const destination = { kind: whole.destination_kind, ref: whole.destination_ref };
  return notesOf(whole as OutboxRecord, destination, counts, way);
}

const dead = (last_error: string, row: Partial<OutboxRecord> = {}): string => {
  const [note, ...others] = notes({ status: "dead", last_error, ...row });
  expect(others).toEqual([]);
  expect(note?.code).toBe("dead");
  expect(note?.text).toContain("claudemesh daemon outbox dismiss m1 --why");
  return note?.text ?? "";
};

describe("the advice on a dead row", () => {
  it("is to make what is missing before it is requeued", () => {
    const text = dead("destination_not_found: No such topic, member or queue.");
    expect(text).toMatch(/topic create news.*requeue m1/);
    const jobs = { destination_kind: "queue", destination_ref: "jobs" } as const;
    expect(dead("destination_not_found: gone", jobs)).toMatch(/queue create jobs.*requeue m1/);
    expect(dead("not_subscribed: Only subscribers")).toMatch(/topic subscribe news.*requeue m1/);
  });

  it("is no requeue where that would meet the same refusal", () => {
    const bob = { destination_kind: "dm", destination_ref: "ab".repeat(32) } as const;
    expect(dead("destination_not_found: gone", bob)).not.toContain("requeue");
  });

  it.each([
    ["payload_too_large: The body is larger than the limit.", "requeue m1 --patch-payload"],
    ["fenced: it was never accepted and never will be", "give it a new one with `claudemesh daemon outbox requeue m1`"],
    ["idempotency_key_reused: taken", "give it a new one with `claudemesh daemon outbox requeue m1`"],
    ["expired: older than the maximum age", "requeue it: `claudemesh daemon outbox requeue m1`"],
    ["something_new: that is unknown here", "Once the cause is mended"],
  ])("fits %s", (error, advice) => {
    expect(dead(error)).toContain(advice);
  });

  it("says that it may have arrived, where that is so", () => {
    expect(dead("expired: fate unknown", { unanswered: 1 })).toContain("It may have arrived");
  });

  it("ends when the row was dismissed", () => {
    const row = { status: "dead", last_error: "x: y", dismissed_at: 1, dismissed_why: "sent by hand" } as const;
    expect(notes(row)).toEqual([{ code: "dismissed", text: "It was dismissed: sent by hand" }]);
  });
});

describe("what a sender should know", () => {
  const codes = (list: MessageNote[]) => list.map(({ code }) => code);
  const spent: WayNow = { rateLimited: { since: 0, until: 60_000 }, membershipEndedAt: 1 };

  it("of a message that waits: the budget is spent, since when and until when, or the membership is over", () => {
    expect(codes(notes({ status: "pending" }, spent))).toEqual(["membership_ended", "rate_limited"]);
    expect(notes({ status: "pending" }, spent)[1]?.text).toContain(
      "since 1970-01-01 00:00:00 UTC until 1970-01-01 00:01:00",
    );
    expect(notes({ status: "done" }, spent)).toEqual([]);
    const [away, ...more] = notes({ status: "pending" }, { brokerAway: true });
    expect([away?.code, more]).toEqual(["broker_away", []]);
    expect(away?.text).toContain("claudemesh daemon status");
    expect(notes({ status: "pending" })).toEqual([]);
  });

  it("of a stored message: that no member was subscribed", () => {
    const asked = (delivered: number) => ({ unsettled: 0, delivered, expired: 0 });
    expect(codes(notes({ status: "done" }, calm, asked(0)))).toEqual(["no_recipients"]);
    expect(notes({ status: "done" }, calm, asked(1))).toEqual([]);
    expect(notes({ status: "done", destination_kind: "queue" }, calm, asked(0))).toEqual([]);
    const sentDirectly = notesOf(undefined, { kind: "topic", ref: "news" }, asked(0), calm);
    expect(codes(sentDirectly), "of a message without a row here").toEqual(["no_recipients"]);
  });
});
