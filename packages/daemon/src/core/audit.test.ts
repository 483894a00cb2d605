// The audit's judgement: what fits is in one class, and each way not to fit is named with its layer.
import { describe, expect, it } from "vitest";
import {
  AuditLedger,
  type FateWord,
  type FoundState,
  judgeAbsent,
  judgeDirectSend,
  judgeInboxRow,
  judgeInboxTombstones,
  judgeOutbox,
  judgeRow,
  judgeTombstone,
  type OutboxSnapshot,
  type Verdict,
} from "./audit.ts";
import type { Delivery, MessageState } from "./message-state.ts";
import type { OutboxRecord } from "./outbox-row.ts";

const bob = "bb".repeat(32);
const row: OutboxRecord = {
  ...{ id: "01", client_message_id: "c-1", request_fingerprint: new Uint8Array(32) },
  ...{ wire_fingerprint: new Uint8Array(32), to_address: "@bob", destination_kind: "dm", destination_ref: bob },
  ...{ priority: "next", meta: "", reply_to_id: null, envelope_version: "2", enqueued_at: 1, attempts: 1 },
  ...{ unanswered: 0, fenced: 0, next_attempt_at: 1, status: "done", last_error: null, delivered_at: 2 },
  ...{ broker_message_id: "b-1", history_id: 7, aborted_at: null, aborted_by: null, superseded_by: null },
  accept_duplicate: 0,
  dismissed_at: null,
  dismissed_by: null,
  dismissed_why: null,
};
const committed = { fate: "committed", brokerMessageId: "b-1", historyId: 7, historyAvailable: true } as const;
const absent: FateWord = { fate: "not_committed" };
const notFound = { type: "not_found" } as const;
const delivery = (state: Delivery["state"], recipientPubkey = bob): Delivery => ({
  recipientPubkey,
  state,
  settledAt: undefined,
});

function stateOf(all: readonly Delivery[], given: Partial<MessageState> = {}): FoundState {
  const count = (state: Delivery["state"]) => all.filter((each) => each.state === state).length;
  const destination = { kind: "dm", ref: bob } as const;
  const state: MessageState = {
    ...{ brokerMessageId: "b-1", acceptedAt: 1, deliveries: all, nextCursor: undefined, queue: undefined },
    counts: { unsettled: count("unsettled"), delivered: count("delivered"), expired: count("expired") },
    message: { clientMessageId: "c-1", historyId: 7, destination, senderPubkey: "aa" },
    ...given,
  };
  return { type: "found", state, all };
}

function reportOf(...verdicts: readonly Verdict[]) {
  const ledger = new AuditLedger();
  for (const verdict of verdicts) ledger.add(verdict);
  const { layers, imbalances, balanced } = ledger.report(true);
  const classes = Object.fromEntries(layers.filter(({ total }) => total > 0).map((each) => [each.layer, each.classes]));
  return { classes, named: imbalances.map(({ layer, id }) => `${layer} ${id}`), balanced };
}

const outbox: OutboxSnapshot = {
  ...{ rows: 3, tombstones: 2, classes: { queued: 1, stored: 2, tombstones: 2 } },
  ...{ withoutSuccessor: [], heldTwice: [], removed: [] },
};
const pruned = {
  ...{ id: "01", clientMessageId: "c-1", wireFingerprint: new Uint8Array(32) },
  ...{ brokerMessageId: "b-1", historyId: 7 },
};
const inboxRow = { id: "i", clientMessageId: "c-1", brokerMessageId: "b-1", historyId: 7, restored: false };
const done = stateOf([delivery("delivered")]);

describe("records that fit", () => {
  it("balance, each in one class of its layer", () => {
    const topic = { ...row, destination_kind: "topic", destination_ref: "general" } as const;
    const all = [delivery("unsettled", "01"), delivery("delivered", "02"), delivery("expired", "03")];
    const report = reportOf(
      judgeOutbox(outbox),
      judgeRow(row, committed, done, false),
      judgeRow(topic, committed, stateOf(all), false),
      judgeDirectSend(),
      judgeInboxRow(inboxRow, done, delivery("delivered")),
      judgeInboxTombstones(4),
    );
    expect(report).toEqual({
      classes: {
        outbox: outbox.classes,
        broker: { committed: 2, direct: 1 },
        deliveries: { settled: 2, unsettled: 1, expired: 1 },
        inbox: { settled: 1, removed_by_retention: 4 },
      },
      named: [],
      balanced: true,
    });
  });

  it.each<readonly [string, Verdict, object]>([
    ["an id that the broker may have forgotten", judgeRow(row, absent, notFound, true), { past_dedupe_window: 1 }],
    [
      "a message that retention removed",
      judgeRow(row, { ...committed, historyAvailable: false }, notFound, false),
      { removed_by_retention: 1 },
    ],
    [
      "a duplicate that was accepted",
      judgeRow({ ...row, status: "aborted", unanswered: 1, accept_duplicate: 1 }, committed, done, false),
      { accepted_duplicates: 1 },
    ],
    [
      "a dead row of unknown fate that was stored",
      judgeRow({ ...row, status: "dead", unanswered: 1 }, committed, done, false),
      { fate_unknown_here: 1 },
    ],
  ])("have a class at the broker for %s", (_, verdict, classes) => {
    expect(reportOf(verdict)).toEqual({ classes: { broker: classes }, named: [], balanced: true });
  });

  it.each<readonly [string, Verdict, object]>([
    ["an ack on its way", judgeInboxRow(inboxRow, done, delivery("unsettled")), { unsettled: 1 }],
    ["a message that the broker has no longer", judgeInboxRow(inboxRow, notFound, undefined), { gone_from_broker: 1 }],
    ["a restored row", judgeInboxRow({ ...inboxRow, restored: true }, done, undefined), { restored: 1 }],
  ])("have a class in the inbox for %s", (_, verdict, classes) => {
    expect(reportOf(verdict)).toEqual({ classes: { inbox: classes }, named: [], balanced: true });
  });

  it("leave out what has not ended and what is not here yet", () => {
    const dead = { ...row, status: "dead" } as const;
    const open = { ...row, status: "pending", broker_message_id: null } as const;
    const verdicts = [
      judgeRow(open, absent, notFound, false),
      judgeRow(dead, absent, notFound, false),
      judgeAbsent("c-1", delivery("unsettled")),
      judgeAbsent("c-1", undefined),
    ];
    expect(reportOf(...verdicts)).toEqual({ classes: {}, named: [], balanced: true });
  });
});

