// A connection that is checked out once for whoever comes while somebody has it, and goes back to the pool with the last of
// them. What they do on it, and in which order, is the session's business.
// Why: docs/tuning-log.md#a-meshs-transactions-share-a-connection.
import type { PostgresSession } from "./postgres-session.ts";

export type CheckedOut = { readonly session: PostgresSession; readonly release: () => void };

export interface SharedConnectionOptions {
  readonly open: () => Promise<PostgresSession>;
  /** Somebody else waits for a connection. */
  readonly isWanted: () => boolean;
}

type Held = {
  readonly opening: Promise<PostgresSession>;
  /** Once it is open. */
  session: PostgresSession | undefined;
  users: number;
  /** Nobody joins any more. */
  leaving: boolean;
  readonly gone: PromiseWithResolvers<void>;
};

export class SharedConnection {
  readonly #options: SharedConnectionOptions;
  #held: Held | undefined;

  constructor(options: SharedConnectionOptions) {
    this.#options = options;
  }

  async checkOut(): Promise<CheckedOut> {
    while (this.#held !== undefined && !this.#mayJoin(this.#held)) await this.#held.gone.promise;
    const held = this.#held ?? this.#hold();
    held.users += 1;
    try {
      return { session: await held.opening, release: () => this.#release(held) };
    } catch (error) {
      this.#release(held);
      throw error;
    }
  }

  // Under load there is always somebody to join it. Where all connections are taken, it goes back for others to have their turn.
  #mayJoin(held: Held): boolean {
    if (held.session?.lost === true || (held.session !== undefined && this.#options.isWanted())) held.leaving = true;
    return !held.leaving;
  }

  #hold(): Held {
    const opening = this.#options.open();
    const held: Held = { opening, session: undefined, users: 0, leaving: false, gone: Promise.withResolvers() };
    opening.then(
      (session) => {
        held.session = session;
      },
      () => undefined,
    );
    this.#held = held;
    return held;
  }

  #release(held: Held): void {
    held.users -= 1;
    if (held.users > 0) return;
    if (this.#held === held) this.#held = undefined;
    held.session?.release();
    held.gone.resolve();
  }
}
