// One checked-out PostgreSQL connection: runs a transaction, and knows whether the connection was lost.
// Retrying is the pool's business.
import assert from "node:assert/strict";
import type pg from "pg";
import { StorageError } from "../storage-error.ts";
import { endsConnection, isFromServer, toPostgresError } from "./postgres-error.ts";
import { submitStatement } from "./submit-statement.ts";

export type PostgresValue = unknown;

export type Isolation = "read_committed" | "repeatable_read" | "serializable";

const beginByIsolation: Record<Isolation, string> = {
  read_committed: "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
  repeatable_read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE",
  serializable: "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE",
};

/**
 * Statements inside one transaction. They may be sent without waiting for each other; they run in order. COMMIT travels
 * behind those that the body has not waited for: where one of them fails nothing is committed, and its failure is thrown.
 */
export interface PostgresTransaction {
  /** `name` makes the server keep the plan on each connection: for hot statements whose text never changes. */
  query<Row>(text: string, values?: readonly PostgresValue[], name?: string): Promise<Row[]>;
  /** The number of rows that the statement touched. */
  execute(text: string, values?: readonly PostgresValue[], name?: string): Promise<number>;
  /** Any number of statements without values. */
  script(text: string): Promise<void>;
}

export interface SessionLimits {
  /** The server cancels a statement after this; 0 never. */
  statementTimeoutMs: number;
  /** How much longer than that we wait for an answer before taking the connection for dead. */
  answerGraceMs: number;
}

