// For statements whose answers are not awaited: COMMIT is sent right behind them, which saves a round trip.

/**
 * Marks a statement as one whose failure makes COMMIT fail, so that the caller need not await its answer. What goes wrong
 * before the statement is sent must be thrown at once, so that it ends the transaction's body: a function that makes such a
 * statement is therefore not async.
 */
export function checkedAtCommit<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined);
  return answer;
}
