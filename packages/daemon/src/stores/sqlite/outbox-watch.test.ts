import { describe, expect, it } from "vitest";
import type { OutboxChange } from "../../ports.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { settle } from "../../testing/scripted-link.ts";
import { newRow, openTestStores } from "../../testing/test-stores.ts";
import { createOutboxWatch } from "./outbox-watch.ts";

async function setUp() {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const watch = createOutboxWatch(stores.outboxDb);
  const changes: string[] = [];
  const note = ({ client_message_id, status }: OutboxChange) => changes.push(`${client_message_id} ${status}`);
  const accept = (clientMessageId: string) =>
    stores.outbox.insert(newRow(stores, clock, { clientMessageId }), "pending");
  const triggers = () => stores.outboxDb.sql("SELECT name FROM temp.sqlite_schema WHERE type = 'trigger'").all();
  return { ...stores, clock, watch, changes, note, accept, triggers };
}

describe("a watched outbox", () => {
  it("tells of every change of status, in its order, and of nothing else that changes", async () => {
    const { watch, changes, note, accept, outbox, clock } = await setUp();
    watch(note);
    await accept("a");
    await accept("a");
    const query = { nowMs: clock.nowMs(), expiredAtOrBefore: 0, rows: 10, bytes: 1_000 };
    const [row] = (await outbox.claimDue(query)).rows;
    if (row === undefined) throw new Error("nothing was due");
    await outbox.endTry(row.id, 0, { next: "put_back" }, clock.nowMs());
    await outbox.boundDueTimes(0);
    await outbox.expireUnknown(row.id, 0, "old");
    await settle();
    expect(changes).toEqual(["a pending", "a inflight", "a pending", "a dead"]);
  });

  it("tells of a row that is claimed as it is stored as of any other", async () => {
    const { watch, changes, note, outbox, clock, ...stores } = await setUp();
    watch(note);
    const row = newRow({ ...stores, outbox }, clock, { clientMessageId: "a" });
    expect(await outbox.insert(row, "inflight")).toEqual({ type: "inflight" });
    await settle();
    expect(changes).toEqual(["a pending", "a inflight"]);
  });

  it("tells nothing that was rolled back, and tells what succeeds after all once", async () => {
    const { watch, changes, note, outboxDb, accept } = await setUp();
    watch(note);
    await accept("a");
    await settle();
    const move = (status: string) => outboxDb.sql("UPDATE outbox SET status = ?").run(status);
    expect(() =>
      outboxDb.transaction(() => {
        move("inflight");
        throw new Error("a neighbour failed");
      }),
    ).toThrow("a neighbour failed");
    await settle();
    expect(changes).toEqual(["a pending"]);
    expect(() =>
      outboxDb.transaction(() => {
        move("inflight");
        throw new Error("a neighbour failed");
      }),
    ).toThrow("a neighbour failed");
    outboxDb.transaction(() => move("inflight"));
    await settle();
    expect(changes).toEqual(["a pending", "a inflight"]);
  });

  it("costs a send nothing when there is no watcher any more", async () => {
    const { watch, changes, note, accept, triggers } = await setUp();
    expect(triggers()).toEqual([]);
    const [first, second] = [watch(note), watch(() => undefined)];
    expect(triggers()).toHaveLength(2);
    first();
    expect(triggers()).toHaveLength(2);
    second();
    second();
    expect(triggers()).toEqual([]);
    await accept("a");
    await settle();
    expect(changes).toEqual([]);
  });
});