describe("a record that does not fit", () => {
  const queue = { ...row, destination_kind: "queue", destination_ref: "jobs" } as const;
  const other = {
    clientMessageId: "c-2",
    historyId: 7,
    destination: { kind: "dm", ref: bob },
    senderPubkey: "aa",
  } as const;
  it.each<readonly [string, string, Verdict]>([
    ["a row of no class", "outbox *", judgeOutbox({ ...outbox, rows: 4 })],
    ["a requeued row without successor", "outbox c-9", judgeOutbox({ ...outbox, withoutSuccessor: ["c-9"] })],
    ["an id that is row and tombstone", "outbox c-9", judgeOutbox({ ...outbox, heldTwice: ["c-9"] })],
    [
      "a row that another program removed",
      "outbox c-9",
      judgeOutbox({ ...outbox, removed: [{ clientMessageId: "c-9", status: "done" }] }),
    ],
    ["a tombstone without a dedupe record", "broker c-1", judgeTombstone(pruned, absent)],
    ["a tombstone of another message", "broker c-1", judgeTombstone({ ...pruned, historyId: 8 }, committed)],
    ["a stored row without ids", "outbox c-1", judgeRow({ ...row, history_id: null }, committed, done, false)],
    ["no dedupe record", "broker c-1", judgeRow(row, absent, notFound, false)],
    ["another broker id", "broker c-1", judgeRow(row, { ...committed, brokerMessageId: "b-2" }, done, false)],
    ["another history id", "broker c-1", judgeRow(row, { ...committed, historyId: 8 }, done, false)],
    ["no message", "broker c-1", judgeRow(row, committed, notFound, false)],
    ["another's history row", "broker c-1", judgeRow(row, committed, stateOf([], { message: other }), false)],
    ["a refused row that is stored", "broker c-1", judgeRow({ ...row, status: "dead" }, committed, done, false)],
    [
      "a fenced row that is stored",
      "broker c-1",
      judgeRow({ ...row, status: "aborted", unanswered: 1, fenced: 1 }, committed, done, false),
    ],
    ["a direct message without recipient", "deliveries c-1", judgeRow(row, committed, stateOf([]), false)],
    [
      "a direct message to another",
      "deliveries c-1",
      judgeRow(row, committed, stateOf([delivery("delivered", "cc")]), false),
    ],
    [
      "a delivery of no class",
      "deliveries c-1",
      judgeRow(
        row,
        committed,
        stateOf([delivery("delivered")], { counts: { unsettled: 0, delivered: 0, expired: 0 } }),
        false,
      ),
    ],
    ["not in the queue", "deliveries c-1", judgeRow(queue, committed, stateOf([]), false)],
    ["a settled delivery without a row", "inbox c-1", judgeAbsent("c-1", delivery("delivered"))],
    ["a row without delivery", "inbox c-1", judgeInboxRow(inboxRow, done, undefined)],
    [
      "a row of another message",
      "inbox c-1",
      judgeInboxRow({ ...inboxRow, historyId: 8 }, done, delivery("delivered")),
    ],
  ])("is named with its layer: %s", (_, name, verdict) => {
    expect(reportOf(verdict)).toMatchObject({ named: [name], balanced: false });
  });

  it("is counted also where too many are named already", () => {
    const ledger = new AuditLedger();
    for (let id = 0; id < 250; id++) ledger.add(judgeAbsent(`c-${id}`, delivery("delivered")));
    const { layers, imbalances } = ledger.report(true);
    expect(imbalances.length).toBe(100);
    expect(layers.find(({ layer }) => layer === "inbox")?.imbalances).toBe(250);
  });
});
