// How much fits one answer: an answer must fit a frame, and large bodies must not fill the memory.

/** JSON of the items of one page. A page holds at least one, however large. */
const pageBytes = 1_048_576;

/** Counts the items of one answer. */
export class PageRoom {
  #bytes = 0;
  #taken = 0;

  /** False: the page ends before this item. */
  take(item: object): boolean {
    this.#bytes += Buffer.byteLength(JSON.stringify(item));
    if (this.#bytes > pageBytes && this.#taken > 0) return false;
    this.#taken += 1;
    return true;
  }
}

/** As many of these items as fit, which were read with this limit, and where the next page begins. */
export function cutToPage<Item extends object>(
  read: readonly Item[],
  limit: number,
  cursorOf: (item: Item) => string,
): { items: Item[]; nextCursor: string | undefined } {
  const room = new PageRoom();
  const full = read.findIndex((item) => !room.take(item));
  const items = full === -1 ? [...read] : read.slice(0, full);
  const last = full === -1 && read.length < limit ? undefined : items.at(-1);
  return { items, nextCursor: last && cursorOf(last) };
}
