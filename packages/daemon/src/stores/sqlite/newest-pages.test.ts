// Lists from their end: inbox and outbox page backwards without a gap or a repeat, and say what is older.
import { describe, expect, it } from "vitest";
import type { InboxFilter } from "../../ports.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { arrivalOf, newRow, openTestStores } from "../../testing/test-stores.ts";

const everything: InboxFilter = { since: undefined, topic: undefined, senders: "any" };
const end = { before: undefined };

async function setUp() {
  const clock = new ManualClock();
  const stores = await openTestStores(clock);
  const arrive = async (...numbers: readonly number[]) => {
    for (const n of numbers) {
      await stores.inbox.insert(arrivalOf(n, `m${n}`, { topic: n % 2 === 0 ? "even" : "odd" }), clock.nowMs());
      clock.advance(10);
    }
  };
  const newest = (filter: InboxFilter, limit: number, before?: string) => {
    const page = stores.inbox.listBefore(filter, { before, limit });
    return { ...page, numbers: page.items.map(({ history_id }) => history_id) };
  };
  return { ...stores, clock, arrive, newest };
}

describe("the newest page of an inbox", () => {
  it("is the end of the list in the order of arrival, with how many are older", async () => {
    const { arrive, newest } = await setUp();
    expect(newest(everything, 3)).toMatchObject({ items: [], nextCursor: undefined, prevCursor: undefined, older: 0 });
    await arrive(1, 2, 3, 4, 5, 6, 7);
    const page = newest(everything, 3);
    expect(page).toMatchObject({ numbers: [5, 6, 7], nextCursor: undefined, prevCursor: page.items[0]?.id, older: 4 });
    expect(newest(everything, 7)).toMatchObject({ prevCursor: undefined, older: 0 });
  });

  it("leads page by page to the oldest without a gap or a repeat, also by topic, sender and time", async () => {
    const { arrive, newest, clock } = await setUp();
    await arrive(1, 2, 3);
    const since = clock.nowMs();
    await arrive(4, 5, 6, 7, 8, 9);
    const walk = (filter: InboxFilter) => {
      const pages: number[][] = [];
      let before: string | undefined;
      do {
        const page = newest(filter, 2, before);
        expect(page.nextCursor).toBe(before === undefined ? undefined : page.items.at(-1)?.id);
        pages.unshift(page.numbers);
        before = page.prevCursor;
      } while (before !== undefined);
      return pages.flat();
    };
    expect(walk(everything)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(walk({ ...everything, topic: "even" })).toEqual([2, 4, 6, 8]);
    expect(walk({ ...everything, since })).toEqual([4, 5, 6, 7, 8, 9]);
    expect(walk({ ...everything, senders: ["ab".repeat(32), "cd".repeat(32)] })).toHaveLength(9);
    expect(walk({ ...everything, senders: [] })).toEqual([]);
  });

  it("shows only what is not marked as read, where that is asked for", async () => {
    const { arrive, newest, entries, inbox } = await setUp();
    await arrive(1, 2, 3, 4);
    for (const id of ["c-2", "c-4"]) await entries.markRead(id, 1);
    const unread = { ...everything, unread: true };
    expect(newest(unread, 1)).toMatchObject({ numbers: [3], older: 1 });
    expect(inbox.list(unread, { after: undefined, limit: 9 }).items.map(({ history_id }) => history_id)).toEqual([
      1, 3,
    ]);
  });

  it("holds no more bytes than a reader can be expected to hold, and the newest message whatever its size", async () => {
    const { inbox, newest } = await setUp();
    const large = "x".repeat(3 * 1_048_576);
    for (const n of [1, 2]) await inbox.insert(arrivalOf(n, large), 1);
    expect(newest(everything, 10)).toMatchObject({ numbers: [2], older: 1 });
  });

  it("counts what is older up to a limit and no further", async () => {
    const { arrive, newest } = await setUp();
    await arrive(...Array.from({ length: 1_010 }, (_, n) => n + 1));
    expect(newest(everything, 2).older).toBe(1_000);
    expect(newest(everything, 20).older).toBe(990);
  });
});

describe("the newest page of an outbox", () => {
  it("is the end of the list, oldest first, and leads to the oldest", async () => {
    const { outbox, clock, ...stores } = await setUp();
    const all = { outbox, clock, ...stores };
    for (let n = 1; n <= 5; n++) await outbox.insert(newRow(all, clock, { clientMessageId: `order-${n}` }), "pending");
    const idsOf = (items: readonly { readonly client_message_id: string }[]) =>
      items.map(({ client_message_id }) => client_message_id);
    for (const status of [undefined, "pending"] as const) {
      const last = outbox.listBefore(status, { ...end, limit: 2 });
      expect([idsOf(last.items), last.older, last.nextCursor]).toEqual([["order-4", "order-5"], 3, undefined]);
      const middle = outbox.listBefore(status, { before: last.prevCursor, limit: 2 });
      expect([idsOf(middle.items), middle.older, middle.nextCursor]).toEqual([
        ["order-2", "order-3"],
        1,
        middle.items.at(-1)?.id,
      ]);
      const first = outbox.listBefore(status, { before: middle.prevCursor, limit: 2 });
      expect([idsOf(first.items), first.older, first.prevCursor]).toEqual([["order-1"], 0, undefined]);
    }
    expect(outbox.listBefore("dead", { ...end, limit: 2 })).toMatchObject({ items: [], older: 0 });
  });
});
