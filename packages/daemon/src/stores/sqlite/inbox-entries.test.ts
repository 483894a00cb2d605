import { describe, expect, it } from "vitest";
import type { InboxArrival } from "../../ports.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { openTestStores } from "../../testing/test-stores.ts";

const arrival: InboxArrival = {
  clientMessageId: "c-1",
  brokerMessageId: "b-1",
  historyId: 7,
  topic: undefined,
  senderPubkey: "ab".repeat(32),
  senderName: undefined,
  priority: "next",
  meta: "",
  replyToId: undefined,
  acceptedAt: 40,
  sealed: false,
  fromAgent: undefined,
  toAgent: undefined,
  unreadable: undefined,
  restored: false,
  body: Uint8Array.of(1),
};

async function setUp() {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  await stores.inbox.insert(arrival, 60);
  await stores.inbox.insert({ ...arrival, clientMessageId: "c-2", brokerMessageId: "b-2", historyId: 8 }, 61);
  return { ...stores, remove: () => stores.inbox.removeReceivedBefore(clock.nowMs() + 1, clock.nowMs(), 10) };
}

describe("a read mark", () => {
  it("is set once; a later request answers when that was", async () => {
    const { entries } = await setUp();
    const marks = await Promise.all([entries.markRead("c-1", 70), entries.markRead("c-1", 71)]);
    expect(marks.map((entry) => entry?.readAt)).toEqual([70, 70]);
    expect((await entries.markRead(entries.find("c-1")?.id ?? "", 72))?.readAt).toBe(70);
    expect(entries.find("c-2")?.readAt).toBeUndefined();
  });

  it("survives the message's removal, and can still be set then", async () => {
    const { entries, remove } = await setUp();
    await entries.markRead("c-1", 70);
    expect(await remove()).toBe(2);
    expect(entries.find("c-1")).toMatchObject({ readAt: 70, receivedAt: 60, envelope: undefined });
    expect((await entries.markRead("c-2", 80))?.readAt).toBe(80);
    expect((await entries.markRead("c-2", 90))?.readAt).toBe(80);
  });

  it("is for messages that there are", async () => {
    const { entries } = await setUp();
    expect(await entries.markRead("missing", 70)).toBeUndefined();
    expect(entries.find("b-1")).toBeUndefined();
  });
});
