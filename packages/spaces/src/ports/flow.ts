// One transaction body for two kinds of database. SQLite answers at once and PostgreSQL after a round trip. A body written as
// a flow runs on both: it yields each promise that it has to wait for, and what runs the flow waits.
// Why: docs/decisions/0025.
import assert from "node:assert/strict";

/** Call with `yield*`. On SQLite nothing is ever yielded. */
export type Flow<T> = IterableIterator<Promise<unknown>, T, unknown>;

/**
 * An answer that has to be waited for. The question was sent before this is called, so that a body that asks twice before it
 * looks at the first answer waits for one round trip.
 */
export function waitFor<T>(promise: Promise<T>): Flow<T> {
  // When the first of two answers is an error, the body never looks at the second, whose failure is not an unhandled one.
  promise.catch(() => undefined);
  return yieldOnce(promise);
}

/** An answer that is computed when the flow reaches it. */
export function ready<T>(answer: () => T): Flow<T> {
  return new Ready(answer);
}

/** As a generator without a yield would be, at a fraction of its cost: a commit asks a dozen times. */
class Ready<T> implements IterableIterator<never, T, unknown> {
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

function* yieldOnce<T>(promise: Promise<T>): Flow<T> {
  return (yield promise) as T;
}

/** For a database that answers at once. */
export function runSync<T>(flow: Flow<T>): T {
  const step = flow.next();
  assert(step.done === true, "a flow waited inside a synchronous transaction");
  return step.value;
}

export async function runAsync<T>(flow: Flow<T>): Promise<T> {
  let step = flow.next();
  while (step.done !== true) {
    let answer: unknown;
    try {
      answer = await step.value;
    } catch (error) {
      if (flow.throw === undefined) throw error;
      step = flow.throw(error);
      continue;
    }
    step = flow.next(answer);
  }
  return step.value;
}
