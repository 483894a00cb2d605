// One transaction body for two kinds of database. SQLite answers at once and PostgreSQL after a round trip; a body
// written as steps runs on both: where an answer is on its way it yields the promise, and its runner waits for it.
// Why: docs/decisions/0025.
import assert from "node:assert/strict";

/** Call with `yield*`. On SQLite nothing is ever yielded. */
export type Steps<T> = IterableIterator<Promise<unknown>, T, unknown>;

/**
 * An answer that has to be waited for. The question is on its way already, so that a body that asks twice before it
 * looks at the first answer waits once.
 */
export function answerOf<T>(promise: Promise<T>): Steps<T> {
  // Where the first of two fails, the body ends without looking at the second; whoever looks still sees the failure.
  promise.catch(() => undefined);
  return waitFor(promise);
}

/** An answer that is there as soon as somebody looks. */
export function answerNow<T>(answer: () => T): Steps<T> {
  return new AnswerNow(answer);
}

/** As a generator without a yield would be, at a fraction of its cost: a commit asks a dozen times. */
class AnswerNow<T> implements IterableIterator<never, T, unknown> {
  readonly #answer: () => T;

  constructor(answer: () => T) {
    this.#answer = answer;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorReturnResult<T> {
    return { done: true, value: this.#answer() };
  }
}

function* waitFor<T>(promise: Promise<T>): Steps<T> {
  return (yield promise) as T;
}

/** For a database that answers at once. */
export function runAtOnce<T>(steps: Steps<T>): T {
  const taken = steps.next();
  assert(taken.done === true, "a step had to be waited for inside a synchronous transaction");
  return taken.value;
}

export async function runWaiting<T>(steps: Steps<T>): Promise<T> {
  let taken = steps.next();
  while (taken.done !== true) {
    let answer: unknown;
    try {
      answer = await taken.value;
    } catch (error) {
      if (steps.throw === undefined) throw error;
      taken = steps.throw(error);
      continue;
    }
    taken = steps.next(answer);
  }
  return taken.value;
}
