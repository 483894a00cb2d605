import { canTransition, outboxStatuses } from "@claudemesh/protocol/messages/outbox-row";
import { describe, expect, it } from "vitest";
import type { NewOutboxRow } from "../../core/outbox-row.ts";
import type { OutboxStore } from "../../ports.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { newRow, openTestStores } from "../../testing/test-stores.ts";

const acceptance = { brokerMessageId: "b", historyId: 3, historyAvailable: true };

async function setUp() {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  return { clock, ...stores, stores };
}

/** Everything that can change a row's status, applied to one row that has one attempt behind it. */
const changes: Record<string, (outbox: OutboxStore, id: string, nowMs: number) => Promise<unknown>> = {
  claimDue: (outbox, _, nowMs) => outbox.claimDue({ nowMs, expiredAtOrBefore: 0, rows: 10, bytes: 1_000 }),
  "endTry done": (outbox, id, nowMs) => outbox.endTry(id, 1, { next: "done", acceptance }, nowMs),
  "endTry dead": (outbox, id, nowMs) => outbox.endTry(id, 1, { next: "dead", lastError: "x", fenced: false }, nowMs),
  "endTry pending": (outbox, id, nowMs) =>
    outbox.endTry(id, 1, { next: "pending", unanswered: 1, nextAttemptAt: nowMs, lastError: "x" }, nowMs),
  "endTry put back": (outbox, id, nowMs) => outbox.endTry(id, 1, { next: "put_back" }, nowMs),
  "endTry of another try": (outbox, id, nowMs) => outbox.endTry(id, 0, { next: "done", acceptance }, nowMs),
  commitLate: (outbox, id, nowMs) => outbox.commitLate(id, acceptance, nowMs),
  settleLateRefusal: (outbox, id) => outbox.settleLateRefusal(id),
  resumeInflight: (outbox, _, nowMs) => outbox.resumeInflight(nowMs),
  expireUnsentOrRefused: (outbox, id) => outbox.expireUnsentOrRefused([id], "expired: x"),
  expireUnknown: (outbox, id) => outbox.expireUnknown(id, 1, "expired: x"),
  buryFenced: (outbox, id) => outbox.buryFenced(id, 1, "fenced: x"),
};