export class PostgresSession {
  readonly #client: pg.PoolClient;
  readonly #limits: SessionLimits;
  readonly #onError = () => {
    this.#lost = true;
  };
  readonly #onRefused = (error: unknown) => {
    this.#refused ??= { error };
  };
  #lost = false;
  /** Of the first statement that the driver did not send. */
  #refused: { readonly error: unknown } | undefined;
  #unanswered = 0;
  #gathering = false;
  #watchdog: NodeJS.Timeout | undefined;

  constructor(client: pg.PoolClient, limits: SessionLimits) {
    this.#client = client;
    this.#limits = limits;
    client.on("error", this.#onError);
  }

  /**
   * Nothing more is to be begun on it. Also where the driver did not send a statement: it takes that one's name for known to
   * the server, and the server has been asked to forget it.
   */
  get lost(): boolean {
    return this.#lost || this.#refused !== undefined;
  }

  async query<Row>(text: string, values?: readonly PostgresValue[], name?: string): Promise<Row[]> {
    return (await this.#send(this.#limits.statementTimeoutMs, text, values, name)).rows as Row[];
  }

  /** Throws `commit_unknown` where the connection was lost after COMMIT was sent, and then alone. */
  async transaction<R>(
    body: (tx: PostgresTransaction) => Promise<R>,
    isolation: Isolation,
    statementTimeoutMs: number = this.#limits.statementTimeoutMs,
  ): Promise<R> {
    const send: Send = (text, values, name) => this.#send(statementTimeoutMs, text, values, name);
    const tx = new OpenTransaction(send);
    const begun = this.#begin(isolation, statementTimeoutMs);
    let result: R;
    try {
      result = await body(tx);
      // Of what failed on this side the server knows nothing: it would commit the rest.
      const failure = this.#refused ?? tx.failure;
      if (failure !== undefined && !isFromServer(failure.error)) throw failure.error;
    } catch (error) {
      tx.end();
      const [beginOutcome] = await Promise.allSettled([begun]);
      await this.#rollBack();
      throw beginOutcome.status === "rejected" ? beginOutcome.reason : error;
    }
    tx.end();
    await this.#commit(statementTimeoutMs, tx, begun);
    return result;
  }

  /** A connection that was lost, or is in an unknown state, does not go back to the pool. */
  release(): void {
    this.#client.off("error", this.#onError);
    this.#client.release(this.lost || this.#client.getTransactionStatus() !== "I");
  }

  // The first statements travel behind BEGIN without waiting for its answer, and COMMIT behind a body that waits for none
  // of them; were BEGIN refused, the connection's read-only default stops them from writing on their own.
  #begin(isolation: Isolation, statementTimeoutMs: number): Promise<unknown> {
    const ownTimeout = statementTimeoutMs !== this.#limits.statementTimeoutMs;
    const limit = ownTimeout ? `; SET LOCAL statement_timeout = ${statementTimeoutMs}` : "";
    const begun = this.#send(statementTimeoutMs, beginByIsolation[isolation] + limit);
    begun.catch(() => undefined);
    return begun;
  }

  async #commit(statementTimeoutMs: number, tx: OpenTransaction, begun: Promise<unknown>): Promise<void> {
    const sent = this.#send(statementTimeoutMs, "COMMIT");
    const [beginOutcome, outcome] = await Promise.allSettled([begun, sent]);
    if (this.#lost && outcome.status === "rejected") {
      // The server answered a statement before it with an error, and commits nothing of such a transaction.
      if (tx.failure !== undefined && isFromServer(tx.failure.error)) throw tx.failure.error;
      const message = "the connection to PostgreSQL was lost while COMMIT was under way";
      throw new StorageError("commit_unknown", message, { cause: outcome.reason });
    }
    if (beginOutcome.status === "rejected") throw beginOutcome.reason;
    if (outcome.status === "rejected") throw outcome.reason;
    // A transaction in which a statement failed answers COMMIT with ROLLBACK, and no error.
    if (outcome.value.command !== "COMMIT") {
      if (tx.failure !== undefined) throw tx.failure.error;
      throw new StorageError("statement", "a statement of the transaction had failed, so nothing was committed");
    }
  }

  async #rollBack(): Promise<void> {
    if (this.#lost) return;
    try {
      await this.#send(this.#limits.statementTimeoutMs, "ROLLBACK");
    } catch {
      // The server rolls back when the connection ends, and the caller needs the first error, not this one.
      this.#lost = true;
    }
  }

  async #send(
    statementTimeoutMs: number,
    text: string,
    values?: readonly PostgresValue[],
    name?: string,
  ): Promise<pg.QueryResult> {
    this.#awaitAnswer(statementTimeoutMs);
    this.#gather();
    try {
      const config: pg.QueryConfig = { text };
      if (values !== undefined) config.values = [...values];
      if (name !== undefined) config.name = name;
      return await submitStatement(this.#client, config, this.#onRefused);
    } catch (error) {
      if (endsConnection(error)) this.#lost = true;
      const failure = toPostgresError(error, this.#lost);
      throw failure instanceof StorageError && name !== undefined ? failure.from(name) : failure;
    } finally {
      this.#noteAnswer();
    }
  }

  // What is sent in one turn travels in one packet: each of its own would wake the server for a part of the work.
  #gather(): void {
    if (this.#gathering) return;
    this.#gathering = true;
    this.#client.connection.stream.cork();
    // Behind what waits for promises that are settled by now: it may send more.
    queueMicrotask(() =>
      process.nextTick(() => {
        this.#gathering = false;
        this.#client.connection.stream.uncork();
      }),
    );
  }

  // The server's own limit is useless where the network swallows the answer: then the connection is taken for dead.
  #awaitAnswer(statementTimeoutMs: number): void {
    this.#unanswered += 1;
    if (statementTimeoutMs === 0 || this.#watchdog !== undefined) return;
    const drop = () => this.#client.connection.stream.destroy();
    this.#watchdog = setTimeout(drop, statementTimeoutMs + this.#limits.answerGraceMs);
  }

  #noteAnswer(): void {
    this.#unanswered -= 1;
    if (this.#unanswered > 0) {
      this.#watchdog?.refresh();
    } else {
      clearTimeout(this.#watchdog);
      this.#watchdog = undefined;
    }
  }
}

type Send = (text: string, values?: readonly PostgresValue[], name?: string) => Promise<pg.QueryResult>;

// A statement sent after the end would run in whatever the connection does next.
class OpenTransaction implements PostgresTransaction {
  readonly #send: Send;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(send: Send) {
    this.#send = async (text, values, name) => {
      try {
        return await send(text, values, name);
      } catch (error) {
        this.#failure ??= { error };
        throw error;
      }
    };
  }

  /** Of the first statement that failed: those after it fail because of it. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  end(): void {
    this.#ended = true;
  }

  async query<Row>(text: string, values?: readonly PostgresValue[], name?: string): Promise<Row[]> {
    assert(!this.#ended, "the transaction has ended");
    return (await this.#send(text, values, name)).rows as Row[];
  }

  async execute(text: string, values?: readonly PostgresValue[], name?: string): Promise<number> {
    assert(!this.#ended, "the transaction has ended");
    return (await this.#send(text, values, name)).rowCount ?? 0;
  }

  async script(text: string): Promise<void> {
    assert(!this.#ended, "the transaction has ended");
    await this.#send(text);
  }
}
