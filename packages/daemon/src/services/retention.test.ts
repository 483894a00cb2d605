import { describe, expect, it } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { newRow, openTestStores, recordingLog } from "../testing/test-stores.ts";
import { resumeOutbox } from "./resume-outbox.ts";
import { runRetention } from "./retention.ts";

const dayMs = 86_400_000;

async function setUp() {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const log = recordingLog();
  const insert = async (columns: Record<string, string | number>) => {
    const row = newRow(stores, clock);
    await stores.outbox.insert(row, "pending");
    for (const [column, value] of Object.entries(columns)) {
      stores.outboxDb.sql(`UPDATE outbox SET ${column} = ? WHERE id = ?`).run(value, row.id);
    }
    return row;
  };
  const arrive = (historyId: number) =>
    stores.inbox.insert(
      {
        clientMessageId: `c-${historyId}`,
        brokerMessageId: `b-${historyId}`,
        historyId,
        topic: "general",
        senderPubkey: "ab".repeat(32),
        senderName: undefined,
        priority: "next",
        meta: "",
        replyToId: undefined,
        acceptedAt: 1,
        sealed: false,
        fromAgent: undefined,
        toAgent: undefined,
        unreadable: undefined,
        restored: false,
        body: new Uint8Array(),
      },
      clock.nowMs(),
    );
  return { clock, stores, log, insert, arrive };
}

describe("retention", () => {
  it("replaces done rows by tombstones after their time, and removes nothing else", async () => {
    const { clock, stores, log, insert } = await setUp();
    const done = { broker_message_id: "b", history_id: 1, status: "done" };
    for (let index = 0; index < 300; index++) await insert({ ...done, delivered_at: clock.nowMs() });
    const others = await Promise.all([insert({ status: "dead" }), insert({ status: "aborted" }), insert({})]);
    clock.advance(30 * dayMs);
    const young = await insert({ ...done, delivered_at: clock.nowMs() });
    const retention = { doneRetentionDays: 30, inboxRetentionDays: undefined };
    const ports = { outbox: stores.outbox, inbox: stores.inbox, clock, log };
    await runRetention(ports, retention, () => false);
    expect(stores.outboxDb.sql("SELECT count(*) AS n FROM outbox_tombstone").get()).toEqual({ n: 0 });
    clock.advance(1);
    await runRetention(ports, retention, () => false);
    expect(stores.outboxDb.sql("SELECT count(*) AS n FROM outbox_tombstone").get()).toEqual({ n: 300 });
    const left = stores.outbox.list(undefined, { after: undefined, limit: 1_000 }).items.map(({ id }) => id);
    expect(left).toEqual([...others, young].map(({ id }) => id));
    expect(log.lines).toMatchObject([{ event: "housekeeping", outbox_pruned: 300 }]);
  });

  it("removes old messages from the inbox only where that is asked for", async () => {
    const { clock, stores, log, arrive } = await setUp();
    await arrive(1);
    clock.advance(8 * dayMs);
    await arrive(2);
    const ports = { outbox: stores.outbox, inbox: stores.inbox, clock, log };
    const ids = () => stores.inboxDb.sql<{ history_id: number }>("SELECT history_id FROM inbox").all();
    await runRetention(ports, { doneRetentionDays: 30, inboxRetentionDays: undefined }, () => false);
    expect(ids()).toHaveLength(2);
    await runRetention(ports, { doneRetentionDays: 30, inboxRetentionDays: 7 }, () => false);
    expect(ids()).toEqual([{ history_id: 2 }]);
  });

  it("does no further step once the daemon stops", async () => {
    const { clock, stores, log, insert } = await setUp();
    await insert({ status: "done", broker_message_id: "b", history_id: 1, delivered_at: clock.nowMs() });
    clock.advance(31 * dayMs);
    const ports = { outbox: stores.outbox, inbox: stores.inbox, clock, log };
    await runRetention(ports, { doneRetentionDays: 30, inboxRetentionDays: undefined }, () => true);
    expect(stores.outboxDb.sql("SELECT count(*) AS n FROM outbox").get()).toEqual({ n: 1 });
  });
});

describe("recovery at start", () => {
  it("counts every try that was cut off as one whose fate is unknown, and touches no other row", async () => {
    const { clock, stores, log, insert } = await setUp();
    const cut = await insert({ status: "inflight", attempts: 2, unanswered: 1, next_attempt_at: 5 });
    const others = [await insert({}), await insert({ status: "done" }), await insert({ status: "dead" })];
    const before = others.map(({ id }) => stores.outbox.inspect(id)?.row);
    await resumeOutbox(stores.outbox, clock.nowMs(), { minMs: 500, maxMs: 60_000 }, log);
    expect(stores.outbox.inspect(cut.id)?.row).toMatchObject({
      status: "pending",
      attempts: 3,
      unanswered: 2,
      next_attempt_at: clock.nowMs(),
      last_error: expect.stringMatching(/^interrupted: /),
    });
    expect(others.map(({ id }) => stores.outbox.inspect(id)?.row)).toEqual(before);
  });

  it("brings due times forward that a clock ahead of ours left behind", async () => {
    const { clock, stores, log, insert } = await setUp();
    const nowMs = clock.nowMs();
    const soon = await insert({ next_attempt_at: nowMs + 30_000 });
    const far = await insert({ next_attempt_at: nowMs + 10 * dayMs });
    await resumeOutbox(stores.outbox, nowMs, { minMs: 500, maxMs: 60_000 }, log);
    expect(stores.outbox.inspect(soon.id)?.row.next_attempt_at).toBe(nowMs + 30_000);
    expect(stores.outbox.inspect(far.id)?.row.next_attempt_at).toBe(nowMs + 60_000);
  });
});
