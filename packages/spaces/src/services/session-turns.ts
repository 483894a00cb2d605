// Requests of one session reach the store in the order in which they came, though some have more to do before: a commit
// with sends asks the limiter first, and the next one must not overtake it meanwhile. Nothing waits for an answer.

export class SessionTurns {
  /** Resolves when everything of the session that came so far has reached the store, or will never reach it. */
  readonly #last = new Map<string, Promise<void>>();

  /**
   * `prepare` begins at once; `act` begins when all that came before has begun or failed, which is at once where nothing is
   * ahead and nothing has to be waited for.
   */
  async take<Prepared, Result>(
    sessionId: string,
    prepare: () => Prepared | Promise<Prepared>,
    act: (prepared: Prepared) => Promise<Result>,
  ): Promise<Result> {
    const ahead = this.#last.get(sessionId);
    const prepared = prepare();
    if (ahead === undefined && !(prepared instanceof Promise)) return act(prepared);
    const { promise: reachedStore, resolve } = Promise.withResolvers<void>();
    this.#last.set(sessionId, reachedStore);
    let result: Promise<Result>;
    try {
      result = act(await afterBoth(prepared, ahead));
    } finally {
      if (this.#last.get(sessionId) === reachedStore) this.#last.delete(sessionId);
      resolve();
    }
    return result;
  }
}

/** The result of the first, once both have ended. */
async function afterBoth<T>(first: T | Promise<T>, second: Promise<void> | undefined): Promise<T> {
  const [outcome] = await Promise.allSettled([first, second]);
  if (outcome.status === "rejected") throw outcome.reason;
  return outcome.value;
}
