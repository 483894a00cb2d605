// How much one page of a list may count. Numbers are counted from rows when somebody looks, so that each has a bound, and a
// page ends where its rows are used up.
// Why: docs/decisions/0130.

/** A number that has reached this means "at least so many". */
export const countedMax = 10_000;
/** Rows that one page counts; the queue or topic with which it is reached is still counted. */
const rowsPerPage = 50_000;

export class CountRoom {
  #left = rowsPerPage;

  /** False: the page ends with what these numbers belong to. */
  take(...numbers: readonly number[]): boolean {
    for (const number of numbers) this.#left -= number + 1;
    return this.#left > 0;
  }
}
