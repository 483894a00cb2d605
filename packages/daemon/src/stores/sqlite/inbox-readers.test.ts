// A reader of the inbox is given every unread message: what it has not acknowledged comes again, and what has just arrived
// is never hidden behind what is old.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ManualClock } from "../../testing/manual-clock.ts";
import { arrivalOf, openTestStores } from "../../testing/test-stores.ts";

async function setUp() {
  const clock = new ManualClock();
  const { inbox, entries, readers, inboxDb } = await openTestStores(clock);
  let arrived = 0;
  const arrive = async (count: number) => {
    for (let n = 0; n < count; n++) await inbox.insert(arrivalOf(++arrived, `m${arrived}`), clock.nowMs());
  };
  const next = async (reader: string, acknowledge?: string, limit = 3) => {
    const page = await readers.next({ reader, acknowledge, limit }, clock.nowMs());
    const again = page.items.filter(({ id }) => id <= page.offeredBefore).map(({ history_id }) => history_id);
    const numbers = page.items.map(({ history_id }) => history_id);
    return { ...page, numbers, again, last: page.items.at(-1)?.id };
  };
  return { clock, inbox, entries, inboxDb, arrive, next };
}

describe("a reader of the inbox", () => {
  it("begins with the newest page, and learns how many are older", async () => {
    const { arrive, next, inbox } = await setUp();
    await arrive(10);
    const first = await next("web-1");
    expect(first).toMatchObject({ numbers: [8, 9, 10], again: [], waiting: 0, older: 7 });
    const older = inbox.listBefore(
      { since: undefined, topic: undefined, senders: "any", unread: true },
      { before: first.startsAt, limit: 100 },
    );
    expect(older.items.map(({ history_id }) => history_id)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  });

  it("gets the same again, marked, until it acknowledges it, however much has arrived since", async () => {
    const { arrive, next } = await setUp();
    await arrive(10);
    await next("web-1");
    await arrive(5);
    const again = await next("web-1");
    expect(again).toMatchObject({ numbers: [8, 9, 10], again: [8, 9, 10], waiting: 5 });
    const third = await next("web-1", again.last);
    expect(third).toMatchObject({ numbers: [11, 12, 13], again: [], waiting: 2 });
    const fourth = await next("web-1", third.last);
    expect(fourth).toMatchObject({ numbers: [14, 15], waiting: 0 });
    expect(await next("web-1", fourth.last)).toMatchObject({ numbers: [], waiting: 0, position: fourth.last });
  });

  it("begins where nothing has arrived yet, and misses nothing that comes", async () => {
    const { arrive, next } = await setUp();
    expect(await next("web-1")).toMatchObject({ numbers: [], older: 0, position: "0".repeat(26) });
    await arrive(5);
    expect(await next("web-1")).toMatchObject({ numbers: [1, 2, 3], again: [], waiting: 2 });
  });

  it("has a position of its own beside other readers", async () => {
    const { arrive, next } = await setUp();
    await arrive(3);
    const one = await next("web-1");
    await next("web-1", one.last);
    expect(await next("web-2")).toMatchObject({ numbers: [1, 2, 3], again: [] });
  });

  it("is not given what is marked as read", async () => {
    const { arrive, next, entries } = await setUp();
    await arrive(3);
    await next("web-1");
    await entries.markRead("c-2", 1);
    expect(await next("web-1")).toMatchObject({ numbers: [1, 3], again: [1, 3] });
  });

  it("acknowledges nothing that it was not offered, and never goes back", async () => {
    const { arrive, next } = await setUp();
    await arrive(5);
    const first = await next("web-1", undefined, 2);
    await arrive(4);
    const far = await next("web-1", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", 2);
    expect(far).toMatchObject({ numbers: [6, 7], position: first.last });
    const back = await next("web-1", "0".repeat(26), 2);
    expect(back).toMatchObject({ numbers: [6, 7], position: first.last });
  });

  it("is forgotten only when a thousand others were used after it", async () => {
    const { clock, arrive, next, inboxDb } = await setUp();
    await arrive(1);
    const first = await next("web-1");
    await next("web-1", first.last);
    for (let n = 0; n < 1_023; n++) {
      clock.advance(1);
      await next(`other-${n}`);
    }
    expect((await next("web-1")).numbers).toEqual([]);
    clock.advance(1);
    await next("one-more");
    expect(inboxDb.sql<{ rows: number }>("SELECT count(*) AS rows FROM inbox_reader").get()?.rows).toBe(1_024);
    expect((await next("web-1")).numbers).toEqual([1]);
  });

  it("gets every message that arrives after it began, whatever answers are lost", async () => {
    const step = fc.oneof(
      fc.record({ arrive: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ limit: fc.integer({ min: 1, max: 4 }), lost: fc.boolean() }),
    );
    const run = async (steps: readonly ({ arrive: number } | { limit: number; lost: boolean })[]) => {
      const { arrive, next } = await setUp();
      await next("web-1");
      const got: number[] = [];
      let total = 0;
      let received: string | undefined;
      for (const given of [...steps, ...Array.from({ length: 60 }, () => ({ limit: 4, lost: false }))]) {
        if ("arrive" in given) {
          await arrive(given.arrive);
          total += given.arrive;
          continue;
        }
        const page = await next("web-1", received, given.limit);
        if (given.lost) continue;
        got.push(...page.numbers);
        received = page.last ?? received;
      }
      expect(got).toEqual(Array.from({ length: total }, (_, n) => n + 1));
    };
    await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 25 }), run), { numRuns: 40 });
  });
});
