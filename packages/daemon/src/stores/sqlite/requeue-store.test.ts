import { outboxStatuses } from "@claudemesh/protocol/messages/outbox-row";
import { describe, expect, it } from "vitest";
import type { RequeueOrder } from "../../core/requeue.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { failpointsOf, newRow, openTestStores } from "../../testing/test-stores.ts";

const proof = { provenUncommitted: false, despiteUnknownFate: false, acceptDuplicate: false, patched: undefined };

async function setUp(failpoints = "") {
  const clock = new ManualClock();
  const stores = await openTestStores(clock, failpointsOf(failpoints));
  const insert = async (columns: Readonly<Record<string, string | number>> = {}) => {
    const row = newRow(stores, clock);
    await stores.outbox.insert(row, "pending");
    for (const [column, value] of Object.entries(columns)) {
      stores.outboxDb.sql(`UPDATE outbox SET ${column} = ? WHERE id = ?`).run(value, row.id);
    }
    return row;
  };
  const orderFor = (oldId: string, given: Partial<RequeueOrder> = {}): RequeueOrder => {
    const newId = stores.nextOutboxId();
    return { ...proof, oldId, newId, newClientMessageId: `new-${newId}`, nowMs: clock.nowMs(), ...given };
  };
  const table = () => stores.outboxDb.sql("SELECT * FROM outbox ORDER BY id").all();
  return { ...stores, stores, clock, insert, orderFor, table };
}

describe("a requeue on SQLite", () => {
  it("moves a row to aborted from pending and dead, and changes nothing about any other", async () => {
    const certain = { provenUncommitted: true, despiteUnknownFate: true };
    for (const status of outboxStatuses) {
      const { requeues, outbox, insert, orderFor, table } = await setUp();
      const row = await insert({ status, attempts: 1 });
      const before = table();
      const outcome = await requeues.requeue(orderFor(row.id, certain));
      if (status === "pending" || status === "dead") {
        expect([outcome?.type, outbox.inspect(row.id)?.row.status]).toEqual(["requeued", "aborted"]);
      } else {
        expect(outcome).toMatchObject({ type: "not_requeueable", row: { id: row.id, status } });
        expect(table()).toEqual(before);
      }
    }
  });

  it("decides on the row as it is in the transaction, whatever the caller saw", async () => {
    const { requeues, outbox, insert, orderFor, table, clock } = await setUp();
    const row = await insert();
    const query = { nowMs: clock.nowMs(), expiredAtOrBefore: 0, rows: 10, bytes: 1_000 };
    const [claim, outcome] = await Promise.all([outbox.claimDue(query), requeues.requeue(orderFor(row.id))]);
    expect(claim.rows.map(({ id }) => id)).toEqual([row.id]);
    expect(outcome).toMatchObject({ type: "not_requeueable", row: { status: "inflight" } });
    expect(table()).toHaveLength(1);
  });

  it("refuses what has no proof, and a taken id before it asks for one", async () => {
    const { requeues, insert, orderFor, table } = await setUp();
    const row = await insert({ attempts: 1, unanswered: 1 });
    const before = table();
    expect(await requeues.requeue(orderFor(row.id))).toEqual({ type: "fate_unknown" });
    const taken = orderFor(row.id, { newClientMessageId: row.clientMessageId });
    expect(await requeues.requeue(taken)).toEqual({ type: "client_id_consumed" });
    expect(await requeues.requeue(orderFor("missing"))).toEqual({ type: "not_found" });
    expect(table()).toEqual(before);
  });

  it("that the disk refuses leaves both rows out", async () => {
    const { requeues, insert, orderFor, table } = await setUp("outbox.before_commit@2=error");
    const row = await insert({ status: "dead" });
    const before = table();
    await expect(requeues.requeue(orderFor(row.id))).rejects.toMatchObject({ kind: "io" });
    expect(table()).toEqual(before);
    expect(await requeues.requeue(orderFor(row.id))).toEqual({ type: "requeued" });
  });

  it("gives a client id that looks like another row's outbox id no precedence over it", async () => {
    const { requeues, outbox, insert, clock, stores } = await setUp();
    const row = await insert();
    const twin = newRow(stores, clock, { clientMessageId: row.id });
    await outbox.insert(twin, "pending");
    expect(requeues.find(row.id)?.id).toBe(row.id);
    expect(requeues.find(twin.id)?.clientMessageId).toBe(row.id);
  });
});

describe("holding a row back", () => {
  it("moves its due time out and returns the old one; bringing it forward never delays it", async () => {
    const { requeues, outbox, insert, clock } = await setUp();
    const { id } = await insert();
    const dueAt = clock.nowMs();
    expect(await requeues.holdBack(id, dueAt + 500)).toEqual({ type: "held_back", wasDueAt: dueAt });
    expect(outbox.inspect(id)?.row.next_attempt_at).toBe(dueAt + 500);
    expect(await requeues.holdBack(id, dueAt + 400)).toEqual({ type: "unchanged" });
    await requeues.bringForward(id, dueAt + 900);
    expect(outbox.inspect(id)?.row.next_attempt_at).toBe(dueAt + 500);
    await requeues.bringForward(id, dueAt);
    expect(outbox.inspect(id)?.row.next_attempt_at).toBe(dueAt);
  });

  it.each(outboxStatuses.filter((status) => status !== "pending"))(
    "does not touch a row that is %s",
    async (status) => {
      const { requeues, insert, clock, table } = await setUp();
      const { id } = await insert({ status });
      const before = table();
      expect(await requeues.holdBack(id, clock.nowMs() + 500)).toEqual({ type: "unchanged" });
      await requeues.bringForward(id, 0);
      expect(table()).toEqual(before);
    },
  );
});
