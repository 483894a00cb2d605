import { describe, expect, it } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { newRow, openTestStores, recordingLog } from "../testing/test-stores.ts";
import { pruneOutbox } from "./retention.ts";

const dayMs = 86_400_000;
const acceptance = { brokerMessageId: "b", historyId: 3, historyAvailable: true };

async function setUp() {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const log = recordingLog();
  const insertDone = async (clientMessageId: string) => {
    const row = newRow(stores, clock, { clientMessageId });
    await stores.outbox.insert(row, "pending");
    await stores.outbox.commitLate(row.id, acceptance, clock.nowMs());
  };
  return { clock, ...stores, stores, log, insertDone };
}

describe("pruning as asked", () => {
  it("makes tombstones of the done rows that are older, and of no others", async () => {
    const { clock, outbox, stores, log, insertDone } = await setUp();
    const dead = newRow(stores, clock, { clientMessageId: "dead" });
    await outbox.insert(dead, "pending");
    await outbox.expireUnsentOrRefused([dead.id], "expired: x");
    await insertDone("old");
    clock.advance(2 * dayMs);
    await insertDone("young");
    clock.advance(dayMs);
    expect(await pruneOutbox({ outbox, clock, log }, 3)).toEqual({ tombstones_made: 0, more: false });
    expect(await pruneOutbox({ outbox, clock, log }, 2)).toEqual({ tombstones_made: 1, more: false });
    const left = outbox.list(undefined, { after: undefined, limit: 10 }).items;
    expect(left.map((row) => row.client_message_id)).toEqual(["dead", "young"]);
    expect(log.lines).toEqual([expect.objectContaining({ event: "outbox_pruned", rows: 1 })]);
  });

  it("leaves tombstones that answer like the rows did; asking again does nothing more", async () => {
    const { clock, outbox, log, insertDone } = await setUp();
    await insertDone("old");
    const before = [outbox.find("old"), outbox.inspect("old")?.row.status];
    clock.advance(1);
    expect(await pruneOutbox({ outbox, clock, log }, 0)).toEqual({ tombstones_made: 1, more: false });
    expect([outbox.find("old"), outbox.inspect("old")?.row.status]).toEqual(before);
    expect(await pruneOutbox({ outbox, clock, log }, 0)).toEqual({ tombstones_made: 0, more: false });
  });

  it("goes on in small steps to the end, and says so when there was no time for all of it", async () => {
    const { clock, log } = await setUp();
    const limits: number[] = [];
    let rows = 600;
    const slow = {
      prune: async (_before: number, _now: number, limit: number) => {
        limits.push(limit);
        clock.advance(4_000);
        const taken = Math.min(rows, limit);
        rows -= taken;
        return taken;
      },
    };
    expect(await pruneOutbox({ outbox: slow, clock, log }, 1)).toEqual({ tombstones_made: 600, more: false });
    rows = 2_000;
    const { tombstones_made, more } = await pruneOutbox({ outbox: slow, clock, log }, 1);
    expect([tombstones_made, more]).toEqual([3 * (limits[0] ?? 0), true]);
  });
});
