// Lists in pages: all of their items, in their order.
import { expectAnswer, expectThat, itemsOf } from "../frame/expect.ts";
import type { HttpAnswer } from "../transport/http.ts";
import type { Caller } from "./broker/world.ts";

type Item = Readonly<Record<string, unknown>>;

/** Follows each page's cursor until there is none. A cursor that comes twice would never end, so it is a miss. */
export async function readPages(
  caller: Caller,
  path: string,
  limit: number,
  look: (page: HttpAnswer) => void = () => undefined,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  const cursors = new Set<string>();
  let after = "";
  for (;;) {
    const page = expectAnswer(await caller.call("GET", `${path}?limit=${limit}${after}`), 200);
    look(page);
    items.push(...itemsOf(page));
    const cursor = page.body.next_cursor ?? page.body.nextCursor ?? null;
    if (cursor === null) return items;
    expectThat(!cursors.has(String(cursor)), "another cursor on each page", cursor, page.request);
    cursors.add(String(cursor));
    after = `&after=${encodeURIComponent(String(cursor))}`;
  }
}
