// A pool of PostgreSQL connections whose commits are durable, and transactions that run again when, and only when,
// nothing can have been committed. No tables here.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { StorageError } from "../storage-error.ts";
import { getTypeParser } from "./column-types.ts";
import { isConnectRetryable, isRetryable, toConnectError } from "./postgres-error.ts";
import {
  type Isolation,
  PostgresSession,
  type PostgresTransaction,
  type PostgresValue,
  type SessionLimits,
} from "./postgres-session.ts";
import { prepareConnection } from "./prepare-connection.ts";
import { defaultRetryPolicy, type RetryPolicy, retryDelayMs } from "./retry-delay.ts";

export type { Isolation, PostgresTransaction, PostgresValue } from "./postgres-session.ts";

export interface OpenPostgresOptions {
  /** `postgres://…`. Settings last as long as a connection, so a pooler between must pool by session. */
  url: string;
  poolSize?: number;
  /** How long to wait for a connection, new or from the pool, and once more for a new one to be prepared. */
  connectTimeoutMs?: number;
  statementTimeoutMs?: number;
  /** How much longer than that we wait for an answer before taking the connection for dead. */
  answerGraceMs?: number;
  /** For pools whose statements are few, named and answered by indexes, and come with arrays of any length. */
  genericPlans?: boolean;
  /** A connection that was idle for so long is closed. */
  idleTimeoutMs?: number;
  /** Shown in the server's list of connections. */
  applicationName?: string;
  retry?: Partial<RetryPolicy>;
  random?: () => number;
  /** A connection died while it was idle. The pool replaces it; this is for the log. */
  onIdleError: (error: Error) => void;
}

export interface TransactionOptions {
  /** Read committed unless said otherwise. */
  isolation?: Isolation;
  /** Instead of the pool's; 0 for none. */
  statementTimeoutMs?: number;
}

/** Connects when first used. */
export function openPostgres(options: OpenPostgresOptions): Postgres {
  return new Postgres(options);
}

export class Postgres {
  readonly #pool: pg.Pool;
  readonly #limits: SessionLimits;
  readonly #retry: RetryPolicy;
  readonly #random: () => number;

  constructor(options: OpenPostgresOptions) {
    const { statementTimeoutMs = 30_000, answerGraceMs = 5000, genericPlans = false } = options;
    const { connectTimeoutMs = 5000 } = options;
    this.#limits = { statementTimeoutMs, answerGraceMs };
    this.#retry = { ...defaultRetryPolicy, ...options.retry };
    this.#random = options.random ?? Math.random;
    this.#pool = new pg.Pool({
      connectionString: options.url,
      max: options.poolSize ?? 10,
      connectionTimeoutMillis: connectTimeoutMs,
      idleTimeoutMillis: options.idleTimeoutMs ?? 30_000,
      application_name: options.applicationName ?? "claudemesh",
      keepAlive: true,
      pipeline: true,
      types: { getTypeParser },
      onConnect: (client) =>
        prepareConnection(client as pg.Client, { statementTimeoutMs, genericPlans, timeoutMs: connectTimeoutMs }),
    });
    this.#pool.on("error", options.onIdleError);
  }

  /** One statement on a fresh snapshot. It may run more than once, and the server refuses to let it write. */
  async read<Row>(text: string, values?: readonly PostgresValue[], name?: string): Promise<Row[]> {
    return this.#withRetries((session) => session.query<Row>(text, values, name));
  }

  /**
   * All or nothing: committed and flushed when this resolves, not committed when it rejects, except for kind
   * `commit_unknown`. `body` may run several times, so it has no effects outside the transaction.
   */
  async transaction<R>(body: (tx: PostgresTransaction) => Promise<R>, options: TransactionOptions = {}): Promise<R> {
    const { isolation = "read_committed", statementTimeoutMs } = options;
    return this.#withRetries((session) => session.transaction(body, isolation, statementTimeoutMs));
  }

  /** Waits for what is under way. */
  async close(): Promise<void> {
    if (!this.#pool.ending) await this.#pool.end();
  }

  async #withRetries<R>(attempt: (session: PostgresSession) => Promise<R>): Promise<R> {
    for (let failures = 1; ; failures += 1) {
      const outcome = await this.#attempt(attempt);
      if (outcome.done) return outcome.result;
      if (!outcome.retryable || failures >= this.#retry.attempts) throw outcome.error;
      await sleep(retryDelayMs(this.#retry, failures, this.#random()));
    }
  }

  async #attempt<R>(attempt: (session: PostgresSession) => Promise<R>): Promise<AttemptOutcome<R>> {
    if (this.#pool.ending) throw new StorageError("closed", "the PostgreSQL pool is closed");
    let session: PostgresSession;
    try {
      session = new PostgresSession(await this.#pool.connect(), this.#limits);
    } catch (thrown) {
      const error = toConnectError(thrown);
      return { done: false, error, retryable: isConnectRetryable(error) };
    }
    try {
      return { done: true, result: await attempt(session) };
    } catch (error) {
      return { done: false, error, retryable: isRetryable(error, session.lost) };
    } finally {
      session.release();
    }
  }
}

type AttemptOutcome<R> = { done: true; result: R } | { done: false; error: unknown; retryable: boolean };
