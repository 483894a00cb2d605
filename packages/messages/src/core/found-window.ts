// How far into history one call looks for what an index has picked. What is picked may be hidden from the reader, so it
// must not decide where a call ends: a cursor that stopped at a hidden message would tell that it holds the word.

/** A reader who sees little must not hold the store. */
const rowsPerCall = 100_000;

/** The last history row of a call that begins behind `after`, of an index that is complete up to `last`. */
export function endOfWindow(after: number, last: number): number {
  return Math.min(last, after + rowsPerCall);
}
