// For statements behind which COMMIT travels without a look at their answers.

/**
 * Who commits without waiting for an answer hears of a failure from COMMIT, and who could not put the next statement together
 * from that. So what makes such a statement is no async function: what it throws must end the transaction's body.
 */
export function unawaited<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined);
  return answer;
}