describe("the outbox store", () => {
  it("performs the transitions of the contract and no others", async () => {
    const seen = new Set<string>();
    for (const [name, change] of Object.entries(changes)) {
      for (const from of outboxStatuses) {
        const { clock, stores, outbox, outboxDb } = await setUp();
        const row = newRow(stores, clock);
        await outbox.insert(row, "pending");
        outboxDb.sql("UPDATE outbox SET status = ?, attempts = 1 WHERE id = ?").run(from, row.id);
        const before = outbox.inspect(row.id)?.row;
        await change(outbox, row.id, clock.nowMs());
        const after = outbox.inspect(row.id)?.row;
        const to = after?.status ?? from;
        if (to !== from) {
          expect(canTransition(from, to), `${name}: ${from} → ${to}`).toBe(true);
          seen.add(`${from} → ${to}`);
        } else if (from === "done" || from === "aborted") {
          expect(after, `${name} on ${from}`).toEqual(before);
        }
        for (const frozen of ["request_fingerprint", "wire_fingerprint", "enqueued_at", "client_message_id"] as const) {
          expect(after?.[frozen]).toEqual(before?.[frozen]);
        }
      }
    }
    expect([...seen].sort()).toEqual([
      "dead → done",
      "inflight → dead",
      "inflight → done",
      "inflight → pending",
      "pending → dead",
      "pending → done",
      "pending → inflight",
    ]);
  });

  it("says whether a compare-and-set found what it expected", async () => {
    const { clock, stores, outbox } = await setUp();
    const row = newRow(stores, clock);
    await outbox.insert(row, "pending");
    const end = { next: "done", acceptance } as const;
    expect(await outbox.endTry(row.id, 0, end, clock.nowMs())).toBe(false);
    await outbox.claimDue({ nowMs: clock.nowMs(), expiredAtOrBefore: 0, rows: 1, bytes: 1 });
    // The end of another try than the one that is out.
    expect(await outbox.endTry(row.id, 1, end, clock.nowMs())).toBe(false);
    expect(await outbox.endTry(row.id, 0, end, clock.nowMs())).toBe(true);
    expect(await outbox.endTry(row.id, 0, end, clock.nowMs())).toBe(false);
    expect(await outbox.commitLate(row.id, acceptance, clock.nowMs())).toBe(false);
  });

  it("does not expire a row by way of certainty when its fate is unknown", async () => {
    const { clock, stores, outbox, outboxDb } = await setUp();
    const row = newRow(stores, clock);
    await outbox.insert(row, "pending");
    outboxDb.sql("UPDATE outbox SET attempts = 1, unanswered = 1").run();
    expect(await outbox.expireUnsentOrRefused([row.id], "expired: x")).toBe(0);
    outboxDb.sql("UPDATE outbox SET fenced = 1").run();
    expect(await outbox.expireUnsentOrRefused([row.id], "expired: x")).toBe(1);
  });

  it("claims what became due first, and says when more is left", async () => {
    const { clock, stores, outbox, outboxDb } = await setUp();
    const rows = [newRow(stores, clock), newRow(stores, clock), newRow(stores, clock)];
    for (const row of rows) await outbox.insert(row, "pending");
    const [first, second, third] = rows.map(({ id }) => id);
    outboxDb.sql("UPDATE outbox SET next_attempt_at = next_attempt_at - 5 WHERE id = ?").run(third ?? "");
    const query = { nowMs: clock.nowMs(), expiredAtOrBefore: 0, rows: 2, bytes: 1_000 };
    const claim = await outbox.claimDue(query);
    expect(claim.rows.map(({ id }) => id)).toEqual([third, first]);
    expect(claim.more).toBe(true);
    const rest = await outbox.claimDue(query);
    expect(rest.rows.map(({ id }) => id)).toEqual([second]);
    expect(rest.more).toBe(false);
  });

  it("claims the more urgent first, and among equals what became due first", async () => {
    const { clock, stores, outbox } = await setUp();
    const given = ["low", "next", "now", "next", "now", "low"] as const;
    for (const [at, priority] of given.entries()) {
      await outbox.insert(newRow(stores, clock, { clientMessageId: `${priority}-${at}`, priority }), "pending");
    }
    const query = { nowMs: clock.nowMs(), expiredAtOrBefore: 0, rows: 4, bytes: 10_000 };
    const claimed = async () => (await outbox.claimDue(query)).rows.map(({ clientMessageId }) => clientMessageId);
    expect(await claimed()).toEqual(["now-2", "now-4", "next-1", "next-3"]);
    expect(await claimed()).toEqual(["low-0", "low-5"]);
  });

  it("lets a new row wait behind due rows that are as urgent or more, and pass the others", async () => {
    const { clock, stores, outbox } = await setUp();
    await outbox.insert(newRow(stores, clock, { priority: "next" }), "pending");
    const become = async (priority: "now" | "next" | "low") =>
      (await outbox.insert(newRow(stores, clock, { priority }), "inflight")).type;
    expect(await Promise.all([become("low"), become("next"), become("now")])).toEqual([
      "pending",
      "pending",
      "inflight",
    ]);
  });

  it("lets each of the sends that share a transaction wait behind a row that was due before it, and behind no other", async () => {
    const { clock, stores, outbox, outboxDb } = await setUp();
    const sends = (prefix: string) =>
      [-1, 0, 1].map((later) => ({
        ...newRow(stores, clock, { clientMessageId: `${prefix} ${later}` }),
        enqueuedAt: clock.nowMs() + later,
      }));
    const store = async (row: NewOutboxRow) => (await outbox.insert(row, "inflight")).type;
    const transactions = outboxDb.transactionNumber;
    expect(await Promise.all(sends("free").map(store))).toEqual(["inflight", "inflight", "inflight"]);
    await outbox.insert(newRow(stores, clock, { clientMessageId: "due" }), "pending");
    expect(await Promise.all(sends("behind").map(store))).toEqual(["inflight", "pending", "pending"]);
    expect(outboxDb.transactionNumber - transactions).toBe(3);
  });

  it("lets a send wait behind one that was stored as pending in the same transaction", async () => {
    const { clock, stores, outbox } = await setUp();
    const as = ["inflight", "pending", "inflight"] as const;
    const stored = await Promise.all(as.map((each) => outbox.insert(newRow(stores, clock), each)));
    expect(stored.map(({ type }) => type)).toEqual(["inflight", "pending", "pending"]);
  });

  it("answers each of the sends that share a transaction from what its id stands for, a tombstone included", async () => {
    const { clock, stores, outbox } = await setUp();
    const send = (clientMessageId: string) => outbox.insert(newRow(stores, clock, { clientMessageId }), "inflight");
    const pruned = newRow(stores, clock, { clientMessageId: "pruned" });
    await outbox.insert(pruned, "inflight");
    await outbox.endTry(pruned.id, 0, { next: "done", acceptance }, clock.nowMs());
    expect(await outbox.prune(clock.nowMs() + 1, clock.nowMs(), 10)).toBe(1);
    const [first, second, third] = await Promise.all([send("a"), send("a"), send("pruned")]);
    expect(first).toEqual({ type: "inflight" });
    expect(second).toMatchObject({ type: "known", send: { outboxId: outbox.find("a")?.outboxId, status: "inflight" } });
    expect(third).toMatchObject({ type: "known", send: { outboxId: pruned.id, status: "done", brokerMessageId: "b" } });
    expect(outbox.list(undefined, { after: undefined, limit: 10 }).items).toHaveLength(1);
  });

  it("reads every hot path through an index", async () => {
    const { outboxDb } = await setUp();
    const plan = (text: string) =>
      outboxDb
        .sql<{ detail: string }>(`EXPLAIN QUERY PLAN ${text}`)
        .all()
        .map(({ detail }) => detail)
        .join("; ");
    expect(plan("SELECT id FROM outbox WHERE client_message_id = 'x'")).toMatch(/SEARCH outbox USING INDEX/);
    const due = plan(
      "SELECT id FROM outbox WHERE status = 'pending' AND priority = 'now' AND next_attempt_at <= 5 AND enqueued_at > 1 ORDER BY next_attempt_at, rowid LIMIT 5",
    );
    expect(due).toMatch(/SEARCH outbox USING INDEX outbox_pending/);
    expect(due).not.toMatch(/TEMP B-TREE/);
    for (const status of ["pending", "inflight", "dead", "aborted"]) {
      expect(plan(`SELECT count(*) FROM outbox WHERE status = '${status}'`)).toContain(`outbox_${status}`);
    }
    const dead = plan("SELECT id, attempts FROM outbox WHERE status = 'dead' AND id > 'x' ORDER BY id LIMIT 5");
    expect(dead).toContain("outbox_dead");
    expect(dead).not.toMatch(/TEMP B-TREE/);
  });

  it("keeps the client's id, which may be random, in one index only", async () => {
    const { outboxDb } = await setUp();
    const indexes = outboxDb.sql<{ name: string }>("PRAGMA index_list(outbox)").all();
    const holding = indexes.filter(({ name }) =>
      outboxDb
        .sql<{ name: string | null }>(`PRAGMA index_info("${name}")`)
        .all()
        .some((column) => column.name === "client_message_id"),
    );
    expect(holding).toHaveLength(1);
  });
});
