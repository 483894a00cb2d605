// How far into history one call of a search looks. The messages that an index finds may be hidden from the reader, so they must
// not decide where a call ends: a cursor that stopped at a hidden message would reveal that it holds the word.

/** A bound, because a search by a reader who sees little must not keep the store busy. */
const rowsPerCall = 100_000;

/** The last history row of a call that begins behind `after`, of an index that is complete up to `last`. */
export function endOfWindow(after: number, last: number): number {
  return Math.min(last, after + rowsPerCall);
}
