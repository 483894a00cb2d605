// For statements behind which COMMIT travels without a look at their answers.

/**
 * A caller that does not wait for the answer hears of its failure from COMMIT. What goes wrong before the statement is sent must
 * be thrown at once, so that it ends the transaction's body: a function that makes such a statement is not async.
 */
export function unawaited<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined);
  return answer;
}
