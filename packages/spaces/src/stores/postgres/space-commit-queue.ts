// The queue of a space's commits on PostgreSQL: which transaction bodies share a transaction, and in which order they run. Each
// space has a queue of its own, first in, first out, so that commits that a session pipelines are decided in the order in
// which it sent them (SPC-11).
// Why: docs/decisions/0024.
import { setImmediate as nextTurn } from "node:timers/promises";
import { transactionWorkMax } from "@claudemesh/protocol/spaces/work";
import { Batcher, isRefusalOrFull, transactions } from "@claudemesh/storage/batcher";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { StorageError } from "@claudemesh/storage/errors";
import type { Postgres } from "@claudemesh/storage/postgres";
import { type Flow, runAsync } from "../../ports/flow.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpaceTransaction, TransactionHints } from "../../ports.ts";
import { cachedTransaction } from "../cached/cached-transaction.ts";
import { prefetch } from "../cached/prefetch.ts";
import { SpaceCache, SpaceCacheOverlay, SpaceCaches } from "../cached/space-cache.ts";
import { LastSeenRows, OptimisticCommit } from "./optimistic-commit.ts";
import { type AcceptSends, SharedTransaction } from "./shared-transaction.ts";
import type { Precondition } from "./write-if-unchanged.ts";

/** May run several times, and with others before and after it in the same transaction. */
type TransactionBody<T> = (tx: SpaceTransaction) => Flow<T>;

type Waiting = {
  readonly space: SpaceRef;
  readonly body: TransactionBody<unknown>;
  readonly hints: TransactionHints;
};

export class SpaceCommitQueue {
  readonly #postgres: Postgres;
  readonly #hooks: CommitHooks | undefined;
  readonly #acceptSends: AcceptSends;
  readonly #queue = new Batcher<Waiting, unknown>(transactions, {
    keyOf: ({ space }) => `${space.meshId}/${space.spaceId}`,
    // A body that must be alone fills a batch, and those that came before it go ahead.
    weight: { of: ({ hints }) => (hints.alone === true ? 2 : 0), max: 1 },
    run: (batch) => this.#transact(batch),
    isOneItemsFault: isOneBodysFault,
  });
  readonly #lastSeen = new SpaceCaches(() => ({ cache: new SpaceCache(), rows: new LastSeenRows() }));

  constructor(
    postgres: Postgres,
    options: { readonly hooks?: CommitHooks | undefined; readonly acceptSends: AcceptSends },
  ) {
    this.#postgres = postgres;
    this.#hooks = options.hooks;
    this.#acceptSends = options.acceptSends;
  }

  /** Resolves after the COMMIT that holds what the body did. */
  async run<T>(space: SpaceRef, body: TransactionBody<T>, hints: TransactionHints): Promise<T> {
    return (await this.#queue.submit({ space, body, hints })) as T;
  }

  /** The next transaction asks the database for everything. */
  forget(space: SpaceRef): void {
    this.#lastSeen.forget(space);
  }

  async #transact(batch: readonly Waiting[]): Promise<readonly unknown[]> {
    const { space } = batch[0] as Waiting;
    const lastSeen = this.#lastSeen.of(space);
    const outcome = await this.#transactOptimistically(space, batch, lastSeen);
    return outcome === "not_possible" ? this.#transactReading(space, batch, lastSeen) : outcome.values;
  }

  /** In one round trip. Nothing is written where that is not possible. */
  async #transactOptimistically(
    space: SpaceRef,
    batch: readonly Waiting[],
    { cache, rows }: LastSeen,
  ): Promise<{ readonly values: readonly unknown[] } | "not_possible"> {
    const precondition = preconditionOf(batch, rows);
    if (precondition === undefined || precondition.space.lastSeq !== cache.seq) return "not_possible";
    const overlay = new SpaceCacheOverlay(cache);
    const bodies = batch.map(({ body }) => body);
    const commit = OptimisticCommit.decide(bodies, precondition, overlay);
    if (commit === "not_possible") return commit;
    const { written } = await this.#postgres.transaction(async (tx) => {
      // Nothing is waited for here, so that COMMIT travels with it.
      const sent = commit.write(tx, space);
      sent.catch(() => undefined);
      await this.#hooks?.before("commit");
      return { written: sent };
    });
    if (!(await written)) return "not_possible";
    cache.adopt(overlay);
    rows.keep(commit.after, precondition.space.lastSeq);
    await this.#hooks?.after("commit");
    return commit;
  }

  async #transactReading(
    space: SpaceRef,
    batch: readonly Waiting[],
    { cache, rows }: LastSeen,
  ): Promise<readonly unknown[]> {
    const hints = batch.map((waiting) => waiting.hints);
    const { values, overlay, shared } = await this.#postgres.transaction(async (tx) => {
      const attempt = new SpaceCacheOverlay(cache);
      const sharing = new SharedTransaction(tx, space, hints, this.#acceptSends);
      const cached = cachedTransaction(sharing.body, attempt);
      const prefetchHints = hints.flatMap((each) => each.prefetch?.() ?? []);
      await runAsync(prefetch(cached, attempt, prefetchHints, rows.isQuiet));
      const decided: unknown[] = [];
      let rested = 0;
      for (const { body } of batch) {
        // Bodies that find everything in the cache wait for nothing, and a row of them would stop every other request.
        if (sharing.work - rested >= transactionWorkMax) {
          rested = sharing.work;
          await nextTurn();
        }
        decided.push(await runAsync(body(cached)));
      }
      sharing.finish();
      await this.#hooks?.before("commit");
      return { values: decided, overlay: attempt, shared: sharing };
    });
    const after = await shared.rowsAfterCommit();
    if (after !== undefined) rows.keep(after, cache.isEmpty ? undefined : cache.seq);
    cache.adopt(overlay);
    await this.#hooks?.after("commit");
    return values;
  }
}

type LastSeen = { readonly cache: SpaceCache; readonly rows: LastSeenRows };

/** For commits of one session alone: those of many are better served by a transaction that they share. */
function preconditionOf(batch: readonly Waiting[], rows: LastSeenRows): Precondition | undefined {
  const writer = batch[0]?.hints.writer;
  if (writer === undefined) return undefined;
  const isOneWriters = batch.every(
    ({ hints }) =>
      hints.alone !== true &&
      hints.writer?.sessionId === writer.sessionId &&
      hints.writer.memberPubkey === writer.memberPubkey,
  );
  return isOneWriters ? rows.precondition(writer.sessionId) : undefined;
}

/** Of bugs too, and of a full disk: a retry beside it writes nothing, and must not be refused with what does not fit. */
function isOneBodysFault(error: unknown): boolean {
  return !(error instanceof StorageError) || isRefusalOrFull(error);
}
