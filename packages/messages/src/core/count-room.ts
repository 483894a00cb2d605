// How much one page of a list may count. Numbers are counted from rows when a list is read, so each of them has a bound, and
// a page ends when it has counted as many rows as it may.
// Why: docs/decisions/0130.

/** A number that has reached this means "at least so many". */
export const countedMax = 10_000;
/** Rows that one page counts; the queue or topic with which it is reached is still counted. */
const rowsPerPage = 50_000;

export class CountRoom {
  #left = rowsPerPage;

  /** False where the page has to end with what these numbers belong to. */
  take(...numbers: readonly number[]): boolean {
    for (const number of numbers) this.#left -= number + 1;
    return this.#left > 0;
  }
}
