// A client id that the broker has forgotten may come again with another message. The inbox holds a client id once, and
// loses neither message.
import { describe, expect, it } from "vitest";
import type { InboxArrival } from "../../ports.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { openTestStores } from "../../testing/test-stores.ts";
import { createSqliteAuditReading } from "./audit-reading.ts";

const everything = { since: undefined, topic: undefined, senders: "any" } as const;
const firstPage = { after: undefined, limit: 100 };

/** The message with that history id; all have the same client id unless another one is given. */
function arrival(historyId: number, given: Partial<InboxArrival> = {}): InboxArrival {
  return {
    clientMessageId: "daily-report",
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
    body: new TextEncoder().encode(`report of day ${historyId}`),
    ...given,
  };
}

async function setUp() {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const { inbox, outboxDb, inboxDb } = stores;
  const arrive = (historyId: number, given: Partial<InboxArrival> = {}) =>
    inbox.insert(arrival(historyId, given), clock.nowMs());
  const historyIds = (items: readonly { history_id: number }[]) => items.map(({ history_id }) => history_id);
  const listed = () => historyIds(inbox.list(everything, firstPage).items);
  const found = (text: string) => historyIds(inbox.search(text, firstPage).items);
  const heldBy = () => inboxDb.sql("SELECT client_message_id, history_id FROM inbox").all();
  const removeAll = (limit = 100) => {
    clock.advance(1_000);
    return inbox.removeReceivedBefore(clock.nowMs(), clock.nowMs(), limit);
  };
  const auditing = createSqliteAuditReading(outboxDb, inboxDb);
  const isReceived = (historyId: number) =>
    auditing.findReceived({ client_message_id: "daily-report", broker_message_id: `b-${historyId}` });
  return { ...stores, clock, arrive, listed, found, heldBy, removeAll, auditing, isReceived };
}

describe("another message under a known client id", () => {
  it("is stored, has the id, and leaves the earlier one where it was", async () => {
    const { inbox, entries, arrive, listed, found, heldBy, isReceived } = await setUp();
    expect(await arrive(1)).toBe("new");
    expect(await arrive(2, { clientMessageId: "other" })).toBe("new");
    const before = inbox.list(everything, firstPage).items;
    expect(await arrive(9)).toBe("reused");
    expect(listed()).toEqual([1, 2, 9]);
    expect(inbox.list(everything, firstPage).items.slice(0, 2)).toEqual(before);
    expect(heldBy()).toEqual([
      { client_message_id: "other", history_id: 2 },
      { client_message_id: "daily-report", history_id: 9 },
    ]);
    expect(entries.find("daily-report")?.historyId).toBe(9);
    expect([found("report"), found("1"), found("9")]).toEqual([[1, 2, 9], [1], [9]]);
    expect([isReceived(1), isReceived(9), isReceived(5)]).toEqual([true, true, false]);
  });

  it("comes again, and so does the earlier one, without a second row", async () => {
    const { arrive, listed } = await setUp();
    for (const historyId of [1, 5, 9]) await arrive(historyId);
    for (const historyId of [1, 5, 9]) {
      expect(await arrive(historyId)).toBe("known");
      expect(await arrive(historyId, { restored: true })).toBe("known");
    }
    expect(listed()).toEqual([1, 5, 9]);
  });

  it("is news, and so is the earlier one to a reader who has not seen it", async () => {
    const { inbox, arrive } = await setUp();
    await arrive(1);
    await arrive(9);
    expect(inbox.news("").items.map(({ history_id }) => history_id)).toEqual([1, 9]);
    const [first] = inbox.news("").items;
    expect(inbox.news(first?.id ?? "").items.map(({ history_id }) => history_id)).toEqual([9]);
  });

  it("that came before what is here is kept too, and does not get the id", async () => {
    const { inbox, entries, arrive, listed, found } = await setUp();
    await arrive(9);
    expect(await arrive(1, { restored: true })).toBe("reused");
    expect(await arrive(1)).toBe("new");
    expect(await arrive(1)).toBe("known");
    expect(listed()).toEqual([9, 1]);
    expect(found("report")).toEqual([9, 1]);
    expect(entries.find("daily-report")?.historyId).toBe(9);
    expect(inbox.lastId()).toBe(inbox.list(everything, firstPage).items[1]?.id);
  });

  it("is stored where retention has removed the earlier one, which stays known", async () => {
    const { arrive, listed, removeAll, isReceived } = await setUp();
    await arrive(1);
    await removeAll();
    expect(await arrive(9)).toBe("reused");
    expect(await arrive(1)).toBe("known");
    expect(listed()).toEqual([9]);
    expect([isReceived(1), isReceived(9)]).toEqual([true, true]);
  });

  it("goes with the earlier one by retention, oldest first, and both stay known", async () => {
    const { entries, auditing, arrive, listed, found, removeAll, isReceived } = await setUp();
    await arrive(1);
    await arrive(9);
    expect(await removeAll(1)).toBe(1);
    expect(listed()).toEqual([9]);
    expect(await removeAll()).toBe(1);
    expect([listed(), found("report"), auditing.inboxTombstones()]).toEqual([[], [], 2]);
    expect([await arrive(1), await arrive(9)]).toEqual(["known", "known"]);
    expect([isReceived(1), isReceived(9)]).toEqual([true, true]);
    expect(entries.find("daily-report")?.historyId).toBe(9);
    await arrive(10, { clientMessageId: "next" });
    expect(found("report")).toEqual([10]);
  });

  it("has a read mark of its own", async () => {
    const { inbox, entries, arrive } = await setUp();
    await arrive(1);
    await arrive(9);
    const [first] = inbox.list(everything, firstPage).items;
    await entries.markRead("daily-report", 70);
    expect(inbox.list(everything, firstPage).items.map(({ read_at }) => read_at)).toEqual([null, 70]);
    expect(await entries.markRead(first?.id ?? "", 80)).toMatchObject({ historyId: 1, readAt: 80 });
    expect(inbox.list(everything, firstPage).items.map(({ read_at }) => read_at)).toEqual([80, 70]);
  });

  it("is found by the broker's id, as is the earlier one", async () => {
    const { entries, search, arrive } = await setUp();
    await arrive(1);
    await arrive(9);
    for (const historyId of [1, 9]) {
      const { found } = search.inbox(`b-${historyId}`, undefined);
      expect(entries.find(found ?? "")?.historyId).toBe(historyId);
    }
  });

  it("that could not be opened is counted with the earlier one", async () => {
    const { inbox, arrive } = await setUp();
    await arrive(1, { unreadable: "not_opened" });
    await arrive(9, { unreadable: "relabelled" });
    expect(inbox.unreadable()).toBe(2);
  });
});
