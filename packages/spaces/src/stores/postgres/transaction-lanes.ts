// Which transaction bodies of one space share a transaction on PostgreSQL, and in which order they run: one lane for
// each space, first come, first served, so that commits that a session pipelines are decided in the order it sent them.
// Why: docs/decisions/0024.
import { setImmediate as nextTurn } from "node:timers/promises";
import { transactionWorkMax } from "@claudemesh/protocol/spaces/work";
import { Batcher, isRefusalOrFull, transactions } from "@claudemesh/storage/batcher";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { StorageError } from "@claudemesh/storage/errors";
import type { Postgres } from "@claudemesh/storage/postgres";
import { KnownDraft, type KnownSpace } from "../../core/known-space.ts";
import { type Flow, runAsync } from "../../ports/flow.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpaceTransaction, TransactionHints } from "../../ports.ts";
import { foresee } from "../foresee.ts";
import { KnownSpaces } from "../known-spaces.ts";
import { GuardedCommits } from "./guarded-commits.ts";
import type { Guard } from "./guarded-rows.ts";
import { RememberedRows } from "./remembered-rows.ts";
import { type AcceptSends, SharedTransaction } from "./shared-transaction.ts";

/** May run several times, and with others before and after it in the same transaction. */
export type TransactionBody<T> = (tx: SpaceTransaction) => Flow<T>;

type Waiting = {
  readonly space: SpaceRef;
  readonly body: TransactionBody<unknown>;
  readonly hints: TransactionHints;
};

export class TransactionLanes {
  readonly #postgres: Postgres;
  readonly #hooks: CommitHooks | undefined;
  readonly #acceptSends: AcceptSends;
  readonly #lanes = new Batcher<Waiting, unknown>(transactions, {
    keyOf: ({ space }) => `${space.meshId}/${space.spaceId}`,
    // A body that must be alone fills a batch, and those that came before it go ahead.
    weight: { of: ({ hints }) => (hints.alone === true ? 2 : 0), max: 1 },
    run: (batch) => this.#transact(batch),
    isOneItemsFault: isOneBodysFault,
  });
  readonly #known = new KnownSpaces();
  readonly #rows = new WeakMap<KnownSpace, RememberedRows>();

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
    return (await this.#lanes.submit({ space, body, hints })) as T;
  }

  /** What is remembered of the space; the next transaction asks the database for everything. */
  forget(space: SpaceRef): void {
    this.#known.forget(space);
  }

  async #transact(batch: readonly Waiting[]): Promise<readonly unknown[]> {
    const { space } = batch[0] as Waiting;
    const known = this.#known.of(space);
    const rows = this.#rows.get(known) ?? new RememberedRows();
    this.#rows.set(known, rows);
    const guard = guardOf(batch, rows);
    const values = guard && (await this.#transactGuarded(space, batch, { known, rows, guard }));
    return values ?? this.#transactAsking(space, batch, { known, rows });
  }

  /** In one round trip; undefined: nothing was done, and it takes a transaction that asks. */
  async #transactGuarded(
    space: SpaceRef,
    batch: readonly Waiting[],
    { known, rows, guard }: Remembered & { readonly guard: Guard },
  ): Promise<readonly unknown[] | undefined> {
    if (guard.space.lastSeq !== known.seq) return undefined;
    const draft = new KnownDraft(known);
    const commits = GuardedCommits.decide(
      batch.map(({ body }) => body),
      guard,
      draft,
    );
    if (commits === undefined) return undefined;
    const { written } = await this.#postgres.transaction(async (tx) => {
      // Nothing is waited for here, so that COMMIT travels with it.
      const sent = commits.write(tx, space);
      sent.catch(() => undefined);
      await this.#hooks?.before("commit");
      return { written: sent };
    });
    if (!(await written)) return undefined;
    known.keep(draft);
    rows.keep(commits.left, guard.space.lastSeq);
    await this.#hooks?.after("commit");
    return commits.values;
  }

  async #transactAsking(
    space: SpaceRef,
    batch: readonly Waiting[],
    { known, rows }: Remembered,
  ): Promise<readonly unknown[]> {
    const hints = batch.map((waiting) => waiting.hints);
    const { values, draft, shared } = await this.#postgres.transaction(async (tx) => {
      const attempt = new KnownDraft(known);
      const sharing = new SharedTransaction(tx, space, attempt, hints, this.#acceptSends);
      const expected = hints.flatMap(({ expects }) => expects?.() ?? []);
      await runAsync(foresee(sharing.body, expected, rows.isQuiet));
      const decided: unknown[] = [];
      let rested = 0;
      for (const { body } of batch) {
        // Bodies that find all they ask for wait for nothing, and one after the other they would stop everything else.
        if (sharing.work - rested >= transactionWorkMax) {
          rested = sharing.work;
          await nextTurn();
        }
        decided.push(await runAsync(body(sharing.body)));
      }
      sharing.finish();
      await this.#hooks?.before("commit");
      return { values: decided, draft: attempt, shared: sharing };
    });
    const left = await shared.left();
    if (left !== undefined) rows.keep(left, known.knownSeq);
    known.keep(draft);
    await this.#hooks?.after("commit");
    return values;
  }
}

type Remembered = { readonly known: KnownSpace; readonly rows: RememberedRows };

/** Commits of one session alone: a crowd is better served by a transaction that they share. */
function guardOf(batch: readonly Waiting[], rows: RememberedRows): Guard | undefined {
  const writer = batch[0]?.hints.writer;
  if (writer === undefined) return undefined;
  const isOneWriters = batch.every(
    ({ hints }) =>
      hints.alone !== true &&
      hints.writer?.sessionId === writer.sessionId &&
      hints.writer.memberPubkey === writer.memberPubkey,
  );
  return isOneWriters ? rows.guard(writer.sessionId) : undefined;
}

/** Also a bug, and want of room: a retry writes nothing, and must not be refused with what does not fit. */
function isOneBodysFault(error: unknown): boolean {
  return !(error instanceof StorageError) || isRefusalOrFull(error);
}
