// What a reader who pages through search and mentions learns of messages that it must not see: nothing, and it loses
// nothing behind them. A history that holds a hidden hit is read like one that holds none.
import { expect, test } from "vitest";
import type { FoundPage } from "../../ports/reading.ts";
import { dm, send, type World } from "./world.ts";

type Read = (reader: string, after?: number, limit?: number) => Promise<FoundPage>;

const word = "zebra";

async function indexAll(world: World): Promise<void> {
  while (await world.store.search.indexNext(world.nowMs));
}

/** Every message here is a hit of both. */
function waysOf(world: World, of: string): Record<"search" | "mentions", Read> {
  const { meshId } = world;
  return {
    search: (reader, after = 0, limit = 100) =>
      world.store.search.find({ meshId, reader, terms: [word], after, limit }),
    mentions: (reader, after = 0, limit = 100) => world.store.mentions.read({ meshId, reader, of, after, limit }),
  };
}

/** From what is given to null, each page with where it ends. */
async function readAll(read: Read, reader: string, limit: number): Promise<[string[], number | undefined][]> {
  const pages: [string[], number | undefined][] = [];
  let after: number | undefined = 0;
  while (after !== undefined) {
    const page: FoundPage = await read(reader, after, limit);
    pages.push([page.items.map((item) => item.client_message_id), page.nextAfter]);
    if (pages.length > 10) throw new Error("nextAfter leads in a circle");
    after = page.nextAfter;
  }
  return pages;
}

/** As if so many messages without a hit had been accepted and indexed. */
async function skipTo(world: World, historyId: number): Promise<void> {
  await indexAll(world);
  await world.query(`UPDATE ${world.table("mesh_history_counter")} SET last_history_id = ${historyId}`);
  await world.query(`UPDATE ${world.table("message_search_cursor")} SET indexed_up_to = ${historyId}`);
}

export function describeHiddenHits(world: () => World): void {
  const start = async () => {
    const [alice, bob, carol] = await world().threeMembers();
    const hit = (id: string, to: string) =>
      world().accept(alice, { ...send(id, dm(to), word), meta: { mentions: [bob] } });
    return { bob, carol, hit, ways: waysOf(world(), bob) };
  };

  test.each(["search", "mentions"] as const)("between visible ones show nowhere in the pages of %s", async (way) => {
    const { bob, carol, hit, ways } = await start();
    for (const [id, to] of [
      ["before", bob],
      ["v1", carol],
      ["h1", bob],
      ["h2", bob],
      ["v2", carol],
      ["h3", bob],
      ["v3", carol],
    ] as const) {
      await hit(id, to);
    }
    await indexAll(world());
    expect(await readAll(ways[way], carol, 1)).toEqual([
      [["v1"], 2],
      [["v2"], 5],
      [["v3"], undefined],
    ]);
    expect(await readAll(ways[way], carol, 2)).toEqual([
      [["v1", "v2"], 5],
      [["v3"], undefined],
    ]);
  });

  test.each(["search", "mentions"] as const)("behind the last visible one leave %s at its end", async (way) => {
    const { bob, carol, hit, ways } = await start();
    await hit("v1", carol);
    await hit("h1", bob);
    await hit("h2", bob);
    await indexAll(world());
    expect(await readAll(ways[way], carol, 1)).toEqual([[["v1"], undefined]]);
    expect(await ways[way](carol, 1)).toEqual({ items: [], nextAfter: undefined });
    expect(await ways[way](carol, 2)).toEqual({ items: [], nextAfter: undefined });
  });

  test.each(["search", "mentions"] as const)("in a long run end no page of %s", async (way) => {
    const { bob, carol, hit, ways } = await start();
    await hit("first", carol);
    for (let batch = 0; batch < 21; batch++) {
      const ids = Array.from({ length: 100 }, (_, index) => `${batch}-${index}`);
      await Promise.all(ids.map((id) => hit(id, bob)));
    }
    await hit("last", carol);
    await indexAll(world());
    expect(await readAll(ways[way], carol, 100)).toEqual([[["first", "last"], undefined]]);
    expect(await readAll(ways[way], carol, 1)).toEqual([
      [["first"], 1],
      [["last"], undefined],
    ]);
  });

  test.each(["search", "mentions"] as const)(
    "or none of them, a call of %s ends at the same history id",
    async (way) => {
      const { bob, carol, hit, ways } = await start();
      await hit("first", carol);
      await skipTo(world(), 99_998);
      await hit("h1", bob);
      await hit("h2", bob);
      await hit("h3", bob);
      await skipTo(world(), 250_000);
      await hit("last", carol);
      await indexAll(world());
      const read = ways[way];
      expect(await readAll(read, carol, 100)).toEqual([
        [["first"], 100_000],
        [[], 200_000],
        [["last"], undefined],
      ]);
      expect((await read(carol, 50)).nextAfter).toBe(100_050);
      expect((await read(carol, Number.MAX_SAFE_INTEGER)).nextAfter).toBeUndefined();
    },
  );
}
